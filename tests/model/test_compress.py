"""Compression: the maximum size is kept, quality hardly changes, torch is not needed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treetop
from tests.tiny import word_corpus
from treetop.cli.exchange import compress_model
from treetop.errors import TreetopError
from treetop.model.compress import compress, folder_bytes
from treetop.model.folder import write_model
from treetop.ranking.packing import cells_of
from treetop.runtime.memory import parse_size

FOLDERS = Path(__file__).parents[1] / "folders"
RUNTIME = treetop.Runtime(threads=2)


@pytest.fixture(scope="module")
def corpus():
    return word_corpus()


@pytest.fixture(scope="module")
def model(corpus):
    return treetop.XRLinear(tree="4-20-L", trees=2, threads=2).fit(*corpus)


@given(share=st.floats(0.05, 0.9))
def test_the_compressed_model_fits_the_maximum_size(model, tmp_path_factory, share):
    folder = tmp_path_factory.mktemp("model") / "m"
    model.save(folder)
    unpruned, _ = compress(model.model_, folder, None, "int8", RUNTIME)
    write_model(unpruned, folder.with_name("unpruned"))
    size = folder_bytes(folder.with_name("unpruned"))
    least = folder_bytes(folder) - (folder / "ranker.safetensors").stat().st_size + 10_000
    room = int(least + share * max(0, size - least))
    compressed, threshold = compress(model.model_, folder, room, "int8", RUNTIME)
    write_model(compressed, folder.with_name("small"))
    assert folder_bytes(folder.with_name("small")) <= room
    kept = [cells_of(ranker.weights) for ranker in compressed.rankers]
    assert all((np.abs(cells.value) >= threshold).all() for cells in kept)


def test_a_smaller_model_predicts_nearly_the_same(model, corpus, tmp_path, capsys):
    texts, labels = corpus
    model.save(tmp_path / "m")
    (tmp_path / "test.txt").write_text("\n".join(texts))
    (tmp_path / "test.labels").write_text("\n".join("\t".join(line) for line in labels))
    compress_model(tmp_path / "m", tmp_path / "s", None, "int8", tmp_path)
    said = capsys.readouterr().out
    assert "P@5" in said
    assert re.search(r"^size +1\.\d MB +\d{3}\.\d KB$", said, re.M)
    small = treetop.load(str(tmp_path / "s"))
    assert small.model_.storage == "int8"
    assert (small.score(texts, labels), model.score(texts, labels)) == (1.0, 1.0)
    small.save(tmp_path / "again")
    assert treetop.load(str(tmp_path / "again")).predict(texts[:9]) == small.predict(texts[:9])


def test_errors(model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(TreetopError, match="10 bytes are too few: give more than "):
        compress(model.model_, tmp_path / "m", 10, "int8", RUNTIME)
    with pytest.raises(TreetopError, match="choose one of float16, int8"):
        compress(model.model_, tmp_path / "m", None, "int4", RUNTIME)
    with pytest.raises(TreetopError, match="compress each of its members"):
        compress(treetop.Ensemble([model, model]).model_, tmp_path / "m", None, "int8", RUNTIME)
    with pytest.raises(TreetopError, match="size '3 apples' is not understood"):
        parse_size("3 apples")
    assert parse_size("1.5 MB") == 1_500_000
    assert parse_size("2KiB") == 2048


@pytest.mark.parametrize("name", ["onnx", "wordvectors", "transformer"])
def test_compression_does_not_need_torch(name, tmp_path):
    code = (
        "import sys; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from pathlib import Path\nfrom treetop.cli.exchange import compress_model\n"
        f"compress_model(Path({str(FOLDERS / name)!r}), Path({str(tmp_path / 'm')!r}), "
        "None, 'int8', None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert treetop.load(tmp_path / "m").model_.storage == "int8"
    assert folder_bytes(tmp_path / "m") < folder_bytes(FOLDERS / name)
