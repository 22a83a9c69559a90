"""Cut a program into regions that are compiled and operations that stay in eager.

Phases: what needs no eager result is in region 0; an eager operation runs after the region of its operands; what needs
an eager result of phase n is in region n + 1. So each region is convex, there are as few as the program allows, and one
pass over the records finds them. A region that is worth less than its call is left to eager too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dlcb.dialects.shape.expr import Expr, substitute
from dlcb.errors import UnsupportedError
from dlcb.frontend.importer import Survey
from dlcb.frontend.tracing.eager import expressions_of, values_of
from dlcb.frontend.tracing.records import Captured, Record, Update, Value, element_symbol, value_name
from dlcb.frontend.tracing.tracker import Check

CHEAP = frozenset(
    {
        "alias", "arange", "as_strided", "broadcast_to", "detach", "diagonal", "empty", "expand", "expand_as", "full",
        "full_like", "movedim", "narrow", "new_full", "new_ones", "new_zeros", "ones", "ones_like", "permute",
        "scalar_tensor", "select", "slice", "squeeze", "t", "transpose", "unfold", "unflatten", "unsqueeze", "view",
        "zeros", "zeros_like",
    }
)  # fmt: skip
"""Views and constants: a region makes them again rather than take them from another one."""

SHAPING = frozenset({"atleast_1d", "flatten", "reshape", "reshape_as", "view_as"})
"""Views of what lies so that it can be viewed, as an argument does whose memory a result shares."""

HEAVY = frozenset(
    {
        "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "convolution", "linear", "matmul",
        "mm", "scaled_dot_product_attention", "softmax", "_softmax", "layer_norm", "native_layer_norm",
    }
)  # fmt: skip
"""One of these makes a region worth its call."""

LEAST_WORTH = 2
"""Operations other than cheap ones that a region must have."""


@dataclass(slots=True)
class Region:
    """A part of the program that is compiled."""

    records: list[Record] = field(default_factory=list[Record])
    updates: list[Update] = field(default_factory=list[Update])
    """What it writes into inputs and weights, after which nothing reads what they were."""
    takes: list[Value] = field(default_factory=list[Value])
    """What it reads of inputs, of other regions and of eager operations."""
    gives: list[Value] = field(default_factory=list[Value])
    """What others need of it."""


@dataclass(slots=True)
class Split:
    """The program as steps in order."""

    steps: list[Region | Record]
    left: dict[Record, str]
    """What runs in eager, and why."""
    updates: list[Update]
    """What is written after all steps."""
    views_of_updated: list[Record]
    """Views of what was updated, made anew at the end, so that they are views of the argument."""

    @property
    def regions(self) -> list[Region]:
        return [step for step in self.steps if isinstance(step, Region)]


class Sizes:
    """Which tensors of eager operations a size comes from."""

    def __init__(self, captured: Captured, survey: Survey) -> None:
        self._survey = survey
        made = [value for place in survey.left_out for value in captured.records[place].results]
        self._eager = {f"{value_name(value)}_{dim}": value for value in made for dim in range(len(value.shape))}
        self._eager |= {element_symbol(value): value for value in made}

    def expanded(self, expr: Expr) -> Expr:
        """Over sizes of inputs and of eager results alone."""
        return self._survey.system.value(substitute(expr, self._survey.sizes))

    def sources(self, expr: Expr) -> Iterable[Value]:
        return (self._eager[name] for name in self.expanded(expr).free if name in self._eager)

    def sources_of(self, check: Check) -> set[Value]:
        return {value for side in (check.lhs, check.rhs) for value in self.sources(side)}


def split(captured: Captured, survey: Survey) -> Split:
    left = {captured.records[place]: reason for place, reason in survey.left_out.items()}
    sizes = Sizes(captured, survey)
    while True:
        found = _Phases(captured, left, sizes)
        small = [region for region in found.regions if not _is_worth(region)]
        if not small:
            return found.split()
        for region in small:
            why = f"a region of {len(region)} operations, {_work(region)} of them not views, is not worth a call"
            left |= {record: f"{record.op}: {record.line}: {why}" for record in region}


def _work(records: Sequence[Record]) -> int:
    return sum(record.op not in CHEAP for record in records)


def _is_worth(records: Sequence[Record]) -> bool:
    return _work(records) >= LEAST_WORTH or any(record.op in HEAVY for record in records)


class _Phases:
    def __init__(self, captured: Captured, left: Mapping[Record, str], sizes: Sizes) -> None:
        self._captured = captured
        self._left = dict(left)
        self._made_by: dict[Value, Record] = {value: r for r in captured.records for value in r.results}
        self._phase: dict[Record, int] = {}
        ordered = 0
        for record in captured.records:
            needed = [*values_of(record), *(v for e in expressions_of(record) for v in sizes.sources(e))]
            phase = max((self._ready(value, record in left) for value in needed), default=0)
            if record.ordered:
                phase = ordered = max(phase, ordered)
            self._phase[record] = phase
        count = max(self._phase.values(), default=0) + 1
        parts: list[list[Record]] = [[] for _ in range(count)]
        self._eager: list[list[Record]] = [[] for _ in range(count)]
        for record, phase in self._phase.items():
            (self._eager if record in left else parts)[phase].append(record)
        self._parts = parts
        self.regions = [part for part in parts if part]

    def _ready(self, value: Value, in_eager: bool) -> int:
        """The phase from which a value can be read."""
        made = self._made_by.get(value)
        if made is None:
            return 0
        return self._phase[made] + (made in self._left and not in_eager)

    def split(self) -> Split:
        regions = [Region(self._with_cheap(part, phase)) for phase, part in enumerate(self._parts)]
        final, views = self._place_updates(regions)
        for region in regions:
            region.takes = self._taken(region)
        wanted = self._wanted(regions, final)
        for phase, region in enumerate(regions):
            own = [v for record in self._parts[phase] for v in record.results]
            region.gives = [v for v in own if v in wanted]
        steps: list[Region | Record] = []
        for region, eager in zip(regions, self._eager, strict=True):
            steps += [region, *eager] if region.gives or region.updates else eager
        return Split(steps, self._left, final, views)

    def _with_cheap(self, part: list[Record], phase: int) -> list[Record]:
        """The records of a region, and before them the cheap ones of earlier regions that they read."""
        found: dict[Record, None] = {}
        for record in part:
            pending = [record]
            while pending:
                top = pending[-1]
                missing = [m for v in values_of(top) if (m := self._again(v, phase)) is not None and m not in found]
                if missing and top not in found:
                    pending += missing
                else:
                    found[pending.pop()] = None
        return list(found)

    def _again(self, value: Value, phase: int) -> Record | None:
        made = self._made_by.get(value)
        cheap = made is not None and made.op in CHEAP and made not in self._left and self._phase[made] < phase
        return made if cheap else None

    def _taken(self, region: Region) -> list[Value]:
        made = {value for record in region.records for value in record.results}
        read = [value for record in region.records for value in values_of(record)]
        read += [value for update in region.updates for value in (update.value, update.target)]
        weights = {weight.value for weight in self._captured.weights}
        return list(dict.fromkeys(v for v in read if v not in made and v not in weights))

    def _wanted(self, regions: list[Region], final: list[Update]) -> set[Value]:
        wanted = {v for v in self._captured.outputs if isinstance(v, Value)}
        wanted |= {v for region in regions for v in region.takes} | {update.value for update in final}
        wanted |= {v for records in self._eager for record in records for v in values_of(record)}
        return wanted

    # Updates

    def _place_updates(self, regions: list[Region]) -> tuple[list[Update], list[Record]]:
        """Give each update to the region that makes its value, if nothing reads the old value later and no result lies
        in what is updated. The others are left, with the views of what they write that are results."""
        aliased = {alias.of for alias in self._captured.aliases}
        final: list[Update] = []
        views: list[Record] = []
        for update in self._captured.updates:
            made = self._made_by.get(update.value)
            phase = None if made is None or made in self._left else self._phase[made]
            if (
                phase is not None
                and update.target not in aliased
                and not self._read_later(update.target, phase, regions)
            ):
                regions[phase].updates.append(update)
                continue
            final.append(update)
            for alias in self._captured.aliases:
                if alias.of is update.target:
                    views += self._chain(self._captured.outputs[alias.output], update.value)
        return final, list(dict.fromkeys(views))

    def _read_later(self, target: Value, phase: int, regions: list[Region]) -> bool:
        later = [record for region in regions[phase + 1 :] for record in region.records]
        later += [record for records in self._eager[phase:] for record in records]
        return target in self._captured.outputs or any(target in values_of(record) for record in later)

    def _chain(self, value: Value, origin: Value) -> list[Record]:
        """The views from what is written into an argument to a result."""
        chain: list[Record] = []
        while value is not origin:
            made = self._made_by.get(value)
            if made is None or made.op not in CHEAP | SHAPING or not isinstance(made.args[0], Value):
                raise UnsupportedError(f"result {value} lies in an argument that is written, but is no view of it")
            chain.insert(0, made)
            value = made.args[0]
        return chain
