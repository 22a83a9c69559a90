"""Whole programs as IR: aliasing in signatures, checks with lines, sizes as results, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from xdsl.context import Context

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.shape.expr import mul, sym
from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import Imported, Result, import_captured
from dlcb.passes.collect import CollectPass
from dlcb.passes.functions import functions, system_of
from dlcb.passes.solve import SolvePass

transformers = pytest.importorskip("transformers")


def imported(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Imported:
    result = import_captured(capture(program, args, kwargs))
    result.module.verify()
    return result


def main(program: Imported) -> FuncOp:
    (func,) = functions(program.module)
    return func


def solved_requirements(program: Imported) -> list[str]:
    for stage in (CollectPass, SolvePass):
        stage().apply(Context(), program.module)
    return [str(r) for r in system_of(main(program)).requires]


def rand(*sizes: int) -> Tensor:
    return torch.randn(*sizes)


def test_the_signature_says_what_is_updated_and_what_aliases() -> None:
    def program(x: Tensor, cache: Tensor, position: int) -> tuple[Tensor, Tensor]:
        cache[position] = x
        return cache[0], x * 2

    func = main(imported(program, rand(3), rand(4, 3), 2))
    assert func.names == ("x", "cache", "position")
    assert func.kinds == ("input", "input", "int")
    assert func.returned.updated == (1,)
    assert func.returned.aliased == {0: 1}
    assert len(func.returned.results_returned) == 2


def test_results_that_are_sizes_stay_expressions() -> None:
    program = imported(lambda x: (x + 1, x.shape[0] * 2, None), rand(3, 4))
    assert program.results == [Result(0), Result(1), Result()]
    numbers = main(program).returned.numbers
    assert numbers is not None
    assert system_of(main(program)).value(numbers.dims[0]) is mul(2, sym("x_0"))


def test_weights_are_arguments_by_name_and_by_reference() -> None:
    model = nn.Linear(4, 3).eval()
    program = imported(model, rand(2, 4))
    assert main(program).names == ("input", "weight", "bias")
    assert program.weights["weight"] is model.weight


def test_checks_name_the_line_that_asked() -> None:
    program = imported(lambda x: x + 1 if x.shape[0] > 3 else x, rand(5, 2))
    (require,) = system_of(main(program)).requires
    assert str(require) == "3 < x_0"
    assert require.text.startswith("compared at test_importer_programs.py:")


def test_an_operation_without_a_handler_is_named_with_its_line() -> None:
    with pytest.raises(UnsupportedError, match=r"sort: test_importer_programs.py:\d+: "):
        imported(lambda x: x.sort(0)[0], rand(3))
    with pytest.raises(UnsupportedError, match="argument x: a tensor of complex64; DLCB has float16"):
        imported(lambda x: x, torch.zeros(2, dtype=torch.complex64))


def test_sizes_of_operands_that_differ_are_the_users_error() -> None:
    with pytest.raises(UserError, match="fails on its example inputs"):
        imported(lambda x, y: x @ y, rand(2, 3), rand(4, 5))


def test_bert_needs_nothing_but_its_table_of_positions() -> None:
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=40
    )
    ids = torch.randint(0, 100, (2, 7))
    program = imported(transformers.BertModel(config).eval(), ids, attention_mask=torch.ones_like(ids))
    left = solved_requirements(program)
    assert "input_ids_1 <= 40" in left
    free = {"input_ids_0 == attention_mask_0", "attention_mask_0 == input_ids_0"}
    assert all("==" not in r or r in free or "_1" in r for r in left)


@pytest.mark.parametrize("masked", [False, True])
def test_gpt2_is_imported_whole(masked: bool) -> None:
    config = transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2Model(config).eval()
    ids = torch.randint(0, 100, (2, 7))
    mask = {"attention_mask": torch.ones_like(ids)} if masked else {}
    program = imported(model, ids, use_cache=False, **mask)
    assert str(program.module).count("dlcb.graph.attention") == 2
    assert not [r for r in solved_requirements(program) if "64 //" in r]
