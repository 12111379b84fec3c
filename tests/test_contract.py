"""Runs the tests of `contract.py` for every kind of model."""

import json
from functools import cache
from pathlib import Path

import pytest
import scipy.sparse as sp

import treetop
from tests.contract import FP32, ModelContract
from tests.folders.make_folders import problem
from tests.tiny import save_encoder

FOLDERS = Path(__file__).parent / "folders"


@pytest.fixture(scope="session")
def queries():
    return json.loads((FOLDERS / "queries.json").read_text())


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    pytest.importorskip("torch")
    return save_encoder(tmp_path_factory.mktemp("contract") / "encoder")


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """A file of word vectors."""
    path = tmp_path_factory.mktemp("contract") / "vectors.txt"
    words = sorted({word for text in problem()[0] for word in text.split()})
    path.write_text(
        "".join(f"{word} {len(word)} {ord(word[0])} {number}\n" for number, word in enumerate(words))
    )
    return str(path)


@cache
def fitted(kind, **settings):
    """Train a model once for all tests."""
    return kind(**settings).fit(*problem(), runtime=FP32)


@cache
def loaded(name):
    if "onnx" in name:
        pytest.importorskip("onnxruntime")
    elif "transformer" in name:
        pytest.importorskip("torch")
    return treetop.load(FOLDERS / name, runtime=FP32)


class TestFlat(ModelContract):
    @pytest.fixture
    def model(self):
        return fitted(treetop.XRLinear)


class TestTree(ModelContract):
    @pytest.fixture
    def model(self):
        return fitted(treetop.XRLinear, tree="4-12-L", trees=1, beam=3)


class TestForest(ModelContract):
    @pytest.fixture
    def model(self):
        ngrams = "word:1|word:1+char:3"
        return fitted(treetop.XRLinear, flat_labels=0, leaf=6, branching=4, ngrams=ngrams)


class TestMatrix(ModelContract):
    """A model that was trained on a feature matrix."""

    @pytest.fixture
    def model(self):
        return loaded("matrix")

    @pytest.fixture
    def documents(self):
        return Rows(sp.load_npz(FOLDERS / "matrix-queries.npz"))


class Rows(sp.csr_matrix):
    """A matrix that is iterated like a list of documents."""

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[row] for row in range(len(self)))


class TestTunedTransformer(ModelContract):
    @pytest.fixture
    def model(self, tiny_encoder):
        settings = {"max_length": 16, "budget": "6 steps", "batch": 16, "first_tree": "4-L"}
        return fitted(treetop.XRTransformer, encoder=tiny_encoder, **settings)


class TestFrozenTransformer(ModelContract):
    @pytest.fixture
    def model(self, tiny_encoder):
        settings = {"fine_tune": False, "max_length": 16, "tree": "6-L"}
        return fitted(treetop.XRTransformer, encoder=tiny_encoder, **settings)


class TestWordVectors(ModelContract):
    @pytest.fixture
    def model(self, vectors):
        return fitted(treetop.XRTransformer, encoder=vectors, fine_tune=False)


class TestEnsemble(ModelContract):
    @pytest.fixture
    def model(self, tiny_encoder):
        frozen = fitted(treetop.XRTransformer, encoder=tiny_encoder, fine_tune=False, max_length=16)
        return treetop.Ensemble([fitted(treetop.XRLinear), frozen], weights=[2, 1])


class TestEnsembleOfEnsembles(ModelContract):
    @pytest.fixture
    def model(self):
        flat, tree = fitted(treetop.XRLinear), fitted(treetop.XRLinear, tree="4-L")
        return treetop.Ensemble([flat, treetop.Ensemble([flat, tree])])


class TestLoaded(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("forest")


class TestLoadedTransformer(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("transformer")


class TestCompressed(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("compressed")


class TestCompressedTransformer(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("compressed-transformer")


class TestOnnx(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("onnx")


class TestImportedFromPecos(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("pecos-linear")

    @pytest.fixture
    def documents(self):
        texts = (FOLDERS.parent / "interop" / "pecos" / "test.txt").read_text("utf-8").splitlines()
        return [text for text in texts if text.strip()][:12]


class TestTransformerImportedFromPecos(ModelContract):
    @pytest.fixture
    def model(self):
        return loaded("pecos-transformer")
