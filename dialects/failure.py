"""What a program says when an element of an input is wrong: the class of the error that eager raises, and a text.

`{0}` in the text stands for the wrong element, `{1}` for the size that it must lie in. Ops carry failures as lists of
pairs of strings: `[["IndexError", "index {0} is out of range for dimension 0 of size {1}: embedding, model.py:12"]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.utils.exceptions import VerifyException

from dlcb.errors import ELEMENT_ERRORS, ElementError

FailuresAttr = ArrayAttr[ArrayAttr[StringAttr]]


class Failure(NamedTuple):
    """See the module's docstring."""

    kind: str
    text: str

    def error(self, value: int, size: int) -> ElementError:
        return ElementError(self.kind, self.text.replace("{0}", str(value)).replace("{1}", str(size)))


def failures_attr(failures: Sequence[Failure]) -> FailuresAttr:
    return ArrayAttr([ArrayAttr(map(StringAttr, failure)) for failure in failures])


def failures_of(attribute: FailuresAttr | None) -> list[Failure]:
    if attribute is None:
        return []
    return [Failure(kind.data, text.data) for kind, text in attribute.data]


def verify_failures(what: str, attribute: FailuresAttr | None) -> None:
    for pair in attribute.data if attribute is not None else ():
        if len(pair.data) != 2:
            raise VerifyException(f"{what}: a failure is the name of an error and a text, got {len(pair.data)} strings")
        if pair.data[0].data not in ELEMENT_ERRORS:
            known = ", ".join(ELEMENT_ERRORS)
            raise VerifyException(f"{what}: a failure is one of {known}, got {pair.data[0].data}")
