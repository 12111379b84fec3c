"""Import scipy.sparse without numpy's test tools and Fortran compiler front end.

scipy copies numpy's namespace when it is first imported, and so imports `numpy.testing` and
`numpy.f2py`, which numpy itself imports only on use. They take a tenth of the time that a new
process needs for its first prediction.
"""

from __future__ import annotations

import sys

SLOW = {"testing", "f2py"}


def import_scipy() -> None:
    """Import scipy.sparse, unless scipy was imported already; numpy is left as it was."""
    if "scipy" in sys.modules:
        return
    import numpy as np

    names, listing = np.__all__, np.__dir__
    shown = {
        "__all__": [name for name in names if name not in SLOW],
        "__dir__": lambda: [name for name in listing() if name not in SLOW],
    }
    try:
        vars(np).update(shown)
        import scipy.sparse  # noqa: F401
    finally:
        vars(np).update(__all__=names, __dir__=listing)
