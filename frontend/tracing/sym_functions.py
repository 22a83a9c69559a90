"""`torch.sym_max` and its like on tracked numbers: functions of sizes that Python's own would pin or branch on."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dlcb.dialects.shape.expr import Expr, maximum, minimum
from dlcb.frontend.tracing.trace import Handler, Trace
from dlcb.frontend.tracing.tracked import expr_of, extremum, traced


def _extremum(choose: Callable[..., Any], build: Callable[[Any, Any], Expr]) -> Handler:
    def handler(trace: Trace, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not all(isinstance(n, int) for n in args):
            return float(choose(*args))
        a, b = args
        return extremum(trace.tracker, build(expr_of(a), expr_of(b)), choose(traced(a), traced(b)))

    return handler


def _to_int(trace: Trace, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    return math.trunc(args[0])


def _to_float(trace: Trace, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    return args[0] if isinstance(args[0], float) else args[0] / 1


SYM_FUNCTIONS: dict[str, Handler] = {
    "sym_max": _extremum(max, maximum),
    "sym_min": _extremum(min, minimum),
    "sym_int": _to_int,
    "sym_float": _to_float,
}
