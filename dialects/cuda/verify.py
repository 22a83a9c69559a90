"""Checks that the ops of `dlcb.cuda` share; each raises a VerifyException that names what was given and expected."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType, VarType
from dlcb.dialects.types import i32, i64


def verify_same(what: str, given: Attribute, expected: Attribute) -> None:
    if given != expected:
        raise VerifyException(f"{what} is {given}, expected {expected}")


def verify_integer(what: str, value: SSAValue) -> None:
    if value.type != i32 and value.type != i64:
        raise VerifyException(f"{what} is {value.type}, expected i32 or i64")


def verify_memory(array: SSAValue, *kinds: type[Attribute]) -> Attribute:
    """The element type of `array`, whose type must be one of `kinds`."""
    if not isinstance(array.type, kinds):
        raise VerifyException(f"array is {array.type}, expected {' or '.join('!' + k.name for k in kinds)}")
    assert isinstance(array.type, PtrType | LocalType | SharedType | VarType)
    return array.type.element
