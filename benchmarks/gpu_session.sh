#!/usr/bin/env bash
# All that is checked and measured on a GPU, in one go: tests, accuracy and times of the real models, the sanitizer's tools.
# usage: benchmarks/gpu_session.sh FOLDER [part ...]      parts: tests calls shapes live memory overhead models compile stages serving sanitize kinds (default: all)
set -u
out=$1
shift
parts=${*:-tests calls shapes live memory overhead models compile stages serving sanitize kinds}
cd "$(dirname "$0")/.." || exit 2
export PYTHONPATH=$PWD/.typecheck${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
status=0

tests() { timeout 200 python3 -m pytest -q -p no:cacheprovider -c tests/pytest.ini -m gpu --ignore tests/property tests 2>&1 | tail -25; }

calls() {
  timeout 60 python3 -P -m dlcb.benchmarks.call_overhead &&
    timeout 60 python3 -P -m dlcb.benchmarks.call_overhead --weights 100 &&
    timeout 60 python3 -P -m dlcb.benchmarks.check_overhead --json "$out/check_overhead.json"
}

# Models compiled once and checked at many shapes.
shapes() {
  timeout 400 python3 -P -m dlcb.benchmarks.gpu --out "$out/shapes.json" --models resnet18,resnet50,bert_base --dtypes f32,f16
}

live() { timeout 120 python3 -P -m dlcb.benchmarks.gpu --out "$out/live.json" --models resnet50 --dtypes f16 --weights live; }

# DLCB beside eager and torch.compile. BUDGET: seconds after which what is left is skipped; OPTIONS: of the benchmark.
benchmark() {
  # shellcheck disable=SC2086
  timeout 590 python3 -P -m dlcb.benchmarks "$1" --json "$out/${2:-$1}.json" --seconds "${BUDGET:-480}" ${OPTIONS:-} "${@:3}"
}
memory() { benchmark memory; }
overhead() { benchmark overhead; }
models() { benchmark models; }
compile() { benchmark compile; }
serving() { benchmark serving; }
# Seconds of DLCB's stages, for the models of `models`.
stages() {
  benchmark compile stages --experiments stages --contenders dlcb,dlcb_dynamic --models \
    resnet18,resnet50,mobilenet_v3_large,efficientnet_b0,densenet121,convnext_tiny,vit_b_16,swin_t,regnet_y_400mf,squeezenet1_1
}

# One program for each kind of generated kernel, under each of the sanitizer's tools.
kinds() {
  for tool in memcheck racecheck synccheck; do
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 150 compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
      --kernel-name 'regex=^k[0-9]+_' python3 -P -m dlcb.benchmarks.kernel_kinds > "$out/kinds_$tool.log" 2>&1 ||
      { echo "$tool: FAILED"; status=1; }
    echo "$tool: $(grep -E '=========|wrong$' "$out/kinds_$tool.log" | tail -2 | tr '\n' ' ')"
  done
}

# Our kernels only. Racecheck itself fails on the vendor's half-precision kernels, so with them it runs in f32; `rows` has none.
sanitize() {
  check_tool memcheck resnet18,bert,gpt2,rows f16,f32
  check_tool synccheck resnet18,bert,gpt2,rows f16,f32
  check_tool racecheck resnet50,bert,gpt2,rows f32
  check_tool racecheck rows f16,bf16
}

check_tool() {
  echo "compute-sanitizer --tool $1: $2, $3"
  PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 150 compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 \
    --kernel-name 'regex=^k[0-9]+_' python3 -P -m dlcb.benchmarks.gpu --small --out "$out/$1.json" \
    --models "$2" --dtypes "$3" --no-time --no-graphs --math-attention --eager-on-cpu > "$out/$1.log" 2>&1 ||
    { echo "$1: FAILED"; status=1; }
  grep -E "=========|failed$" "$out/$1.log" | tail -3
}

for part in $parts; do
  echo "== $part"
  "$part" || status=1
done
exit $status
