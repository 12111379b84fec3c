"""What all tests share: small real data, a tiny encoder, and processes that end with their test."""

import os
import sys
import time
from pathlib import Path

# No test asks the Hub: read by huggingface_hub when it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "true"
# Several processes of tests share the cores: threads of torch that wait for work must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import settings

from tests.corpus import load_docstrings
from tests.processes import end, running_children, start
from tests.tiny import BRIEF, documents, save_encoder
from treetop import XRTransformer
from treetop.data.dataset import Dataset
from treetop.kernels import Kernel

Kernel.checks_every_call = True  # that arguments have the types that it was compiled for

# The first example of a test may compile a kernel.
settings.register_profile("treetop", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("treetop")


# Modules of a minute or so. Several processes (`pytest -n 2 --dist loadfile`) take modules in order:
# the last ones must be short, or the other processes wait for them.
LONGEST = ("test_docs.py", "test_cluster.py", "test_dockerfile.py", "cli/test_cli.py")


def pytest_collection_modifyitems(items):
    """The longest modules first."""
    longest = [Path(__file__).parent / name for name in LONGEST]
    items.sort(key=lambda item: longest.index(item.path) if item.path in longest else len(longest))


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left_behind():
    """Fails after the last test if a process started by a test still runs."""
    yield
    if sys.platform != "linux":
        return
    until = time.monotonic() + 30
    while (left := running_children()) and time.monotonic() < until:
        time.sleep(0.1)  # what was told to end may take a moment
    assert left == []


@pytest.fixture
def start_process():
    """Starts processes as `Popen` does; those that still run after the test are killed."""
    started = []

    def start_one(command, **options):
        started.append(start(command, **options))
        return started[-1]

    yield start_one
    for process in started:
        end(process)


@pytest.fixture(scope="session")
def numpy_docs() -> Dataset:
    """Docstrings of numpy alone: some 800 documents, 600 labels."""
    return load_docstrings()


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    """The folder of a tiny encoder with random weights."""
    pytest.importorskip("torch")
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def fitted(encoder) -> XRTransformer:
    """An XR-Transformer trained briefly on the documents of `tiny`."""
    return XRTransformer(encoder=encoder, **BRIEF).fit(*documents())


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def random_problem(rng, documents=60, features=40, labels=12, dense=0, density=0.2):
    """Sparse X (with a dense half if asked) and Y in which every label occurs."""
    X = sp.random(documents, features, density, "csr", np.float32, rng)
    Y = sp.random(documents, labels, 0.15, "csr", np.float32, rng)
    extra = sp.csr_matrix(
        (np.ones(labels), (np.arange(labels) % documents, np.arange(labels))), Y.shape
    )
    Y = sp.csr_matrix(Y + extra)
    Y.data[:] = 1.0
    return X, rng.standard_normal((documents, dense)).astype(np.float32), Y
