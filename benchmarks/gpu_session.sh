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

# Our kernels only. Racecheck itself fails on some kernels of torch, so eager runs on the CPU here, and attention is plain
# matrix products.
sanitize() {
  for tool in memcheck racecheck synccheck; do
    echo "compute-sanitizer --tool $tool"
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 150 compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
      --kernel-name 'regex=^k[0-9]+_' python3 -P -m dlcb.benchmarks.gpu --small --out "$out/$tool.json" \
      --models resnet18,bert,gpt2 --dtypes f16,f32 --no-time --no-graphs --math-attention --eager-on-cpu > "$out/$tool.log" 2>&1 ||
      { echo "$tool: FAILED"; status=1; }
    grep -E "=========|failed" "$out/$tool.log" | tail -4
  done
}

for part in $parts; do
  echo "== $part"
  "$part" || status=1
done
exit $status
