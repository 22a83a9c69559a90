"""The classes of errors. A leaf: every part of the package may use it, it imports nothing of the package."""


class DlcbError(Exception):
    """Base of all errors that DLCB raises on purpose."""


class UserError(DlcbError):
    """The user's program or input is wrong; the text names what was given, what was expected, and where."""


class LayoutError(UserError):
    """The call is right, but its arguments lie in memory otherwise than those that were compiled for, and the results
    would have to share memory otherwise too: compile for an example that lies so."""


class UnsupportedError(DlcbError):
    """The program is legal, but DLCB does not compile it; the text names the op and its source line."""


class InternalError(DlcbError):
    """A bug in DLCB itself."""


LAYOUT = "layout: "
"""How the text of a check begins whose failure is a `LayoutError`."""
