"""What the rules of each vocabulary are derived from."""

from __future__ import annotations

from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.law import PROVED, REFUTED, ExprLaw, RequireLaw, Step
from dlcb.passes.solver.ranges import Ranges

__all__ = ["PROVED", "REFUTED", "CoordinateRule", "ExprRule", "GuardRule", "RequireRule", "Step"]


class RequireRule(RequireLaw[Facts]):
    """Of requirements on sizes."""

    level = "shape"


class ExprRule(ExprLaw[Facts]):
    """Of expressions of sizes."""

    level = "shape"


class GuardRule(RequireLaw[Ranges]):
    """Of guards: requirements on coordinates."""

    level = "coordinate"


class CoordinateRule(ExprLaw[Ranges]):
    """Of expressions of coordinates."""

    level = "coordinate"
