"""Solves what is known of sizes: one fixed point over the rules in `passes/rules/shape`."""

from dlcb.passes.solver.driver import ContradictionError, Solution, Solver, solve

__all__ = ["ContradictionError", "Solution", "Solver", "solve"]
