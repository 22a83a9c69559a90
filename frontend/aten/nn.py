"""Layers of neural networks in one table: pooling, normalization, resampling, distances."""

from dlcb.frontend.aten import distances, normalization, pooling, sampling
from dlcb.frontend.aten.table import Table

TABLE = Table({**pooling.TABLE, **normalization.TABLE, **sampling.TABLE, **distances.TABLE})
