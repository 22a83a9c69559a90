"""The three classes of errors. A leaf: every part of the package may use it, it imports nothing of the package."""


class DlcbError(Exception):
    """Base of all errors that DLCB raises on purpose."""


class UserError(DlcbError):
    """The user's program or input is wrong; the text names what was given, what was expected, and where."""


class UnsupportedError(DlcbError):
    """The program is legal, but DLCB does not compile it; the text names the op and its source line."""


class InternalError(DlcbError):
    """A bug in DLCB itself."""
