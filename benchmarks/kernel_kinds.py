"""One program for each kind of generated kernel, run at awkward sizes and judged; for the sanitizer's tools, or alone.

python -P -m dlcb.benchmarks.kernel_kinds
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import dlcb
from dlcb.benchmarks.accuracy import judge_all

SIZES = ((1, 1), (3, 5), (0, 7), (33, 65), (257, 31), (5, 1021), (1030, 3))
TILES = ((33, 65), (8, 8), (72, 264), (64, 65), (65, 64))
LONG = ((1, 200_003), (3, 70_001), (2, 131_072))


def pointwise(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x) * 2 + x.t().contiguous().t()


def transposed(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Memory is read along another axis, and a result is stored along another one."""
    there = x.t() * 2
    return (x + 1).t().contiguous(), there, there.contiguous()


def row(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.softmax(x, -1), torch.nn.functional.silu(x) - x.mean(-1, keepdim=True)


def column(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(0), torch.softmax(x, 0)


def cut_row(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.softmax(x, -1), (x * x).mean()


def scan(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cumsum(1), x.relu().cumsum(0)


def position(x: Tensor) -> Tensor:
    return torch.nn.functional.pad(x, (1, 1)).argmax(1)


def gather(x: Tensor) -> Tensor:
    index = torch.arange(x.shape[0], device=x.device).flip(0)
    return x[index] + x.index_select(0, index)


def window(x: Tensor) -> Tensor:
    return torch.nn.functional.avg_pool1d(torch.nn.functional.pad(x, (2, 2))[:, None], 3)


def joined(x: Tensor) -> Tensor:
    return torch.cat([x, x[:, :1], x * 2], 1).roll(1, 0)


class Depthwise(torch.nn.Module):
    """In half precision generated, as the patches of `stem` are copied and multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 12, 2, 2)
        self.small = torch.nn.Conv2d(12, 12, 3, 2, 1, groups=12)
        self.large = torch.nn.Conv2d(12, 12, 7, 1, 3, groups=12)

    def forward(self, x: Tensor) -> Tensor:
        return self.large(torch.nn.functional.silu(self.small(self.stem(x))))


def attention(q: Tensor) -> Tensor:
    """Written out; stacks that do not lie at equal distances."""
    heads = q.view(q.shape[0], q.shape[1], 2, 8).transpose(1, 2)
    return torch.softmax(heads @ heads.transpose(-1, -2) * 0.5, -1) @ heads


PICTURES = ((1, 3, 2, 2), (2, 3, 30, 46), (3, 3, 15, 9), (0, 3, 8, 8), (1, 3, 64, 2))
SEQUENCES = ((1, 1, 16), (2, 7, 16), (3, 64, 16), (0, 5, 16), (2, 129, 16))
KINDS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    **{kind.__name__: (kind, SIZES) for kind in (pointwise, row, column, scan, position, gather, window, joined)},
    "transposed": (transposed, TILES),
    "cut_row": (cut_row, LONG),
    "depthwise": (Depthwise().eval(), PICTURES),
    "attention": (attention, SEQUENCES),
}


EXAMPLES = {"depthwise": (2, 3, 16, 16), "attention": (2, 6, 16)}


def _placed(program: Any, device: Any, dtype: torch.dtype) -> Any:
    return copy.deepcopy(program).to(device, dtype) if isinstance(program, torch.nn.Module) else program


@torch.no_grad()
def main() -> int:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    wrong = 0
    for name, (program, sizes) in KINDS.items():
        for dtype in (torch.float32, torch.float16):
            example = EXAMPLES.get(name, (4, 9))
            model = dlcb.compile(
                _placed(program, device, dtype), (torch.randn(example).to(device, dtype),), graphs=False
            )
            for size in sizes:
                x = torch.randn(size, device=device, dtype=dtype)
                there = (_placed(program, "cpu", wanted)(x.to("cpu", wanted)) for wanted in (dtype, torch.float64))
                verdicts = judge_all(model(x), *there)
                bad = [verdict.reason for verdict in verdicts if not verdict.ok]
                wrong += len(bad)
                print(f"{name} {dtype} {size}: {bad or 'ok'}")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
