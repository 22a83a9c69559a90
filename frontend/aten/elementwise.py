"""All elementwise operations in one table."""

from dlcb.frontend.aten import activations, arithmetic, choices, functions
from dlcb.frontend.aten.table import Table

TABLE = Table({**arithmetic.TABLE, **functions.TABLE, **choices.TABLE, **activations.TABLE})
