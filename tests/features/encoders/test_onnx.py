"""Exported encoders: the same vectors, and no torch."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import treetop  # noqa: E402
from tests.tiny import documents, save_encoder  # noqa: E402
from treetop.cli.exchange import export_model  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.features.encoders.onnx import OnnxEncoder, export  # noqa: E402
from treetop.features.encoders.opening import open_encoder  # noqa: E402
from treetop.features.encoders.transformer import Encoder  # noqa: E402

TEXTS = ["red apple", "", "the sky is blue and the sea is green " * 9, "nonsense", "fire"]


def assert_no_path_of_this_machine(file):
    """The exporter notes stack traces and class names at every node, which are removed."""
    content = file.read_bytes()
    paths = [file.parent, Path.home(), sys.prefix, treetop.__file__, torch.__file__]
    assert [path for path in paths if str(path).encode() in content] == []
    assert b".py" not in content
    assert b"stack_trace" not in content
    onnx.checker.check_model(file)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "mpnet"])
def test_vectors_equal_those_of_torch(tmp_path, family):
    encoder = Encoder(save_encoder(tmp_path / "a", family), max_length=24)
    expected = encoder.embed_texts(TEXTS)
    export(encoder, tmp_path / "b", quantize=False)
    vectors = OnnxEncoder(tmp_path / "b", 24).embed_texts(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert_no_path_of_this_machine(tmp_path / "b" / "model.onnx")


def test_a_model_predicts_without_torch(tmp_path, capsys):
    texts, labels = documents(80)
    settings = {"encoder": save_encoder(tmp_path / "a"), "max_length": 16, "fine_tune": False}
    model = treetop.XRTransformer(**settings).fit(texts, labels)
    model.save(tmp_path / "m")
    export_model(tmp_path / "m", tmp_path / "o", True, None)
    assert capsys.readouterr().out.splitlines()[2].startswith("size ")
    assert_no_path_of_this_machine(tmp_path / "o" / "encoder" / "model.onnx")
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None; import treetop;"
        f"print(treetop.load({str(tmp_path / 'o')!r}).predict([{texts[0]!r}], 1)[0][0][0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    exported = treetop.load(str(tmp_path / "o"))
    assert done.stdout.strip() == exported.predict(texts[:1], 1)[0][0][0]
    exported.save(tmp_path / "p")
    assert treetop.load(str(tmp_path / "p")).predict(texts[:3]) == exported.predict(texts[:3])
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


def test_a_model_without_a_transformer_is_not_exported(tmp_path):
    treetop.XRLinear().fit(["a b", "c d"], [["x"], ["y"]]).save(tmp_path / "m")
    with pytest.raises(TreetopError, match="holds no transformer encoder to export"):
        export_model(tmp_path / "m", tmp_path / "o", False, None)
