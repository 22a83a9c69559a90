"""The table of graphs that the middle of the compiler must get right: all of `tests/cases/`."""

from dlcb.tests.cases import columns, concatenations, library, pointwise, reductions, scans, updates, views, windows
from dlcb.tests.cases.table import CASES

PARTS = (pointwise, views, reductions, columns, scans, windows, updates, concatenations, library)

__all__ = ["CASES", "PARTS"]
