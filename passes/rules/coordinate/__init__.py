"""Laws of the coordinates of a kernel, one a file; `passes/solver` finds them here."""
