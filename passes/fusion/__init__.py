"""Fusion: which ops one kernel computes. `space` says what a group iterates over, `legality` why two ops may not share
a kernel, `cut` cuts the graph."""
