"""The one exception a user can cause."""


class TreetopError(ValueError):
    """Something the user gave cannot be used. The message is one line: what, where, what to do."""
