"""Exported encoders: the same vectors, and no torch."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import treetop
from tests.tiny import documents, save_encoder
from treetop.cli.exchange import export_model
from treetop.errors import TreetopError
from treetop.features.encoders.onnx import OnnxEncoder, export
from treetop.features.encoders.opening import open_encoder
from treetop.features.encoders.transformer import Encoder

TEXTS = ["red apple", "", "the sky is blue and the sea is green " * 9, "nonsense", "fire"]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "mpnet"])
def test_vectors_are_torchs(tmp_path, family):
    encoder = Encoder(save_encoder(tmp_path / "a", family), max_length=24)
    expected = encoder.embed_texts(TEXTS)
    export(encoder, tmp_path / "b", quantize=False)
    made = OnnxEncoder(tmp_path / "b", 24).embed_texts(TEXTS)
    np.testing.assert_allclose(made, expected, atol=1e-5)


def test_a_model_predicts_without_torch(tmp_path, capsys):
    texts, labels = documents(80)
    settings = {"encoder": save_encoder(tmp_path / "a"), "max_length": 16, "fine_tune": False}
    model = treetop.XRTransformer(**settings).fit(texts, labels)
    model.save(tmp_path / "m")
    export_model(tmp_path / "m", tmp_path / "o", True, None)
    assert "MB" in capsys.readouterr().out
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None; import treetop;"
        f"print(treetop.load({str(tmp_path / 'o')!r}).predict([{texts[0]!r}], 1)[0][0][0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = treetop.load(str(tmp_path / "o"))
    assert done.stdout.strip() == again.predict(texts[:1], 1)[0][0][0]
    again.save(tmp_path / "p")
    assert treetop.load(str(tmp_path / "p")).predict(texts[:3]) == again.predict(texts[:3])
    with pytest.raises(TreetopError, match="holds no transformer encoder to export"):
        export_model(tmp_path / "o", tmp_path / "q", True, None)
    with pytest.raises(TreetopError, match="cannot be trained"):
        open_encoder(
            str(tmp_path / "o" / "encoder"),
            treetop.Runtime(device="cpu"),
            pooling="auto",
            max_length=16,
            dropout=0.1,
            to_learn=True,
        )


def test_what_cannot_be_exported_is_named(tmp_path):
    treetop.XRLinear().fit(["a b", "c d"], [["x"], ["y"]]).save(tmp_path / "m")
    with pytest.raises(TreetopError, match="holds no transformer encoder to export"):
        export_model(tmp_path / "m", tmp_path / "o", False, None)
