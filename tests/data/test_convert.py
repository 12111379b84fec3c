"""Round trips through every format, and what a format cannot hold."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from treetop.data import Dataset, Split, open_data
from treetop.data.convert import WRITERS, convert
from treetop.errors import TreetopError

OF_TEXTS = (
    "text-lines",
    "csv",
    "tsv",
    "jsonl",
    "parquet",
    "lf",
    "pecos",
    "annif",
    "attentionxml",
    "fasttext",
)
OF_FEATURES = ("xmlrepo", "xmlrepo-split", "libsvm", "pecos")
ANY_TEXT = ("csv", "tsv", "jsonl", "parquet", "lf")

plain = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="<>;|,"),
    min_size=1,
    max_size=8,
)
sentences = st.lists(
    plain.filter(lambda word: not word.startswith("__label__")), min_size=1, max_size=5
)
documents = st.lists(
    st.tuples(sentences.map(" ".join), st.lists(plain, max_size=3, unique=True)), min_size=1, max_size=6
)


@pytest.mark.parametrize("form", OF_TEXTS)
@given(train=documents, test=documents)
def test_texts_and_labels_survive_a_round_trip(tmp_path_factory, form, train, test):
    folder = tmp_path_factory.mktemp("round") / "data"
    splits = {
        name: Split([text for text, _ in pairs], [labels or ["none"] for _, labels in pairs])
        for name, pairs in (("train", train), ("test", test))
    }
    assert convert(Dataset("x", splits), folder, form) == form
    again = open_data(folder)
    assert again.format == form
    for name, split in splits.items():
        assert list(again.split(name).texts) == list(split.texts)
        found = again.split(name).named_labels(again.label_names)
        assert [sorted(line) for line in found] == [sorted(line) for line in split.labels]


@pytest.mark.parametrize("form", ANY_TEXT)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1))
def test_any_text_survives_a_round_trip(tmp_path_factory, form, text):
    folder = tmp_path_factory.mktemp("round") / "data"
    convert(Dataset("x", {"train": Split([text, "b"], [["one"], ["two"]])}), folder, form)
    assert list(open_data(folder).split("train").texts) == [text, "b"]


@pytest.mark.parametrize("form", OF_FEATURES)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 6))
def test_features_and_labels_survive_a_round_trip(tmp_path_factory, form, seed, rows):
    folder = tmp_path_factory.mktemp("round") / "data"
    rng = np.random.default_rng(seed)
    X = sp.random(rows, 7, 0.5, "csr", np.float32, rng)
    X.data = (X.data - 0.5) * 10.0 ** rng.integers(-12, 12, X.nnz).astype(np.float32)
    X[0, 0] = 1.0
    Y = sp.csr_matrix(rng.random((rows, 4)) < 0.5, dtype=np.float32)
    names = ["a", "b b", "c", "d"]
    splits = {"train": Split(None, None, sp.csr_matrix(X), Y), "test": Split(None, None, X[:1], Y[:1])}
    convert(Dataset("x", splits, names), folder, form)
    again = open_data(folder)
    assert again.label_names == names
    for name, split in splits.items():
        found = again.split(name)
        width = found.X.shape[1]
        np.testing.assert_array_equal(found.X.toarray(), split.X.toarray()[:, :width])
        assert not split.X.toarray()[:, width:].any()
        np.testing.assert_array_equal(found.Y.toarray(), split.Y.toarray())


def test_relevances_and_excluded_pairs_are_kept(tmp_path):
    Y = sp.csr_matrix(np.array([[0.5, 0], [0.25, 1]], np.float32))
    excluded = sp.csr_matrix(np.array([[0, 1], [0, 0]], np.float32))
    data = Dataset("x", {"test": Split(["a", "b"], None, None, Y, excluded)}, ["one", "two"])
    convert(data, tmp_path / "lf", "lf")
    again = open_data(tmp_path / "lf")
    np.testing.assert_array_equal(again.split("test").Y.toarray(), Y.toarray())
    np.testing.assert_array_equal(again.split("test").excluded.toarray(), excluded.toarray())
    assert again.label_names == ["one", "two"]
    assert again.label_texts == ["one", "two"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.jsonl.zst", "a.jsonl.xz", "a.parquet"])
def test_a_single_file_survives_a_round_trip(tmp_path, name):
    data = Dataset("x", {"train": Split(["some text", 'with "quotes", and\nlines'], [["a", "b"], []])})
    convert(data, tmp_path / name)
    assert (tmp_path / name).is_file()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    again = open_data(tmp_path / name).split("train")
    assert list(again.texts) == list(data.split("train").texts)
    assert again.labels == [["a", "b"], []]


@pytest.mark.parametrize(
    ("data", "target", "form", "message"),
    [
        (Split(["a"], [["x\ty"]]), "out", "text-lines", "text-lines cannot store the label 'x\\ty'"),
        (Split(["a"], [["x y"]]), "out", "fasttext", "which contains ' '"),
        (Split(["a"], [["x y"]]), "out", "attentionxml", "which contains ' '"),
        (Split(["a"], [["x>y"]]), "out", "annif", "which contains '>'"),
        (Split(["a"], [["x\ny"]]), "out", "fasttext", "which contains '\\n'"),
        (
            Split(["a"], [["x"]]),
            "out.csv",
            "jsonl",
            "does not match jsonl: name it out.jsonl",
        ),
        (Split(["a"], [["x"]]), "out", "bad", "unknown format"),
        (Split(["a"], None), "out", "fasttext", "fasttext requires labels, but this data has none"),
        (Split(["a"], None), "out", "lf", "the split train has none"),
        (Split(["a"], [["x"]]), "out", "xmlrepo", "xmlrepo stores features, but this data has texts"),
        (
            Split(None, None, sp.csr_matrix((1, 2)), sp.csr_matrix((1, 2))),
            "out",
            "csv",
            "a table stores texts, but this data has features only",
        ),
        (Split(["a"], [["x"]]), "out.csv", "pecos", "pecos writes several files: give a folder"),
        (Split(["a"], [["x"]]), "out", "excel", "unknown format 'excel': choose one of"),
        (Split(["a"], [["x"]]), "there", "csv", "already exists: choose another path"),
    ],
)
def test_data_that_a_format_cannot_hold_is_an_error_that_leaves_no_file(
    tmp_path, data, target, form, message
):
    (tmp_path / "there").mkdir()
    with pytest.raises(TreetopError) as error:
        convert(Dataset("x", {"train": data}), tmp_path / target, form)
    assert message in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_one_file_for_several_splits_is_refused(tmp_path):
    one = Split(["a"], [["x"]])
    with pytest.raises(TreetopError, match="a single file cannot hold 2 splits"):
        convert(Dataset("x", {"train": one, "test": one}), tmp_path / "a.csv")


def test_every_format_has_a_writer_and_a_description():
    from treetop.data.formats import FORMATS

    assert len({form.NAME for form in FORMATS}) == len(FORMATS)
    assert all(form.ABOUT for form in FORMATS)
    assert {form.NAME for form in FORMATS} - {"table"} <= set(WRITERS)


def test_frames_of_pandas_polars_arrow_and_dictionaries():
    columns = {"id": [1, 2], "Content": ["a text", "another"], "tags": [["x", "y"], None]}
    made = [columns]
    for package in ("pandas", "polars"):
        made.append(pytest.importorskip(package).DataFrame(columns))
    made.append(pytest.importorskip("pyarrow").table(columns))
    for frame in made:
        split = open_data(frame).split("train")
        assert split.texts == ["a text", "another"]
        assert split.labels == [["x", "y"], []]
    both = open_data({"train": made[1], "test": made[2]}, "Content", "tags")
    assert list(both.splits) == ["train", "test"]
    with pytest.raises(TreetopError, match=r"row 0: 'id' is not a text"):
        open_data(made[1], "id")
    with pytest.raises(TreetopError, match="give a path or a data frame"):
        open_data(3)


def test_a_folder_of_hugging_face_datasets(tmp_path):
    """As `save_to_disk` writes it: Arrow streams, state.json, names of classes in the schema."""
    pyarrow = pytest.importorskip("pyarrow")
    feature = {"feature": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "_type": "List"}
    noted = {"info": {"features": {"text": {"dtype": "string"}, "labels": feature}}}
    table = pyarrow.table({"text": ["a", "b"], "labels": [[0, 1], [1]]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(noted)})
    for name in ("train", "validation"):
        folder = tmp_path / name
        folder.mkdir()
        with pyarrow.ipc.new_stream(folder / "data-00000-of-00001.arrow", table.schema) as out:
            out.write_table(table)
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        (folder / "state.json").write_text(json.dumps(state))
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    made = open_data(tmp_path)
    assert list(made.splits) == ["train", "dev"]
    assert made.split("dev").labels == [["cat", "dog"], ["dog"]]
    assert open_data(tmp_path / "train").split("train").texts == ["a", "b"]
