"""Recording a call as a graph, and replaying it (`runtime/graphs.py` says what happens to which memory)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from dlcb.runtime.arguments import Addresses
from dlcb.runtime.beside import Branch, may_branch
from dlcb.runtime.call import BoundCall, Target, Value, Values
from dlcb.runtime.graphs import GraphDriver, GraphLayout, Recipe
from dlcb.runtime.memory import Tensors, view_at
from dlcb.runtime.plan import Launch, Place, extent
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Derivation, Weights

Update = Callable[[], None]
StepNumber = Callable[[int], None]
_Origin = Literal["fresh", "argument", "weight", "integer"]


@dataclass(slots=True)
class Moving:
    """Memory whose address may change: where the new one is written, and how the nodes that take it learn of that."""

    address: int = 0
    writers: list[Callable[[int], Any]] = field(default_factory=list[Callable[[int], Any]])
    updates: list[Update] = field(default_factory=list[Update])

    def move(self, address: int) -> Iterable[Update]:
        """Write the address; what is left to do."""
        self.address = address
        for write in self.writers:
            write(address)
        return self.updates


@dataclass(frozen=True, slots=True)
class Fresh:
    """Memory of a result, allocated before each replay."""

    allocate: Callable[[], Tensor]
    moving: Moving


@dataclass(frozen=True, slots=True)
class Replay:
    """What happens in a replay: what moves with each of the caller's arguments and each bound tensor, fresh memory, and
    where each result is found (`number` in its origin, as it is or a view of it)."""

    graph: Any
    arguments: Sequence[tuple[int, Moving]]
    weights: Sequence[tuple[str, Moving]]
    fresh: Sequence[Fresh]
    results: Sequence[tuple[_Origin, int, Place | None]]


class RecordedCall:
    """One plan as a graph. A call is `prepare`, then `launch`. Not for two threads at once."""

    def __init__(
        self, recipe: Recipe, driver: GraphDriver, replay: Replay, addresses: Addresses, weights: Weights
    ) -> None:
        self.fixed = recipe.fixed(addresses, weights)
        self._recipe = recipe
        self._driver = driver
        self._replay = replay
        self._addresses = addresses
        self._weights_version = weights.version
        self._is_direct = list(replay.results) == [("fresh", n, None) for n in range(len(replay.fresh))]

    def fits(self, addresses: Addresses, weights: Weights) -> bool:
        """Whether a call with these addresses can be replayed."""
        if addresses == self._addresses and weights.version == self._weights_version:
            return True
        return self._recipe.fixed(addresses, weights) == self.fixed

    def prepare(self, addresses: Addresses, weights: Weights) -> list[Tensor]:
        """Fresh results, all nodes updated to them and to the addresses of a call that fits. Where it fails, the graph
        must not be used any more."""
        updates: dict[Update, None] = {}
        if addresses != self._addresses:
            for index, moving in self._replay.arguments:
                if addresses[index] != moving.address:
                    updates.update(dict.fromkeys(moving.move(addresses[index])))
            self._addresses = addresses
        if weights.version != self._weights_version:
            for name, moving in self._replay.weights:
                if weights.addresses[name] != moving.address:
                    updates.update(dict.fromkeys(moving.move(weights.addresses[name])))
            self._weights_version = weights.version
        fresh: list[Tensor] = []
        for result in self._replay.fresh:
            tensor = result.allocate()
            fresh.append(tensor)
            address = tensor.data_ptr()
            if address != result.moving.address:
                updates.update(dict.fromkeys(result.moving.move(address)))
        for update in updates:
            update()
        return fresh

    def launch(self, fresh: list[Tensor], arguments: Sequence[Value], weights: Sequence[Tensor]) -> list[Value]:
        """Replay; the results of the call, `fresh` among them."""
        self._driver.replay(self._replay.graph)
        if self._is_direct:
            return [*fresh]
        origins: dict[_Origin, Sequence[Value]] = {"fresh": fresh, "argument": arguments, "weight": weights}
        results: list[Value] = []
        for origin, number, place in self._replay.results:
            value = number if origin == "integer" else origins[origin][number]
            results.append(view_at(value, place) if place is not None and isinstance(value, Tensor) else value)
        return results


def record_call(
    recipe: Recipe,
    target: Target,
    driver: GraphDriver,
    values: Values,
    addresses: Addresses,
    weights: Weights,
    quick: bool = False,
) -> RecordedCall:
    """The graph of a call with these values, by `quick` routines of the library if so asked; the call itself is not
    run."""
    recorder = _Recorder(recipe, target, driver, values, quick)
    recorder.graph = driver.record(recorder.record)
    return RecordedCall(recipe, driver, recorder.replay(addresses, weights), addresses, weights)


@dataclass(slots=True)
class _Copy:
    """A copy node's operands."""

    target: int
    source: int
    count: int
    node: Any

    def set_target(self, address: int) -> None:
        self.target = address

    def set_source(self, address: int) -> None:
        self.source = address


class _Part:
    """A plan that was recorded: its argument arrays and kernel nodes. Memory of one beside another is held until both
    are recorded."""

    def __init__(self, call: BoundCall, layout: GraphLayout, program: Program, is_beside: bool = False) -> None:
        self.call = call
        self.layout = layout
        self.program = program
        self.is_beside = is_beside
        self._held: list[Tensor] = []
        self._nodes: dict[int, Any] = {}
        self._updates: dict[int, Update] = {}

    def record(
        self,
        tensors: Tensors,
        library: Tensors,
        driver: GraphDriver,
        then: StepNumber | None = None,
        before: StepNumber | None = None,
    ) -> None:
        """`before` and after each step, `then`, are told its number."""
        plan, target = self.call.plan, self.call.target
        for root in self.layout.own:
            memory = target.allocator.root(plan.roots[root], target.device)
            tensors.roots[root] = library.roots[root] = memory
            if self.is_beside:
                self._held.append(memory)
            self.call.pack.point(root, memory.data_ptr())

        def done(step: int) -> None:
            if isinstance(plan.steps[step], Launch):
                self._nodes[step] = driver.last_node(self.call.streams[step])
            if then is not None:
                then(step)

        self.call.execute(tensors, library, done, before)

    def let_go(self) -> None:
        """All is recorded: what was held is the pool's again."""
        self._held.clear()

    def connect(self, root: int, moving: Moving, driver: GraphDriver, graph: Any) -> None:
        """Let the kernels that take the root follow what moves."""
        pack = self.call.pack
        moving.writers.append(partial(pack.point, root))
        for number in pack.steps_of(root):
            if number not in self._updates:
                step, function = self.call.plan.steps[number], self.call.functions[number]
                assert isinstance(step, Launch)
                self._updates[number] = driver.kernel_update(
                    graph, self._nodes[number], function, step, pack.pointers[number]
                )
            moving.updates.append(self._updates[number])

    def patched(self, kind: str) -> list[tuple[int, int]]:
        """(root, number of the argument) of the patched roots of that kind."""
        roots = self.call.plan.roots
        return [(r, roots[r].number) for r in self.layout.patched if roots[r].kind == kind]


class _Recorder:
    def __init__(self, recipe: Recipe, target: Target, driver: GraphDriver, values: Values, quick: bool) -> None:
        self.recipe = recipe
        self.quick = quick
        self.target = target
        self.driver = driver
        self.values = values
        self.graph: Any = None
        self.derive: _Part | None = None
        self.copies_in: dict[int, _Copy] = {}
        self.copies_out: dict[int, _Copy] = {}
        self.allocations: dict[int, Callable[[], Tensor]] = {}
        """How the memory of results is allocated, by root."""

    def record(self, stream: int) -> None:
        recipe, derivation = self.recipe, self.recipe.derivation
        branch: Branch | None = None
        if derivation is not None:
            if may_branch(derivation):
                branch = Branch(self.driver, derivation, recipe.plan, recipe.program, stream)
            self.derive = self.record_derivation(derivation, stream, branch)
        call = BoundCall(recipe.plan, self.target, stream, self.quick)
        self.main = _Part(call, recipe.layout, recipe.program)
        tensors = call.tensors(self.values, skip=recipe.layout.own)
        library = Tensors(recipe.plan, list(tensors.roots))
        for root in recipe.layout.staged:
            library.roots[root] = self.stage(root, tensors.root(root), stream)
        self.main.record(tensors, library, self.driver, before=None if branch is None else branch.before)
        if branch is not None:
            branch.join()
        for root, _ in self.main.patched("output"):
            self.allocations[root] = allocation_like(tensors.root(root))
        for root in recipe.layout.copied:
            kept = tensors.root(root)
            self.allocations[root] = allocation_like(kept)
            fresh = self.allocations[root]()
            self.copy(self.copies_out, root, fresh, kept, stream)
        if self.derive is not None:
            self.derive.let_go()

    def record_derivation(self, derivation: Derivation, stream: int, branch: Branch | None) -> _Part:
        call = BoundCall(derivation.plan, self.target, stream if branch is None else branch.streams)
        part = _Part(call, self.recipe.derive_layout, derivation.program, branch is not None)
        outputs = derivation.outputs(call.plan)
        tensors = call.tensors(derivation.values, skip=part.layout.own, outputs=outputs)
        if branch is None:
            part.record(tensors, tensors, self.driver)
        else:
            part.record(tensors, tensors, self.driver, branch.derived, branch.before_derived)
        derivation.keep(call.results(tensors))
        return part

    def stage(self, root: int, source: Tensor, stream: int) -> Tensor:
        """Memory that holds the elements of the source, from its first to its last, when the graph runs; as a tensor of
        the same strides."""
        count = extent(source.size(), source.stride())
        flat = torch.empty(count, dtype=source.dtype, device=source.device)
        staged = torch.as_strided(flat, source.size(), source.stride())
        self.copy(self.copies_in, root, staged, source, stream)
        return staged

    def copy(self, copies: dict[int, _Copy], root: int, target: Tensor, source: Tensor, stream: int) -> None:
        """Record a copy between tensors of the same sizes and strides, gaps between elements included."""
        count = extent(source.size(), source.stride()) * source.element_size()
        if count:
            addresses = target.data_ptr(), source.data_ptr()
            self.driver.copy(*addresses, count, stream)
            copies[root] = _Copy(*addresses, count, self.driver.last_node(stream))

    # --- what replays do

    def replay(self, addresses: Addresses, weights: Weights) -> Replay:
        arguments = [self.argument(root, number, addresses) for root, number in self.main.patched("argument")]
        fresh = {root: self.fresh(root, allocate) for root, allocate in self.allocations.items()}
        moving_weights: dict[str, Moving] = {}
        for part in (self.derive, self.main):
            for root, number in part.patched("weight") if part is not None else ():
                assert part is not None
                name = part.program.arguments[number].name
                if name in weights.addresses:
                    moving = moving_weights.setdefault(name, Moving(weights.addresses[name]))
                    part.connect(root, moving, self.driver, self.graph)
        numbers = {root: number for number, root in enumerate(fresh)}
        results = [self.origin(result, numbers) for result in self.recipe.plan.results]
        return Replay(self.graph, arguments, list(moving_weights.items()), list(fresh.values()), results)

    def argument(self, root: int, number: int, addresses: Addresses) -> tuple[int, Moving]:
        index = self.recipe.caller_index[number]
        moving = Moving(addresses[index])
        self.main.connect(root, moving, self.driver, self.graph)
        if root in self.copies_in:
            self.follow(moving, self.copies_in[root], self.copies_in[root].set_source)
        return index, moving

    def fresh(self, root: int, allocate: Callable[[], Tensor]) -> Fresh:
        moving = Moving()
        if root in self.copies_out:
            self.follow(moving, self.copies_out[root], self.copies_out[root].set_target)
        elif root in self.recipe.layout.patched:
            self.main.connect(root, moving, self.driver, self.graph)
        return Fresh(allocate, moving)

    def follow(self, moving: Moving, copy: _Copy, write: Callable[[int], None]) -> None:
        update = self.driver.copy_update(self.graph, copy.node, copy.count)
        moving.writers.append(write)
        moving.updates.append(lambda: update(copy.target, copy.source))

    def origin(self, result: Place | int, fresh: Mapping[int, int]) -> tuple[_Origin, int, Place | None]:
        if isinstance(result, int):
            return "integer", result, None
        place = None if result.whole else result
        if result.root in fresh:
            return "fresh", fresh[result.root], place
        root = self.recipe.plan.roots[result.root]
        if root.kind == "argument":
            return "argument", self.recipe.caller_index[root.number], place
        weights = [n for n, a in enumerate(self.recipe.program.arguments) if a.kind == "weight"]
        return "weight", weights.index(root.number), place


def allocation_like(tensor: Tensor) -> Callable[[], Tensor]:
    """Makes fresh tensors of the tensor's sizes, strides, type and device."""
    return partial(torch.empty_strided, tuple(tensor.size()), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
