"""Draws calls with wrong arguments, and holds compiled programs to what may come of them: eager's result, or an error
before anything is launched.

Kernels only note their launches while calls are drawn; then those that were needed are compiled at once, and the calls
that were taken run again, for their values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from torch import Tensor

from dlcb.errors import UnsupportedError, UserError
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import rehearsing
from dlcb.tests.programs.unit import Unit
from dlcb.tests.wrong_arguments import (
    Call,
    Change,
    Subject,
    changes,
    has_form,
    plan_has_form,
    plan_or_refusal,
    refusal_of,
    value_difference,
    without_elements,
)

COUNT = int(os.environ.get("DLCB_WRONG_ARGUMENTS", "24"))
"""Calls of each program."""
OF_A_MODEL = max(COUNT, 36)
ONLY_EAGER_REFUSES = ("Expected X.is_contiguous",)
"""What a kernel of eager's can't take, by how its error begins: layouts that mean nothing to the operation."""


@dataclass
class Explored:
    """What came of the calls of one program."""

    model: CompiledModel
    refused: int = 0
    taken: list[tuple[Call, list[Any]]] = field(default_factory=list[tuple[Call, list[Any]]])
    failure: AssertionError | None = None

    def look(self, call: Call) -> None:
        if call.is_huge:
            self._look_at_huge(call)
            return
        found = refusal_of(self.model, call)
        if isinstance(found, UserError):
            self.refused += 1
        else:
            self.taken.append((call, found))

    def _look_at_huge(self, call: Call) -> None:
        plan = plan_or_refusal(self.model, call)
        if isinstance(plan, UserError):
            self.refused += 1
            return
        eager = without_elements(call)
        assert not isinstance(eager, Exception), f"{call}: eager raises {eager}"
        assert plan_has_form(plan, eager), call

    def right_where_taken(self, unset_if_empty: bool = False) -> None:
        """Eager gives the same for each call that was taken; with `unset_if_empty`, other values where an argument has
        no elements."""
        for call, form in self.taken:
            eager = call.eager()
            if isinstance(eager, Exception):
                alone = str(eager).startswith(ONLY_EAGER_REFUSES)
                assert alone or self._fails(call), f"{call}: eager raises {type(eager).__name__}: {eager}"
                continue
            assert has_form(form, eager), f"{call}: {form}, eager gives {eager[: len(form)]}"
            results, arguments = call.run(self.model)
            wrong = value_difference(call, [*results, *arguments], eager)
            assert wrong is None or (unset_if_empty and _is_empty(call)), f"{call}: {wrong}"

    def _fails(self, call: Call) -> bool:
        """Does an element turn out to be wrong?"""
        try:
            call.run(self.model)
        except (IndexError, RuntimeError):
            return True
        return False


@dataclass
class Explorer:
    """Programs by name, whose kernels are compiled together."""

    names: Sequence[str]
    subject_of: Callable[[str], Subject]
    unset: tuple[str, ...] = ()
    """Programs of which eager leaves results of no elements as the memory was."""
    _unit: Unit = field(default_factory=Unit)
    _explored: dict[str, Explored | UnsupportedError] = field(default_factory=dict[str, "Explored | UnsupportedError"])

    def refuses_before_it_launches(self, name: str) -> None:
        failure = self._of(name).failure
        assert failure is None, failure

    def is_right_where_it_takes_a_call(self, name: str) -> None:
        self._compiled()
        self._of(name).right_where_taken(name in self.unset)

    def counts(self) -> tuple[int, int]:
        """How many calls were refused, how many taken."""
        found = [one for one in self._compiled() if isinstance(one, Explored)]
        return sum(one.refused for one in found), sum(len(one.taken) for one in found)

    def _compiled(self) -> list[Explored | UnsupportedError]:
        """All programs, after which their kernels are compiled when they are launched."""
        found = list(map(self._found, self.names))
        self._unit.collects = False
        return found

    def _of(self, name: str) -> Explored:
        found = self._found(name)
        return found if isinstance(found, Explored) else pytest.skip(str(found))

    def _found(self, name: str) -> Explored | UnsupportedError:
        if name not in self._explored:
            with self._unit.collecting():
                self._explored[name] = self._explore(self.subject_of(name))
        return self._explored[name]

    def _explore(self, subject: Subject) -> Explored | UnsupportedError:
        try:
            model = self._unit.add_program(subject.program, subject.kwargs or subject.args)
        except UnsupportedError as unsupported:
            return unsupported
        return explored(model, subject, COUNT)


def explored(model: CompiledModel, subject: Subject, count: int) -> Explored:
    """Draws calls of a model whose kernels do nothing yet."""
    found = Explored(model)

    @seed(sum(map(ord, subject.name)))
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    @given(changes(subject.leaves))
    def explore(made: list[Change]) -> None:
        found.look(subject.call(made))

    try:
        explore()
    except AssertionError as failure:
        found.failure = failure
    return found


def refuses_or_agrees(model: CompiledModel, subject: Subject) -> None:
    """A call with wrong arguments to a compiled model is refused before a launch, or answered as in eager. Both are
    common."""
    found = explored(rehearsing(model), subject, OF_A_MODEL)
    assert found.failure is None, found.failure
    assert min(found.refused, len(found.taken)) > 0
    replace(found, model=model).right_where_taken()


def _is_empty(call: Call) -> bool:
    return any(isinstance(leaf, Tensor) and not leaf.numel() for leaf in call.leaves())
