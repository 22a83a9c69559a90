"""Holds a rule on expressions to the examples that its file carries.

Of sizes it is a system as `dialects/shape/text.py` reads it; of coordinates it has lines of three kinds:

i in n              a coordinate and the size of its axis
d0 = (i + n) // n   an expression, by a name
i < n               a guard; `never` is one that does not hold
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dlcb.dialects.graph.base import Guard
from dlcb.dialects.shape.expr import Expr, substitute, sym
from dlcb.dialects.shape.text import parse_expr, parse_system
from dlcb.errors import UserError
from dlcb.passes.rule_trace import Firing, tracing
from dlcb.passes.solver.driver import Solution, solve
from dlcb.passes.solver.law import Law
from dlcb.passes.solver.ranges import Ranges

NEVER = "never"


@dataclass
class Space:
    """An example of coordinates; a coordinate `i` of the text is the symbol `$i`."""

    axes: dict[str, Expr] = field(default_factory=dict[str, Expr])
    values: dict[str, Expr] = field(default_factory=dict[str, Expr])
    guards: list[Guard] | None = field(default_factory=list[Guard])
    """None where one of them never holds."""

    def ranges(self, rules: Sequence[Law]) -> Ranges:
        ranges = Ranges(rules)
        for name, size in self.axes.items():
            ranges.axis(sym(f"${name}"), size)
        return ranges

    def simplified(self, rules: Sequence[Law]) -> Space:
        ranges = self.ranges(rules)
        values = {name: ranges.simplify(value) for name, value in self.values.items()}
        guards = ranges.guard(self.guards or ())
        return Space(self.axes, values, None if guards is None else list(guards))


def parse_space(text: str, axes: dict[str, Expr] | None = None) -> Space:
    """The example; one that stands for what became of another has that one's `axes`."""
    space = Space(dict(axes or {}))
    for line in _lines(text):
        coordinate, is_axis, size = line.partition(" in ")
        name, is_value, value = line.partition(" = ")
        if is_axis:
            space.axes[coordinate] = parse_expr(size)
        elif is_value:
            space.values[name] = _coordinates(parse_expr(value), space)
        elif line == NEVER:
            space.guards = None
        elif space.guards is not None:
            (require,) = parse_system(line).requires
            lhs, rhs = _coordinates(require.lhs, space), _coordinates(require.rhs, space)
            space.guards.append((require.kind, lhs, rhs))
    return space


def _coordinates(e: Expr, space: Space) -> Expr:
    return substitute(e, {name: sym(f"${name}") for name in space.axes})


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def solved(text: str, rules: Sequence[Law]) -> list[str]:
    """What the rules make of an example of sizes, line by line: values, definitions, checks."""
    return _shown(solve(parse_system(text), rules))


def _shown(solution: Solution) -> list[str]:
    lines = [f"{name} = {value}" for name, value in solution.values.items() if value != name]
    lines += [f"{name} = {expr}" for name, expr in solution.system.defines.items()]
    return lines + [str(require) for require in solution.system.requires]


def _normal(line: str) -> str:
    """As the solver writes it."""
    name, equals, value = line.partition(" = ")
    return f"{name} = {parse_expr(value)}" if equals else str(parse_system(line).requires[0])


def outcome(rule: Law, text: str, rules: Sequence[Law]) -> object:
    """What the rules make of an example of the rule's vocabulary, for comparison."""
    if rule.level == "shape":
        return solved(text, rules)
    space = parse_space(text).simplified(rules)
    return space.values, space.guards


def expected(rule: Law) -> object:
    if rule.level == "shape":
        return [_normal(line) for line in _lines(rule.after)]
    space = parse_space(rule.after, parse_space(rule.before).axes)
    return space.values, space.guards


def check_examples(rule: Law, rules: Sequence[Law]) -> None:
    """`UserError` where an example does not do what the file says of it, among all `rules` of the vocabulary."""
    fired: list[Firing] = []
    with tracing(fired.append):
        found = outcome(rule, rule.before, rules)
    if found != expected(rule):
        raise UserError(f"rule {rule.name}: its `before` becomes\n{found}\nand not its `after`:\n{expected(rule)}")
    if not any(firing.rule == rule.name for firing in fired):
        raise UserError(f"rule {rule.name}: does not apply to its `before`")
    if not rule.refused:
        raise UserError(f"rule {rule.name}: has no example that it refuses")
    for reason, text in rule.refused.items():
        fired.clear()
        with tracing(fired.append):
            outcome(rule, text, rules)
        if any(firing.rule == rule.name for firing in fired):
            raise UserError(f"rule {rule.name}: should leave alone '{reason}', but fires: {fired}")
