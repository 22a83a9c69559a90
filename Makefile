# `make demo` and `make test` build .venv if it is not there; pyright's settings lie in .typecheck, all others in pyproject.toml.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON := $(BIN)/python -P

.PHONY: venv demo test test-torch lint types imports unit filecheck clean

venv: $(READY)

$(READY): pyproject.toml constraints-cpu.txt .ci/venv
	@.ci/venv $(VENV)
	@touch $@

demo: $(READY)
	$(PYTHON) examples/demo.py

# Every part runs, whatever the others say; the status is not 0 if any of them fails.
test: $(READY)
	@$(MAKE) --no-print-directory --keep-going lint types imports filecheck unit

# make test-torch TORCH=2.11.0
test-torch:
	@.ci/test-torch '$(TORCH)'

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/pyright --project .typecheck --pythonpath $(BIN)/python

imports: $(READY)
	$(BIN)/lint-imports --no-logo

# A file stays in one process, which compiles what its tests share once; the longest files come first.
unit: $(READY)
	$(PYTHON) -m pytest -c tests/pytest.ini -n 2 --dist loadfile --no-loadscope-reorder --durations 20 tests

filecheck: $(READY)
	$(BIN)/lit -s filecheck_tests

clean:
	rm -rf $(VENV) .venv-torch-* build dist *.egg-info demo_out
