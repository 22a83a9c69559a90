#!/usr/bin/env bash
# All that is checked and measured on a GPU, in one go: tests, accuracy and times of the real models, the sanitizer's tools.
# usage: benchmarks/gpu_session.sh FOLDER [part ...]      parts: tests calls models live sanitize (default: all)
set -u
out=$1
shift
parts=${*:-tests calls models live sanitize}
cd "$(dirname "$0")/.." || exit 2
export PYTHONPATH=$PWD/.typecheck${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
status=0

tests() { timeout 200 python3 -m pytest -q -p no:cacheprovider -c tests/pytest.ini -m gpu tests 2>&1 | tail -25; }

calls() {
  timeout 60 python3 -P -m dlcb.benchmarks.call_overhead &&
    timeout 60 python3 -P -m dlcb.benchmarks.call_overhead --weights 100
}

models() {
  timeout 400 python3 -P -m dlcb.benchmarks.gpu --out "$out/models.json" --models resnet18,resnet50,bert_base --dtypes f32,f16
}

live() { timeout 120 python3 -P -m dlcb.benchmarks.gpu --out "$out/live.json" --models resnet50 --dtypes f16 --weights live; }

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
