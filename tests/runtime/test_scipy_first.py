"""numpy without its slow modules while scipy is imported, and as it was afterwards."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import numpy
names, listing = list(numpy.__all__), dir(numpy)
from treetop.runtime.scipy_first import import_scipy
import_scipy()
assert "scipy.sparse" in sys.modules
assert not {"numpy.f2py", "numpy.testing"} & set(sys.modules), "imported after all"
assert numpy.__all__ == names
assert sorted(dir(numpy)) == sorted(set(dir(numpy)) | set(listing))
assert numpy.testing.assert_allclose
import scipy.stats
assert scipy.stats.norm.cdf(0) == 0.5
"""


def test_slow_modules_of_numpy_are_imported_on_use_only():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_a_first_prediction_imports_neither_numba_nor_linear_algebra():
    """They would take half of its time."""
    folder = Path(__file__).parents[1] / "folders" / "forest"
    code = (
        f"import sys, treetop; treetop.load({str(folder)!r}).predict(['red apple']); "
        "print({'numba', 'scipy.linalg'} & set(sys.modules))"
    )
    for _ in range(2):  # the first process may compile kernels, which imports all of numba
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
