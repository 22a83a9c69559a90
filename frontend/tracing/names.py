"""How capture names what torch's C functions do: ATen's names and argument names, and what it refuses."""

from __future__ import annotations

ALIASES: dict[str, str] = {
    "__eq__": "eq",
    "__ne__": "ne",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__invert__": "bitwise_not",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__matmul__": "matmul",
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "true_divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_erf": "erf",
    "special_log1p": "log1p",
    "special_softmax": "softmax",
    "special_log_softmax": "log_softmax",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "linalg_matmul": "matmul",
    "unsafe_chunk": "chunk",
    "unsafe_split": "split",
    "_unsafe_view": "view",
    "ravel": "flatten",
    "sym_size": "size",
    "sym_numel": "numel",
    "sym_stride": "stride",
    "sym_storage_offset": "storage_offset",
    "sym_is_contiguous": "is_contiguous",
}

KEYWORDS: dict[str, str] = {"axis": "dim", "keepdims": "keepdim", "x2": "other"}
"""Other words that torch takes for ATen's argument names."""

FIRST_ARGUMENT = ("input", "self", "x", "x1", "tensors")
"""Words for the first argument; it is always recorded by position."""

DROPPED_KEYWORDS = frozenset(
    {"device", "layout", "requires_grad", "pin_memory", "memory_format", "non_blocking", "copy"}
)
"""Arguments that say nothing about values."""

SIZELESS = DROPPED_KEYWORDS | {"dtype", "generator", "out"}
"""Arguments that say nothing about sizes."""

ALIASING = frozenset({"detach", "detach_", "alias", "lift_fresh"})
"""The same tensor under another name."""

CONVERSIONS = frozenset(
    {
        "to",
        "_to_copy",
        "type",
        "type_as",
        "float",
        "double",
        "half",
        "bfloat16",
        "byte",
        "char",
        "short",
        "int",
        "long",
        "bool",
        "cpu",
        "cuda",
    }
)
"""Recorded as `to(self, dtype)`."""

NOT_RECORDED = frozenset(
    {
        "dim", "ndimension", "element_size", "data_ptr", "is_floating_point", "is_complex", "is_signed",
        "is_conj", "is_neg", "is_inference",
        "is_nonzero_static", "get_device", "is_same_size", "is_set_to", "_is_view", "result_type", "can_cast",
        "promote_types", "is_pinned", "has_names", "requires_grad_", "retain_grad",
        "_has_compatible_shallow_copy_type", "is_shared", "is_distributed", "__hash__", "_is_zerotensor",
        "is_coalesced",
    }
)  # fmt: skip
"""Questions about a tensor whose answers don't depend on its elements or sizes."""

RESHAPING_IN_PLACE = frozenset(
    {
        "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "set_",
        "as_strided_", "apply_", "map_", "map2_", "rename_",
    }
)  # fmt: skip
"""In-place forms that change more than elements."""

RANDOM = frozenset(
    {
        "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli",
        "multinomial", "normal", "poisson", "binomial", "uniform", "exponential", "cauchy", "geometric",
        "log_normal", "random", "native_dropout", "rrelu_with_noise",
    }
)  # fmt: skip

DROPOUTS = frozenset({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})


def aten_name(name: str) -> str:
    """ATen's name of what torch calls so; an overload's is that of its packet."""
    packet = name.partition(".")[0]
    return ALIASES.get(packet, packet)
