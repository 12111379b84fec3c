"""Data that is easily misread: each of these was, once."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from treetop.data import Dataset, Split, open_data
from treetop.data.convert import convert
from treetop.errors import TreetopError


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.mark.parametrize(
    ("files", "form"),
    [
        ({"train.txt": "__label__a x\n", "test.txt": "y\n"}, "fasttext"),
        ({"train.txt": "1,2 3:1\n", "test.txt": "1,2\n"}, "libsvm"),
        ({"train.txt": "1,2\n1 3:1\n", "test.txt": "2 1:1\n"}, "libsvm"),
        ({"train.tsv": "a\t<u>\n", "test.tsv": "b\t\n"}, "annif"),
        ({"train.txt": "\ufeff__label__a x\n", "test.txt": "__label__b y\n"}, "fasttext"),
        ({"train.txt": "\ufeff1 3 2\n0 1:1\n", "test.txt": "1 3 2\n0 1:1\n"}, "xmlrepo"),
        (
            {"train.txt": "__label__a " + "\u00e4" * 600_000 + "\n", "test.txt": "__label__b y\n"},
            "fasttext",
        ),
    ],
)
def test_every_split_is_read_whatever_its_first_line(tmp_path, files, form):
    data = open_data(write(tmp_path / "d", files))
    assert data.format == form
    assert list(data.splits) == ["train", "test"]


@pytest.mark.parametrize("text", ["__label__x foo", "12:30", "1 2 3", "a\t<b>"])
def test_a_file_of_labels_decides_about_the_format(tmp_path, text):
    files = {
        "train.txt": f"{text}\nb\n",
        "train.labels": "one\ntwo\n",
        "notes.txt": "n",
        "notes.tsv": "<u>\tx",
    }
    split = open_data(write(tmp_path / "d", files)).split("train")
    assert split.texts == [text, "b"]
    assert split.labels == [["one"], ["two"]]


@pytest.mark.parametrize(
    ("train", "test", "labels"),
    [
        ("Smith, John;Doe, Jane", "Smith, John", [["Smith, John"]]),
        ("one", "x;y", [["x", "y"]]),
        ('["x, y", "z"]', "[odd", [["[odd"]]),
        ('["x, y", "z"]', '["a;b", null]', [["a;b"]]),
    ],
)
def test_labels_in_a_field(tmp_path, train, test, labels):
    def table(value):
        return 'text,labels\na,"' + value.replace(chr(34), chr(34) * 2) + '"\n\n'

    data = open_data(write(tmp_path / "d", {"train.csv": table(train), "test.csv": table(test)}))
    assert data.split("test").labels == labels


@given(
    lines=st.lists(
        st.lists(
            st.text(
                st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=5
            ),
            max_size=3,
            unique=True,
        ),
        min_size=1,
        max_size=4,
    )
)
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_any_label_survives_a_round_trip_through_a_table(tmp_path_factory, form, lines):
    folder = tmp_path_factory.mktemp("t") / "d"
    convert(Dataset("x", {"train": Split(["a"] * len(lines), lines)}), folder, form)
    assert open_data(folder).split("train").labels == lines


def test_a_first_record_without_labels(tmp_path):
    lines = [{"text": "a"}, {"text": "b", "labels": ["x", None, 2.0]}]
    folder = write(tmp_path / "d", {"train.jsonl": "\n".join(map(json.dumps, lines))})
    assert open_data(folder).split("train").labels == [[], ["x", "2"]]


def test_missing_values_are_not_labels():
    pandas = pytest.importorskip("pandas")
    for kind, values, expected in (
        ("string", ["x", pandas.NA], [["x"], []]),
        ("Int64", [1, pandas.NA], [["1"], []]),
        ("float", [1.0, float("nan")], [["1"], []]),
    ):
        frame = pandas.DataFrame({"text": ["a", "b"], "label": pandas.array(values, dtype=kind)})
        assert open_data(frame).split("train").labels == expected
    numbered = pandas.DataFrame([["a", "x"]])
    assert open_data(numbered, "0", "1").split("train").labels == [["x"]]


def test_classes_without_a_label(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    noted = {"info": {"features": {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}}}

    def table(labels):
        made = pyarrow.table({"text": ["t"] * len(labels), "label": labels})
        return made.replace_schema_metadata({"huggingface": json.dumps(noted)})

    assert open_data(table([0, 1, -1, None])).split("train").labels == [["neg"], ["pos"], [], []]
    with pytest.raises(TreetopError, match="label 5: the file has names for 2 classes only"):
        open_data(table([5]))


@pytest.mark.parametrize("name", ["t.txt.gz", "t.txt.xz", "t.txt.zst"])
def test_a_file_with_the_suffix_of_a_compression_it_lacks_is_an_error(tmp_path, name):
    with pytest.raises(TreetopError, match="damaged after line 0"):
        open_data(write(tmp_path / "d", {name: "text\n"}) / name)


def test_stored_zeros_and_repeated_labels(tmp_path):
    Y = sp.csr_matrix((np.array([1.0, 0.0, 2.0, 1.0]), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    write(tmp_path / "p", {"X.trn.txt": "a\nb\n"})
    sp.save_npz(tmp_path / "p" / "Y.trn.npz", Y)
    assert open_data(tmp_path / "p").split("train").named_labels(None) == [["0"], ["0", "1"]]
    record = {"content": "c", "target_ind": [0, 0, 1], "target_rel": [1, 0.5, 0]}
    write(
        tmp_path / "l",
        {
            "trn.json": json.dumps(record),
            "lbl.json": '{"title": "x"}\n{"title": "y", "content": "why"}',
        },
    )
    data = open_data(tmp_path / "l")
    assert data.split("train").named_labels(data.label_names) == [["x"]]
    assert data.split("train").Y.data.tolist() == [1.0]
    convert(data, tmp_path / "again", "lf")
    assert open_data(tmp_path / "again").label_texts == ["x", "y\nwhy"]


def test_validation_splits_of_other_libraries_are_named_dev(tmp_path):
    frame = {"text": ["a"], "labels": [["x"]]}
    data = open_data({"train": frame, "validation": frame})
    assert list(data.splits) == ["train", "dev"]
    with pytest.raises(TreetopError, match="the split 'unsupervised' cannot be written"):
        convert(open_data({"train": frame, "unsupervised": frame}), tmp_path / "o", "lf")


def test_label_names_that_would_shift_columns_are_an_error(tmp_path):
    X = sp.csr_matrix(np.eye(2, dtype=np.float32))
    data = Dataset("x", {"train": Split(None, [["x\ny"], ["z"]], X)})
    for form in ("libsvm", "xmlrepo", "xmlrepo-split", "pecos"):
        with pytest.raises(TreetopError, match="cannot store the label"):
            convert(data, tmp_path / form, form)


def test_label_names_that_occur_twice_stay_labels_of_their_own(tmp_path):
    names = "q\nr\nq\nq\nq (3)\n"
    write(tmp_path / "p", {"X.trn.txt": "a\n", "output-items.txt": names})
    sp.save_npz(tmp_path / "p" / "Y.trn.npz", sp.csr_matrix([[1.0, 0.0, 1.0, 0.0, 1.0]]))
    data = open_data(tmp_path / "p")
    assert data.label_names == ["q", "r", "q (2)", "q (4)", "q (3)"]
    assert data.split("train").named_labels(data.label_names) == [["q", "q (2)", "q (3)"]]
    (warning,) = data.reading.warnings
    assert "a label name occurs more than once, such as 'q' on lines 1 and 3" in warning
    assert "the latter called 'q (2)'; --merge-duplicates merges them" in warning
    merged = open_data(tmp_path / "p", merge_duplicates=True)
    assert merged.label_names == ["q", "r", "q (3)"]


def test_names_of_files(tmp_path):
    folder = write(
        tmp_path / "d", {"my_json_export.csv": "text,labels\na,x\n", "DATA.CSV": "text,labels\nb,y\n"}
    )
    assert open_data(folder / "my_json_export.csv").split("train").labels == [["x"]]
    assert open_data(folder / "DATA.CSV").split("train").labels == [["y"]]


def test_numbers_too_large_for_a_float32(tmp_path):
    with pytest.raises(TreetopError, match=r"train.libsvm:2: a value is NaN, infinite"):
        open_data(write(tmp_path / "d", {"train.libsvm": "1 1:1\n1 1:1e39\n\n"}))
    split = open_data(write(tmp_path / "e", {"train.libsvm": "1 1:1\n\n2 1:3\n\n"})).split("train")
    assert len(split) == 2
