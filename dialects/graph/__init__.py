"""`dlcb.graph`: tensor programs with value semantics. One file an op family; the contract is in `base`."""

from xdsl.ir import Attribute, Operation

from dlcb.dialects.graph import (
    composite,
    contract,
    convolution,
    creation,
    elementwise,
    indexing,
    reduce,
    scan,
    structure,
    view,
    window,
)
from dlcb.dialects.graph.types import DenseLayout, DimsAttr, StridedLayout, TensorType

OPS: list[type[Operation]] = [
    *elementwise.OPS,
    *creation.OPS,
    *view.OPS,
    *reduce.OPS,
    *scan.OPS,
    *window.OPS,
    *indexing.OPS,
    *contract.OPS,
    *convolution.OPS,
    *composite.OPS,
    *structure.OPS,
]
ATTRS: list[type[Attribute]] = [TensorType, DenseLayout, StridedLayout, DimsAttr]
