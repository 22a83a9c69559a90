"""The one table of scalar functions: what an element can be computed with.

`dlcb.coord.scalar`, `dlcb.cuda.scalar`, the evaluator and the C spelling key on these names. `result` says the type of
the result: that of the operands (`same`), a truth value (`bool`), or the one that is asked for (`given`, cast only).
Integer `div` does not exist: `floordiv` rounds down, `truncdiv` towards zero; `mod` has the sign of the divisor, `fmod`
that of the dividend. `maximum` and `minimum` return NaN if either operand is NaN, else the
first of equal ones. `pow` follows C. `fma` is a·b + c, rounded once. `logaddexp` is
ln(e^a + e^b). `round` is to nearest, ties to even. `sign` of 0 and of NaN is 0. Integer arithmetic wraps at the width
of its type; a shift by fewer bits than 0, or as many as there are, leaves no bit but the sign's. `floordiv` of floats
is the whole number next to (a - fmod(a, b)) / b, so that it fits `mod`; `cast` from a float outside an integer's range
gives some number. `fast_exp` and `fast_div` are `exp` and `div` with a relative error of up to 2⁻¹⁶;
`fast_maximum` and `fast_minimum` give either 0 of two with different signs, and any NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from xdsl.ir import Attribute

from dlcb.dialects.types import common_compute_type, i1

Domain = Literal["any", "number", "float", "integer", "bits"]


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """One function of elements. `domain` says for which operand types it exists; `commutes`, whether operands may be
    swapped."""

    name: str
    arity: int
    domain: Domain
    result: Literal["same", "bool", "given"] = "same"
    commutes: bool = False


_TABLE = (
    ScalarFunction("add", 2, "number", commutes=True),
    ScalarFunction("sub", 2, "number"),
    ScalarFunction("mul", 2, "number", commutes=True),
    ScalarFunction("div", 2, "float"),
    ScalarFunction("floordiv", 2, "number"),
    ScalarFunction("truncdiv", 2, "number"),
    ScalarFunction("mod", 2, "number"),
    ScalarFunction("fmod", 2, "number"),
    ScalarFunction("pow", 2, "number"),
    ScalarFunction("fast_div", 2, "float"),
    ScalarFunction("fast_exp", 1, "float"),
    ScalarFunction("atan2", 2, "float"),
    ScalarFunction("hypot", 2, "float"),
    ScalarFunction("copysign", 2, "float"),
    ScalarFunction("maximum", 2, "number"),
    ScalarFunction("minimum", 2, "number"),
    ScalarFunction("fast_maximum", 2, "number", commutes=True),
    ScalarFunction("fast_minimum", 2, "number", commutes=True),
    ScalarFunction("logaddexp", 2, "float", commutes=True),
    ScalarFunction("neg", 1, "number"),
    ScalarFunction("abs", 1, "number"),
    ScalarFunction("sign", 1, "number"),
    *(
        ScalarFunction(name, 1, "float")
        for name in (
            "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh "
            "asinh acosh atanh erf erfc lgamma floor ceil trunc round"
        ).split()
    ),
    ScalarFunction("isnan", 1, "float", result="bool"),
    ScalarFunction("eq", 2, "any", result="bool", commutes=True),
    ScalarFunction("ne", 2, "any", result="bool", commutes=True),
    ScalarFunction("lt", 2, "any", result="bool"),
    ScalarFunction("le", 2, "any", result="bool"),
    ScalarFunction("gt", 2, "any", result="bool"),
    ScalarFunction("ge", 2, "any", result="bool"),
    ScalarFunction("and", 2, "bits", commutes=True),
    ScalarFunction("or", 2, "bits", commutes=True),
    ScalarFunction("xor", 2, "bits", commutes=True),
    ScalarFunction("not", 1, "bits"),
    ScalarFunction("shl", 2, "integer"),
    ScalarFunction("shr", 2, "integer"),
    ScalarFunction("fma", 3, "float"),
    ScalarFunction("select", 3, "any"),
    ScalarFunction("cast", 1, "any", result="given"),
)

FUNCTIONS: dict[str, ScalarFunction] = {f.name: f for f in _TABLE}


class ScalarBuilder(ABC):
    """Builds element values. The meaning of graph ops is written against this: the coordinate stage makes IR, the
    evaluator computes arrays. A value is opaque; `type_of` tells its element type."""

    @abstractmethod
    def call(self, function: str, *operands: Any) -> Any:
        """Apply a function of the table (not `cast`); operands have one compute type (the first of `select` is i1)."""

    @abstractmethod
    def constant(self, value: float | int | bool, element: Attribute) -> Any: ...

    @abstractmethod
    def cast(self, value: Any, element: Attribute) -> Any: ...

    @abstractmethod
    def type_of(self, value: Any) -> Attribute: ...

    def __getattr__(self, name: str) -> Any:
        """`b.add(x, y)` is `b.call("add", x, y)`; Python keywords take a trailing underscore. Plain numbers become
        constants."""
        function = FUNCTIONS.get(name.rstrip("_"))
        if function is None:
            raise AttributeError(name)

        def build(*operands: Any) -> Any:
            return self.call(function.name, *self._alike(function, operands))

        setattr(self, name, build)
        return build

    def _alike(self, function: ScalarFunction, operands: tuple[Any, ...]) -> list[Any]:
        values = operands[1:] if function.name == "select" else operands
        types = [self.type_of(v) for v in values if not isinstance(v, (int, float))]
        common = common_compute_type(*types)
        alike = [
            self.constant(v, common)
            if isinstance(v, (int, float))
            else (v if self.type_of(v) == common else self.cast(v, common))
            for v in values
        ]
        if function.name == "select":
            condition = operands[0]
            alike.insert(0, condition if self.type_of(condition) == i1 else self.cast(condition, i1))
        return alike
