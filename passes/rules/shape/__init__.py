"""Laws of sizes, one a file; `passes/solver` finds them here."""
