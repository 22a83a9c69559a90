"""From a program and an example to records for all sizes: at which to trace, and what need not be checked."""

from dlcb.frontend.capture.search import capture, name_of

__all__ = ["capture", "name_of"]
