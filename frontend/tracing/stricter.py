"""What eager refuses and torch's fakes take: a trace must not go on at sizes that no call can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from dlcb.frontend.tracing.result_sizes import Sizes, broadcast


def refuse_as_eager(op: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """A RuntimeError where eager would raise one for operands of these sizes, though the fakes did not."""
    check = _CHECKS.get(op)
    if check is not None:
        check(*args, **kwargs)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    *_: Any,
    enable_gqa: bool = False,
    **__: Any,
) -> None:
    """A mask is added to the scores in place: it may be expanded to them, not they to it."""
    if attn_mask is None:
        return
    lead = list(query.shape[:-2])
    if not enable_gqa:
        lead = cast("list[int]", broadcast(Sizes(lead), Sizes(key.shape[:-2])))  # of numbers it is numbers
    scores = [*lead, query.shape[-2], key.shape[-2]]
    both = broadcast(Sizes(scores), Sizes(attn_mask.shape))
    if both != scores:
        raise RuntimeError(f"output with shape {scores} doesn't match the broadcast shape {both}")


_CHECKS: dict[str, Callable[..., None]] = {"scaled_dot_product_attention": _attention}
