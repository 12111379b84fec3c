"""The exception for everything a user can get wrong."""


class TreetopError(ValueError):
    """Input, settings or files cannot be used. The message is one line: what, where, what to do next.

    Examples
    --------
    >>> import treetop
    >>> treetop.XRLinear(n_estimators=3)
    Traceback (most recent call last):
        ...
    treetop.errors.TreetopError: unknown setting 'n_estimators': did you mean 'trees'?
    """
