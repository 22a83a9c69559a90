"""The fixed point: each requirement is rewritten until no rule applies, and again when a symbol in it becomes known.

What holds at every moment: the requirements that stand, and the bindings, say the same as all that was added. A binding
of an input symbol is itself a check, so solving never forgets what a call must be checked for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from dlcb.dialects.shape.expr import Expr, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import InternalError, UserError
from dlcb.passes.solver.facts import Facts, Said
from dlcb.passes.solver.law import Law, laws

_BUDGET_PER_REQUIREMENT = 200
"""How often requirements may be looked at, for each that was added: more says that rules undo one another."""


class ContradictionError(UserError):
    """Requirements that no sizes meet. The text has both source lines."""


@dataclass(frozen=True)
class Solution:
    values: dict[str, int | str]
    """For every symbol: its literal, or the symbol that stands for all equal ones."""
    system: System
    """What is left: the input symbols, the defined symbols that stand for themselves, and the checks."""


@dataclass(eq=False, slots=True)
class _Item:
    """One requirement under way, or one that stands."""

    order: int
    require: Require
    origin: Require
    bound: str | None = None
    """The input symbol that it binds."""
    held: tuple[str, ...] = ()
    """The symbols whose least value it claims."""
    states: tuple[Expr, Expr] | None = None
    """What it says divides what, or last said while it is looked at again."""
    is_stated: bool = False
    free: frozenset[str] = field(default=frozenset())

    @property
    def said(self) -> Said:
        return Said(self.order, self.origin)


def solve(system: System, rules: Iterable[Law] | None = None) -> Solution:
    """The literals and equal symbols of a system, and what is left to check; by all rules, unless some are given."""
    solver = Solver(rules)
    for name, source in system.symbols.items():
        solver.symbol(name, source)
    for name, expr in system.defines.items():
        solver.define(name, expr)
    solver.add_all(system.requires)
    return solver.solution(system.traced)


class Solver:
    """Incremental: `ContradictionError` comes from the very `add` that breaks an earlier one."""

    def __init__(self, rules: Iterable[Law] | None = None) -> None:
        self._facts = Facts(laws("shape") if rules is None else rules)
        self._sources: dict[str, Source] = {}
        self._defines: list[str] = []
        self._queue: deque[_Item] = deque()
        self._standing: dict[_Item, None] = {}
        self._by_symbol: dict[str, dict[_Item, None]] = defaultdict(dict)
        self._added = 0
        self._budget = 0

    # --- input -----------------------------------------------------------------------------------------------------

    def symbol(self, name: str, source: Source) -> None:
        self._check_new(name)
        self._sources[name] = source
        self._facts.introduce(name, source.at_least)

    def define(self, name: str, expr: Expr) -> None:
        self._check_new(name)
        self._check_known(expr.free, name)
        self._defines.append(name)
        self._facts.bind(name, expr, expr.free)
        self._facts.value(name)

    def add(self, require: Require) -> None:
        self.add_all((require,))

    def add_all(self, requires: Iterable[Require]) -> None:
        for require in requires:
            self._check_known(require.free, require)
            if require.kind == "broadcastable":
                self._facts.state_broadcast(require.lhs, require.rhs)
            self._queue.append(_Item(self._added, require, require))
            self._added += 1
        self._budget += _BUDGET_PER_REQUIREMENT * len(self._queue)
        while self._queue:
            self._process(self._queue.popleft())

    def _check_new(self, name: str) -> None:
        if name in self._sources or name in self._facts.bindings:
            raise InternalError(f"symbol '{name}' is defined twice")

    def _check_known(self, names: frozenset[str], where: str | Require) -> None:
        for name in names:
            if name not in self._sources and name not in self._facts.bindings:
                raise InternalError(f"{where}: symbol '{name}' is used but not defined before")

    # --- one requirement -------------------------------------------------------------------------------------------

    def _process(self, item: _Item) -> None:
        self._budget -= 1
        if self._budget < 0:
            raise InternalError(f"the rules do not come to an end; at: {item.require}")
        for symbol in item.held:
            self._facts.withdraw(item, symbol)
        item.held = ()
        if item.is_stated:
            self._facts.withdraw_divides(item)
            item.is_stated = False
        self._facts.said_by = item.origin.text
        item.require, step = self._facts.engine.step(self._expanded(item.require))
        if step is None:
            self._stand(item)
        elif step.refuted:
            raise ContradictionError(self._explain(item))
        elif step.binding is not None:
            self._bind(item, *step.binding)
        elif step.at_least:
            self._claim(item, step.at_least)
        else:
            self._queue.extendleft([_Item(item.order, require, item.origin) for require in reversed(step.requires)])

    def _expanded(self, require: Require) -> Require:
        lhs, rhs = self._facts.expand(require.lhs), self._facts.expand(require.rhs)
        if lhs is require.lhs and rhs is require.rhs:
            return require
        return Require(require.kind, lhs, rhs, require.text)

    def _bind(self, item: _Item, symbol: str, value: Expr) -> None:
        self._facts.bind(symbol, value, item.origin.free, item.said)
        item.bound = symbol
        self._standing[item] = None
        self._wake(symbol)

    def _claim(self, item: _Item, at_least: tuple[tuple[str, int], ...]) -> None:
        for symbol, least in at_least:
            self._facts.claim(item, symbol, least, item.said)
            self._wake(symbol)
        item.held = tuple([symbol for symbol, _ in at_least])
        self._stand(item)

    def _stand(self, item: _Item) -> None:
        if item.require.kind == "divides" and item.require.rhs.free:
            self._state_multiple(item)
        self._standing[item] = None
        item.free = item.require.free
        for symbol in item.free:
            self._by_symbol[symbol][item] = None

    def _state_multiple(self, item: _Item) -> None:
        """A `divides` that stands is a fact; news of it wakes what mentions the multiple."""
        states = item.require.lhs, item.require.rhs
        self._facts.claim_divides(item, *states)
        item.is_stated = True
        if states != item.states:
            item.states = states
            for symbol in item.require.rhs.free:
                self._wake(symbol)

    def _wake(self, symbol: str) -> None:
        """Whatever stands and mentions the symbol is looked at again."""
        for item in list(self._by_symbol.get(symbol, ())):
            for other in item.free:
                del self._by_symbol[other][item]
            del self._standing[item]
            self._queue.append(item)

    def _explain(self, item: _Item) -> str:
        """Names the requirement that came last of those that clash, for the others were fine without it."""
        others = [said for said in self._facts.sayers(item.origin.free) if said.require is not item.origin]
        last = max(others, key=lambda said: said.order, default=item.said)
        if last.order > item.order:
            text = f"{_title(last.require)} can not hold: {_title(item.origin)} is then {item.require}"
            others.remove(last)
        else:
            text = f"{_title(item.origin)} can not hold"
            text += f": it says {item.require}" if str(item.require) != str(item.origin) else ""
        because = dict.fromkeys(said.require.text for said in others if said.require.text)
        text += f", because of {'; '.join(because)}" if because else ""
        roots = sorted(self._roots(item.origin).union(*[self._roots(said.require) for said in others]))
        meaning = ", ".join(f"{name} is {self._sources[name]}" for name in roots if name in self._sources)
        return f"{text} ({meaning})" if meaning else text

    def _roots(self, require: Require) -> set[str]:
        roots: set[str] = set()
        pending = list(require.free)
        while pending:
            name = pending.pop()
            if name in self._sources:
                roots.add(name)
            else:
                pending += self._facts.bindings[name].named
        return roots

    # --- output ----------------------------------------------------------------------------------------------------

    def solution(self, traced: dict[str, int] | None = None) -> Solution:
        """What is known after all that was added."""
        names: dict[Expr, str] = {}
        values: dict[str, int | str] = {}
        system = System(symbols=dict(self._sources), traced=dict(traced or {}))
        for name in (*self._sources, *self._defines):
            value = self._facts.simplify(sym(name))
            values[name] = value.value if value.value is not None else names.setdefault(value, value.name or name)
            if values[name] == name and name not in self._sources:
                system.defines[name] = value
        for item in sorted(self._standing, key=lambda item: item.order):
            system.requires.append(self._check(item))
        return Solution(values, system)

    def _check(self, item: _Item) -> Require:
        if item.bound is None:
            return item.require
        symbol = sym(item.bound)
        return Require(item.require.kind, symbol, self._facts.simplify(symbol), item.require.text)


def _title(require: Require) -> str:
    return f"{require.text or 'sizes'}: {require}"
