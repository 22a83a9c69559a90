"""The one file that touches API of torch that is not public."""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false, reportUnknownMemberType=false

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Container, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from types import BuiltinFunctionType, CellType, FunctionType, SimpleNamespace
from typing import Any, cast

import torch
from torch._C import _is_any_autocast_enabled as is_any_autocast_enabled
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import TracingContext
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "TorchFunctionMode",
    "TreeSpec",
    "flatten",
    "flatten_with_paths",
    "function_named",
    "is_any_autocast_enabled",
    "is_getter",
    "is_inside_transform",
    "is_overload",
    "is_packet",
    "is_python_function",
    "quiet_fakes",
    "real_tensors",
    "resolve_packet",
    "schema_of",
    "storage_key",
    "symbolic_sizes",
    "unflatten",
    "without_dispatch",
    "without_out",
]

TreeSpec = pytree.TreeSpec


def flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    _register_dataclasses(tree)
    return pytree.tree_flatten(tree)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    _register_dataclasses(tree)
    return pytree.tree_map(function, tree)


def unflatten(leaves: list[Any], spec: TreeSpec) -> Any:
    return pytree.tree_unflatten(leaves, spec)


def flatten_with_paths(tree: Any) -> tuple[list[tuple[list[Any], Any]], TreeSpec]:
    """Leaves with their paths: indices, keys and attribute names."""
    _register_dataclasses(tree)
    leaves, spec = pytree.tree_flatten_with_path(tree)
    return [([_key(k) for k in path], leaf) for path, leaf in leaves], spec


def _key(entry: Any) -> Any:
    return next(getattr(entry, name) for name in ("idx", "key", "name") if hasattr(entry, name))


def _register_dataclasses(tree: Any) -> None:
    """Make dataclasses of the user's known to torch's trees, as torch does for those of libraries."""
    if isinstance(tree, (tuple, list)):
        for item in tree:  # pyright: ignore[reportUnknownVariableType]
            _register_dataclasses(item)
    elif isinstance(tree, dict):
        for item in tree.values():  # pyright: ignore[reportUnknownVariableType]
            _register_dataclasses(item)
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        if type(tree) not in pytree.SUPPORTED_NODES:
            pytree.register_dataclass(type(tree))
        for field in dataclasses.fields(tree):
            _register_dataclasses(getattr(tree, field.name))


def real_tensors() -> AbstractContextManager[Any]:
    """Tensors made inside are real although a FakeTensorMode is on."""
    return unset_fake_temporarily()


@contextmanager
def quiet_fakes() -> Generator[None]:
    """torch logs a traceback for every operation that fake tensors refuse; to capture that is an answer like others."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def symbolic_sizes() -> AbstractContextManager[Any]:
    """Operations that torch makes of others keep symbolic sizes: the C++ of some, such as `matmul`, takes numbers."""
    return enable_python_dispatcher()


# Fake tensors


def fake_state(mode: FakeTensorMode, device: torch.device) -> dict[str, Any]:
    """What is the same of all fakes of a mode on a device."""
    with torch._C._DisableTorchDispatch():
        return dict(vars(FakeTensor(mode, torch.empty(0, device="meta"), device)))


def fake_tensor(
    state: dict[str, Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
    memory: tuple[torch.UntypedStorage, int] | None = None,
) -> FakeTensor:
    """A fake in memory of its own, or in other memory from an offset on, in elements. `state` is that of the device."""
    with torch._C._DisableTorchDispatch():
        if memory is None:
            meta = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        else:
            meta = torch.empty(0, dtype=dtype, device="meta").set_(*memory, shape, strides)
        fake = torch.Tensor._make_subclass(
            FakeTensor, meta, False, dispatch_device=True, device_for_backend_keys=device
        )
        torch._C._set_throw_on_mutable_data_ptr(fake)
    vars(fake).update(state)
    return fake


def meta_memory(size_bytes: int) -> torch.UntypedStorage:
    """Memory for fakes."""
    return torch.UntypedStorage(size_bytes, device="meta")


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether sizes, strides, offset, dtype and device are all that operations can know of a tensor, elements apart."""
    if type(tensor) not in _PLAIN_TYPES or tensor.layout is not torch.strided or tensor.device.type == "meta":
        return False
    is_known = getattr(tensor, "constant", None) is not None
    return not (is_known or tensor.is_quantized or tensor.is_conj() or tensor.is_neg())


_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter, FakeTensor)


def is_named_result(result: Any) -> bool:
    """A sequence whose items have names, such as `torch.return_types.max`."""
    return type(result).__module__ == "torch.return_types"


def ambient_choices(function: Callable[..., Any]) -> tuple[Any, ...]:
    """What an operation goes by beside its arguments: which forms of attention a program allows."""
    return _attention_choices() if "attention" in getattr(function, "__name__", "") else ()


def _attention_choices() -> tuple[Any, ...]:
    cuda = torch.backends.cuda
    return (
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
        tuple(torch._C._get_sdp_priority_order()),
    )


def storage_key(tensor: torch.Tensor) -> int:
    """Equal for tensors that share memory, while one of them lives."""
    return tensor.untyped_storage()._cdata


def function_named(name: str) -> Callable[..., Any] | None:
    """The C function of this ATen name, as a method of tensors or a function on them."""
    for place in cast(tuple[Any, ...], (torch.Tensor, torch, torch._C._nn)):
        found = getattr(place, name, None)
        if found is not None:
            return found
    return None


def c_method(name: str) -> Callable[..., Any] | None:
    """The method of tensors of this name that is written in C."""
    return getattr(torch._C.TensorBase, name, None)


def _never(*_: Any) -> bool:
    return False


_DISPATCH_TESTS = dict.fromkeys(
    ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"), _never
)
_TESTS = frozenset(_DISPATCH_TESTS)
_QUIET_OVERRIDES = SimpleNamespace(**{**vars(torch.overrides), **_DISPATCH_TESTS})
"""Stands for the module `torch.overrides` where a function looks the tests up in it."""


def without_dispatch(function: FunctionType) -> FunctionType:
    """The same Python function of torch's, which runs its body instead of asking a mode first."""
    copy = _clones.get(function)
    return _clone(function) if copy is None else copy


_clones: dict[FunctionType, FunctionType] = {}
_globals: dict[int, dict[str, Any]] = {}


def _clone(function: FunctionType) -> FunctionType:
    space = _globals.get(id(function.__globals__))
    if space is None:
        space = _globals[id(function.__globals__)] = {**function.__globals__, **_DISPATCH_TESTS}
        if space.get("overrides") is torch.overrides:
            space["overrides"] = _QUIET_OVERRIDES
    cells = function.__closure__
    own = cells and tuple(CellType() if _is_dispatching(cell.cell_contents) else cell for cell in cells)
    copy = FunctionType(function.__code__, space, function.__name__, function.__defaults__, own)
    copy.__kwdefaults__ = function.__kwdefaults__
    _clones[function] = copy
    for cell, new in zip(cells or (), own or (), strict=True):
        if new is not cell:
            new.cell_contents = without_dispatch(cell.cell_contents)
    return copy


def _is_dispatching(content: Any) -> bool:
    """A function in a closure (often the function itself) that would ask a mode again."""
    return isinstance(content, FunctionType) and not _TESTS.isdisjoint(content.__code__.co_names)


def is_python_function(function: Any) -> bool:
    return isinstance(function, FunctionType)


def is_getter(function: Any) -> bool:
    """`Tensor.shape.__get__` and its like."""
    return getattr(function, "__name__", "") == "__get__" and not isinstance(function, BuiltinFunctionType)


# Overloads of `torch.ops`


@dataclasses.dataclass(frozen=True)
class Schema:
    """What an overload says of its arguments."""

    name: str
    """That of its packet; outside ATen with its namespace, `mylib.op`."""
    by_position: tuple[tuple[str, Any], ...]
    """Argument names and defaults; all without a default come first."""
    written: frozenset[str]

    def in_place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with all that may be positional in their places. A None by keyword is as if not given."""
        left = {key: value for key, value in kwargs.items() if value is not None}
        rest = self.by_position[len(args) :]
        last = max((at for at, (name, _) in enumerate(rest, 1) if name in left), default=0)
        return (*args, *(left.pop(name, default) for name, default in rest[:last])), left


def is_overload(function: Any) -> bool:
    return isinstance(function, (OpOverload, OpOverloadPacket))


def is_packet(function: Any) -> bool:
    return isinstance(function, OpOverloadPacket)


def schema_of(overload: OpOverload) -> Schema:
    arguments = overload._schema.arguments
    return Schema(
        overload._schema.name.removeprefix("aten::"),
        tuple((a.name, a.default_value) for a in arguments if not a.kwarg_only),
        frozenset(a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write),
    )


def resolve_packet(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
    """The overload that torch chooses for these arguments."""
    name = torch._C._jit_resolve_packet(packet._qualified_op_name, *args, **kwargs)
    return getattr(packet, name or "default")


def without_out(overload: OpOverload) -> OpOverload | None:
    """The overload of the same arguments but `out`."""
    wanted = [(a.name, str(a.type)) for a in overload._schema.arguments if a.name != "out"]
    packet = overload.overloadpacket
    for name in packet.overloads():
        found = getattr(packet, name)
        if [(a.name, str(a.type)) for a in found._schema.arguments] == wanted:
            return found
    return None


def example_of(node: torch.fx.Node) -> Any:
    """The fake value that torch's compiler has for a graph's input."""
    return node.meta.get("val", node.meta.get("example_value"))


def symbolic_name(size: Any) -> str | None:
    """What torch's compiler calls a size; None where it knows the number."""
    if not isinstance(size, torch.SymInt):
        return None
    expr = cast(Any, size).node.expr
    return None if expr.is_number else str(expr)


def compound_sizes(sizes: Iterable[Any]) -> dict[str, Any]:
    """The sizes that are functions of others, by their names."""
    named = {name: size.node.expr for size in sizes if (name := symbolic_name(size)) is not None}
    return {name: expr for name, expr in named.items() if not expr.is_Symbol}


def generator_state(device: torch.device) -> Callable[[], torch.Tensor]:
    """What reads the state of the default generator of a kind of device."""
    return torch.get_rng_state if device.type == "cpu" else getattr(torch, device.type).get_rng_state


def functional_batch_norm() -> tuple[str, Callable[..., Any]]:
    """Batch norm in training that returns its running statistics, by its ATen name."""
    return "_native_batch_norm_legit_functional", torch.ops.aten._native_batch_norm_legit_functional.default


def is_static_input(node: torch.fx.Node) -> bool:
    """Whether an input of Dynamo's graph is a parameter or buffer."""
    return "_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {})


def is_inside_transform() -> bool:
    """Whether tensors are those of `torch.func.vmap`, `grad` and the like at the moment."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_for_aot(node: torch.fx.Node) -> bool:
    """Whether a node of Dynamo's graph holds graphs of its own, transforms what follows (`vmap`, `jvp`), or changes the
    dtypes that others compute in."""
    target = node.target
    if isinstance(target, torch._ops.HigherOrderOperator) or getattr(target, "__name__", "") == "_enter_autocast":
        return True
    return (getattr(target, "__module__", None) or "").startswith(("torch._functorch", "torch._C._functorch"))


_ONLY_WITHOUT_GRADIENTS = "_scaled_dot_product_flash_attention_for_cpu"
"""torch writes it out without the logarithms of its sums, which its backward reads."""


def _stays(op: OpOverload, whole: Container[str]) -> bool:
    name = schema_of(op).name
    return name in whole or name == _ONLY_WITHOUT_GRADIENTS


def _keep_saved_tensors() -> None:
    """The backward graph does not reuse the memory of what was saved for it, so it can run twice."""
    context = TracingContext.try_get()
    if context is not None and context.fw_metadata is not None:
        context.fw_metadata.bw_donated_idxs = []


def through_aot_autograd(
    graph: torch.fx.GraphModule,
    example_inputs: Any,
    compile_graph: Callable[[torch.fx.GraphModule, Any], Callable[..., Any]],
    whole: Container[str],
) -> Callable[..., Any]:
    """Dynamo's graph as AOTAutograd's ATen graphs, forward and backward, each compiled. ATen operations of the names
    `whole` stay as they are."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func  # pyright: ignore[reportPrivateImportUsage]

    def compile_boxed(traced: torch.fx.GraphModule, inputs: Any) -> Any:
        _keep_saved_tensors()
        return make_boxed_func(compile_graph(traced, inputs))

    every = cast("dict[Any, Any]", cast(Any, torch._decomp).core_aten_decompositions())
    table = {op: how for op, how in every.items() if not _stays(op, whole)}
    backend = aot_autograd(fw_compiler=compile_boxed, decompositions=table, keep_inference_input_mutations=True)
    return backend(graph, example_inputs)
