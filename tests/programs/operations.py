"""All operations that random programs call."""

from dlcb.tests.programs import combining, pointwise, shaping, writing
from dlcb.tests.programs.table import OPERATIONS

PARTS = (pointwise, shaping, combining, writing)

__all__ = ["OPERATIONS", "PARTS"]
