"""Kernels in the cache on disk: compiled by several processes, loaded quickly, never stale."""

import json
import os
import subprocess
import sys

import pytest

from treetop import XRLinear
from treetop.kernels import PREDICTION, Kernel, all_kernels, cache, sparse, text, warming
from treetop.runtime.progress import Reporter

SMALL = ["treetop.kernels.sparse.count_seen", "treetop.kernels.text.fill_table"]
IN_A_NEW_PROCESS = """
import json, sys
from treetop.kernels import all_kernels
from treetop.kernels.warming import warm_up
kernels = [kernel for kernel in all_kernels() if kernel.name in {names}]
compiled = warm_up(kernels, processes={processes})
print(json.dumps([compiled, all(kernel.on_disk for kernel in kernels), sorted(sys.modules)]))
"""


def warm_up_elsewhere(folder, processes):
    """`warm_up` of the small kernels in a new process with a cache in `folder`."""
    program = IN_A_NEW_PROCESS.format(names=SMALL, processes=processes)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture
def fresh():
    """Two kernels that are not compiled yet in this process."""
    return [Kernel(k.function, k.signature, None) for k in (sparse.count_seen, text.fill_table)]


def test_what_two_processes_compiled_a_third_one_loads(tmp_path):
    compiled, on_disk, _ = warm_up_elsewhere(tmp_path, 2)
    assert (compiled, on_disk) == (2, True)
    compiled, on_disk, modules = warm_up_elsewhere(tmp_path, 2)
    assert (compiled, on_disk) == (0, True)
    assert "numba" not in modules  # only compiling needs it, and importing it takes long


TRAINING_IN_A_NEW_PROCESS = """
import sys
from treetop import XRLinear
XRLinear().fit(["red apple pie", "blue boat"] * 9, [["a"], ["b"]] * 9)
print("numba" in sys.modules)
"""


def test_training_with_compiled_kernels_does_not_import_numba():
    """It did in the solver, which returned arrays: numba finds out how to make one of them."""
    XRLinear().fit(["red apple pie", "blue boat"] * 9, [["a"], ["b"]] * 9)
    command = [sys.executable, "-c", TRAINING_IN_A_NEW_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_kernel_is_stale_when_any_source_has_changed(fresh, monkeypatch):
    fresh[0].compile()
    assert Kernel(fresh[0].function, fresh[0].signature, None).on_disk
    monkeypatch.setattr(cache, "source_stamp", lambda: "another helper")
    assert not Kernel(fresh[0].function, fresh[0].signature, None).on_disk


def test_this_process_compiles_what_a_failing_worker_does_not(fresh, monkeypatch):
    monkeypatch.setattr(cache, "source_stamp", lambda: "of this test alone")
    monkeypatch.setattr(warming, "WORKER", "raise SystemExit(1)")
    again = [Kernel(kernel.function, kernel.signature, None) for kernel in fresh]
    assert warming.warm_up(again, 2) == 2
    assert all(kernel.ready for kernel in again)


def test_without_a_folder_to_write_to_kernels_still_run(fresh, monkeypatch):
    monkeypatch.setattr(cache, "folders", list)
    monkeypatch.setattr(warming, "CompilerProcess", None)  # none is started: its work would be lost
    assert warming.warm_up(fresh[:1], 2) == 1
    assert fresh[0].ready


def test_a_step_is_shown_only_if_there_is_something_to_compile(fresh, monkeypatch):
    steps = []

    class Steps(Reporter):
        def step(self, name, total=None):
            steps.append((name, total))
            return lambda: None

    for kernel in fresh:
        kernel.compile()
    warming.warm_up(fresh, report=Steps())
    assert steps == []
    monkeypatch.setattr(cache, "source_stamp", lambda: "new")
    again = [Kernel(kernel.function, kernel.signature, None) for kernel in fresh]
    warming.warm_up(again, 1, Steps())
    assert steps == [("compiling (first run only)", 2)]


def test_prediction_runs_only_kernels_marked_for_it(monkeypatch):
    """Else a first prediction on a new machine would wait for kernels of training."""
    texts, labels = ["red apple pie", "blue boat", "green tree house"] * 20, [["a"], ["b"], ["c"]] * 20
    model, run, called = XRLinear().fit(texts, labels), Kernel.__call__, set()

    def record(kernel, *arguments):
        called.add(kernel.name)
        return run(kernel, *arguments)

    monkeypatch.setattr(Kernel, "__call__", record)
    assert model.predict(["apple pie"], 1)[0][0][0] == "a"
    assert called
    assert called <= {kernel.name for kernel in all_kernels() if kernel.use == PREDICTION}
