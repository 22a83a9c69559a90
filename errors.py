"""The classes of errors. A leaf: every part of the package may use it, it imports nothing of the package."""


class DlcbError(Exception):
    """Base of all errors that DLCB raises on purpose."""


class UserError(DlcbError):
    """The user's program or input is wrong; the text names what was given, what was expected, and where."""


class LayoutError(UserError):
    """The call is right, but its arguments lie in memory otherwise than those that were compiled for, and the results
    would have to share memory otherwise too: compile for an example that lies so."""


class MachineError(UserError):
    """The machine lacks something, whatever the program: a compiler, a library, room on the disk."""


class ElementError(UserError):
    """An element of an input is wrong, an index out of range or a divisor that is 0. `kind` is what eager raises; the
    evaluator raises this, a compiled program `kind` itself."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    def as_eager(self) -> Exception:
        """What a caller is to see: no `UserError`, after which a program may be run anew in eager."""
        return ELEMENT_ERRORS[self.kind](str(self))


class UnsupportedError(DlcbError):
    """The program is legal, but DLCB does not compile it; the text names the op and its source line."""


class InternalError(DlcbError):
    """A bug in DLCB itself."""


ELEMENT_ERRORS: dict[str, type[Exception]] = {"IndexError": IndexError, "RuntimeError": RuntimeError}
"""What eager raises because of an element, by name."""

LAYOUT = "layout: "
"""How the text of a check begins whose failure is a `LayoutError`."""

BROADCASTS = "sizes broadcast otherwise than in the example: "
"""How the text of a check begins that holds a program to the example's pattern of broadcasting."""
