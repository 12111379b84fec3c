"""Fine-tuning keeps to a limit of memory, which is planned before its first step."""

import pytest

torch = pytest.importorskip("torch")

from tests.tiny import documents, save_encoder  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.estimators import XRTransformer  # noqa: E402
from treetop.runtime import Runtime  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402
from treetop.training.finetune import fitting  # noqa: E402
from treetop.training.finetune.fitting import EncoderShape, documents_that_fit  # noqa: E402

SHAPE = EncoderShape(weights=1000, layers=2, width=10, heads=2)


class Notes(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_the_bytes_of_a_document_and_of_the_rest():
    assert SHAPE.of_document(4) == 2 * (90 * 4 * 10 + 14.5 * 2 * 16)
    assert SHAPE.fixed(documents=100, nodes=5) == 24 * (1000 + 50) + 8 * 100 * 10


def that_fit(monkeypatch, room, tokens=64):
    monkeypatch.setattr(fitting, "memory_in_use", lambda: 10**9)
    size = 10**9 + SHAPE.fixed(100, 5) + room
    runtime = Runtime(memory=f"{int(size)}B", reporter=Notes())
    return documents_that_fit(SHAPE, tokens, 100, 5, runtime), runtime.reporter.notes


def test_as_many_documents_are_computed_at_once_as_fit(monkeypatch):
    own = SHAPE.of_document(64)
    assert that_fit(monkeypatch, 16 * own) == (16, [])
    expected = ["batches are computed 4 documents at a time to save memory"]
    assert that_fit(monkeypatch, 7 * own) == (4, expected)
    assert documents_that_fit(SHAPE, 64, 100, 5, Runtime()) == 16


def test_the_error_names_the_setting_that_fits(monkeypatch):
    with pytest.raises(TreetopError, match=r"takes about 1,000.4 MB, but .*: set max_length=32, or ra"):
        that_fit(monkeypatch, SHAPE.of_document(32))
    with pytest.raises(
        TreetopError, match="choose a smaller encoder, set tuned_layers=1 or fine_tune=false"
    ):
        that_fit(monkeypatch, 0)


def test_training_computes_as_many_documents_at_once_as_planned(monkeypatch, tmp_path):
    texts, labels = documents(20)
    notes = Notes()
    model = XRTransformer(
        encoder=str(save_encoder(tmp_path / "encoder")), budget="2 steps", batch=8, memory="60GB"
    )
    monkeypatch.setattr(fitting, "memory_in_use", lambda: int(59e9))
    monkeypatch.setattr(EncoderShape, "of_document", lambda *_: int(3e8))
    model.fit(texts, labels, report=notes)
    assert "batches are computed 2 documents at a time to save memory" in notes.notes
