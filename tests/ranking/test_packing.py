"""Packed rankers: the same cells, up to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treetop
from treetop.cli.exchange import compress_model
from treetop.errors import TreetopError
from treetop.model.compress import compress, folder_bytes, parse_size
from treetop.ranking.packing import cells_of, pack, unpack, weights_from


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(120)]
    rows = [rng.choice(120, 6, replace=False) for _ in range(400)]
    return [" ".join(words[n] for n in row) for row in rows], [
        [words[n] for n in row[:2]] for row in rows
    ]


@pytest.fixture(scope="module")
def model(corpus):
    return treetop.XRLinear(tree="4-20-L", trees=2, threads=2).fit(*corpus)


def test_cells_are_all_weights(model):
    for ranker in model.rankers_:
        weights = ranker.weights
        cells = cells_of(weights)
        assert (np.diff(cells.cluster) >= 0).all()
        again = weights_from(cells, weights, ranker.tree, weights.row_ptr.size - 1, 2)
        for name, values in weights.arrays.items():
            np.testing.assert_array_equal(getattr(again, name), values, err_msg=name)


@pytest.mark.parametrize(("storage", "error"), [("float16", 1e-3), ("int8", 1 / 200)])
def test_packing_rounds_only(model, storage, error):
    ranker = model.rankers_[0]
    packed = pack(ranker.weights, storage)
    again = cells_of(unpack(packed, ranker.tree, 2))
    cells = cells_of(ranker.weights)
    if storage == "float16":
        np.testing.assert_array_equal(again.feature, cells.feature)
        np.testing.assert_allclose(again.value, cells.value, rtol=error)
    largest = np.abs(cells.value).max()
    dense = np.zeros((2, int(cells.cluster.max()) + 1, int(cells.feature.max()) + 1, 64))
    for at, one in enumerate((cells, again)):
        dense[at, one.cluster, one.feature, one.child] = one.value
    assert np.abs(dense[0] - dense[1]).max() <= error * largest


@given(share=st.floats(0.05, 0.9))
def test_a_budget_is_kept(model, tmp_path_factory, share):
    folder = tmp_path_factory.mktemp("model") / "m"
    model.save(folder)
    whole, _ = compress(model, folder, None, "int8")
    whole.save(folder.with_name("whole"))
    size = folder_bytes(folder.with_name("whole"))
    least = folder_bytes(folder) - (folder / "ranker.safetensors").stat().st_size + 10_000
    room = int(least + share * max(0, size - least))
    made, threshold = compress(model, folder, room, "int8")
    made.save(folder.with_name("small"))
    assert folder_bytes(folder.with_name("small")) <= room
    kept = [cells_of(ranker.weights) for ranker in made.rankers_]
    assert all((np.abs(cells.value) >= threshold).all() for cells in kept)


def test_a_smaller_model_predicts_nearly_the_same(model, corpus, tmp_path, capsys):
    texts, labels = corpus
    model.save(tmp_path / "m")
    (tmp_path / "test.txt").write_text("\n".join(texts))
    (tmp_path / "test.labels").write_text("\n".join("\t".join(line) for line in labels))
    compress_model(tmp_path / "m", tmp_path / "s", None, "int8", tmp_path)
    said = capsys.readouterr().out
    assert "P@5" in said
    assert "MB" in said
    small = treetop.load(str(tmp_path / "s"))
    assert small.rankers_[0].storage == "int8"
    assert abs(small.score(texts, labels) - model.score(texts, labels)) < 0.02
    small.save(tmp_path / "again")
    assert treetop.load(str(tmp_path / "again")).predict(texts[:9]) == small.predict(texts[:9])


def test_wrong_wishes_are_named(model, tmp_path):
    model.save(tmp_path / "m")
    with pytest.raises(TreetopError, match="10 bytes are too few: without any weight the model has"):
        compress(model, tmp_path / "m", 10, "int8")
    with pytest.raises(TreetopError, match="choose one of float16, int8"):
        compress(model, tmp_path / "m", None, "int4")
    with pytest.raises(TreetopError, match="member by member"):
        compress(treetop.Ensemble([model, model]), tmp_path / "m", None, "int8")
    with pytest.raises(TreetopError, match="size '3 apples' is not understood"):
        parse_size("3 apples")
    assert parse_size("1.5 MB") == 1_500_000
    assert parse_size("2KiB") == 2048
