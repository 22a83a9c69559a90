"""The one registered dialect `dlcb`, which joins the five levels: xDSL looks names up by the part before the first
dot."""

from xdsl.ir import Dialect

from dlcb.dialects import coord, cuda, graph, host, shape

_LEVELS = (graph, shape, coord, cuda, host)

DLCB = Dialect(
    "dlcb",
    [op for level in _LEVELS for op in level.OPS],
    [attribute for level in _LEVELS for attribute in level.ATTRS],
)
