"""Every format read, and every way in which it can be malformed."""

import gzip
import json
import lzma

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.data import Split, open_data
from treetop.errors import TreetopError


def write(folder, **files):
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_text_lines_plain_and_compressed(tmp_path):
    write(tmp_path, train__txt="eins\nzwei \u2028 drei\n", train__labels="a\tb\ta\n\n")
    (tmp_path / "test.txt.xz").write_bytes(lzma.compress(b"vier\n"))
    (tmp_path / "test.labels.gz").write_bytes(gzip.compress(b"b\n"))
    dataset = open_data(tmp_path)
    assert dataset.split("train").texts == ["eins", "zwei \u2028 drei"]
    assert dataset.split("train").labels == [["a", "b"], []]
    assert dataset.split("test").labels == [["b"]]
    assert open_data(tmp_path / "train.txt").split("train").labels == [["a", "b"], []]


def test_csv_tsv_and_jsonl(tmp_path):
    write(
        tmp_path,
        train__csv='id,Text,Labels\n1,"a, b\nc",x;y;x\n2,d,\n',
        test__csv="Text,Labels\ne,y\n",
    )
    dataset = open_data(tmp_path)
    assert dataset.split("train").texts == ["a, b\nc", "d"]
    assert dataset.split("train").labels == [["x", "y"], []]
    lines = [{"content": "t", "tags": ["a", "b"]}, {"content": "u", "tags": "a"}]
    write(tmp_path, data__jsonl="\n".join(map(json.dumps, lines)))
    assert open_data(tmp_path / "data.jsonl").split("train").labels == [["a", "b"], ["a"]]
    write(tmp_path, odd__tsv="body text\tkinds\nhello\tp|q\n")
    odd = open_data(tmp_path / "odd.tsv", "body text", "kinds")
    assert odd.split("train").labels == [["p", "q"]]


def test_xmlrepo(tmp_path):
    write(tmp_path, train__txt="3 4 2\n0,1 0:1.5 3:2\n 2:1\n1 1:1 1:2\n")
    split = open_data(tmp_path).split("train")
    np.testing.assert_array_equal(split.X.toarray(), [[1.5, 0, 0, 2], [0, 0, 1, 0], [0, 3, 0, 0]])
    np.testing.assert_array_equal(split.Y.toarray(), [[1, 1], [0, 0], [0, 1]])
    assert split.named_labels(None) == [["0", "1"], [], ["1"]]


def test_pecos_folder(tmp_path, rng):
    X, Y = sp.random(5, 7, 0.4, "csr", random_state=1), sp.random(5, 3, 0.5, "csr", random_state=2)
    sp.save_npz(tmp_path / "X.trn.npz", X)
    sp.save_npz(tmp_path / "Y.trn.npz", Y)
    sp.save_npz(tmp_path / "Y.tst.npz", Y.tocsc())
    write(tmp_path, **{"X__tst__txt": "a\nb\nc\nd\ne\n", "output-items__txt": "l0\nl1\nl2\n"})
    dataset = open_data(tmp_path)
    np.testing.assert_array_equal(dataset.split("train").X.toarray(), X.toarray())
    assert dataset.split("test").texts == ["a", "b", "c", "d", "e"]
    assert dataset.label_names == ["l0", "l1", "l2"]
    np.testing.assert_array_equal(dataset.split("test").Y.toarray(), Y.toarray())


@pytest.mark.parametrize(
    ("files", "name", "message"),
    [
        ({"train__txt": ""}, "", "train.txt: empty file"),
        ({"train__txt": ""}, "train.txt", "train.txt: empty file"),
        (
            {"train__txt": "a\nb\n", "train__labels": "x\n"},
            "",
            "1 lines of labels, but train.txt has 2 documents",
        ),
        ({"train__txt": b"ok\n\xff\xfe\n", "train__labels": "x\ny\n"}, "", "train.txt:2: not UTF-8"),
        ({"train__txt": "a\0b\n", "train__labels": "x\n"}, "", "train.txt:1: contains a NUL byte"),
        ({"train__txt__xz": b"no archive"}, "", "train.txt.xz: damaged after line 0"),
        ({"train__csv": ""}, "train.csv", "train.csv: empty file"),
        ({"train__csv": "a,b\n1,2\n"}, "", "which column holds the text"),
        ({"train__csv": "text,labels\nx\n"}, "", "train.csv:2: 1 fields, but the header has 2"),
        ({"train__csv": 'text,labels\n"x,y\n'}, "", "train.csv:2: unexpected end of data"),
        ({"train__csv": "text,labels\n"}, "", "train.csv: no records"),
        ({"train__jsonl": '{"text": "a"}\n{"text": \n'}, "", "train.jsonl:2: not valid JSON"),
        ({"train__jsonl": "[1]\n"}, "", "train.jsonl:1: expected a JSON object"),
        ({"train__jsonl": '{"text": 3, "labels": []}\n'}, "", "train.jsonl:1: 'text' is not a text"),
        ({"train__txt": "2 3 2\n0 0:1\n"}, "", "train.txt: 1 documents, but its header announces 2"),
        ({"train__txt": "1 3 2\n0 0=1\n"}, "", "train.txt:2: expected l1,l2 f:v"),
        ({"train__txt": "2 3 2\n0 0:1\n5 0:1\n"}, "", "train.txt:3: label 5: the header allows 0 to 1"),
        ({"train__txt": "1 3 2\n0 7:1\n"}, "", "train.txt:2: feature 7: the header allows 0 to 2"),
        ({"train__txt": "1 3 2\n0 1:nan\n"}, "", "train.txt:2: a value is NaN"),
        ({"Y__trn__npz": b"junk"}, "", "Y.trn.npz: not a sparse matrix"),
        ({"picture__png": b"\x89PNG"}, "", "format not recognized: `treetop data formats` lists"),
        ({}, "absent", "absent: no such file or folder"),
    ],
)
def test_malformed_data_names_file_line_and_reason(tmp_path, files, name, message):
    write(tmp_path, **files)
    with pytest.raises(TreetopError) as error:
        open_data(tmp_path / name if name else tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_pecos_matrices_of_different_lengths_are_an_error(tmp_path):
    sp.save_npz(tmp_path / "X.trn.npz", sp.csr_matrix((4, 2)))
    sp.save_npz(tmp_path / "Y.trn.npz", sp.csr_matrix((5, 2)))
    with pytest.raises(TreetopError, match=r"X.trn.npz has 4 rows, but Y.trn.npz has 5"):
        open_data(tmp_path)
    (tmp_path / "X.trn.txt").write_text("a\n")
    with pytest.raises(TreetopError, match=r"X.trn.txt: 1 lines, but Y.trn.npz has 5 rows"):
        open_data(tmp_path)
    sp.save_npz(tmp_path / "Y.trn.npz", sp.csr_matrix((1, 2)))
    (tmp_path / "Y.txt").write_text("one\n")
    with pytest.raises(TreetopError, match=r"Y.txt: 1 label names"):
        open_data(tmp_path)


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "Y.trn.npz", data=np.array([{"a": 1}], dtype=object), format=b"csr")
    with pytest.raises(TreetopError, match="not a sparse matrix"):
        open_data(tmp_path)


def test_a_missing_split_is_an_error():
    with pytest.raises(TreetopError, match="no split test: it has train"):
        open_data_of_one().split("test")


def open_data_of_one():
    from treetop.data.dataset import Dataset, Split

    return Dataset("x", {"train": Split(["a"], None)})


@pytest.mark.parametrize(
    ("name", "content", "detected"),
    [
        (
            "books.csv",
            "title;subjects\nBread, a history;food|history\n",
            "csv (texts in 'title', labels in 'subjects' separated by '|', columns separated by ';')",
        ),
        (
            "books.csv",
            'id,"text",tags\n1,bread; paper,food\n',
            "csv (texts in 'text', labels in 'tags', columns separated by ',')",
        ),
        (
            "books.tsv",
            "text\tlabel\nbread, paper\tfood;crafts\n",
            "tsv (texts in 'text', labels in 'label' separated by ';', columns separated by tabs)",
        ),
        (
            "books.csv",
            "text\nbread\n",
            "csv (texts in 'text', no column of labels, columns separated by ',')",
        ),
        (
            "books.jsonl",
            '{"text": "bread", "labels": ["a", "b"]}\n',
            "jsonl (texts in 'text', labels in 'labels')",
        ),
        ("books.txt", "bread\n", "text-lines"),
    ],
)
def test_a_data_set_says_what_was_detected(tmp_path, name, content, detected):
    (tmp_path / name).write_text(content)
    assert open_data(tmp_path / name).detected == detected


def test_requested_columns_decide_about_the_delimiter_too(tmp_path):
    (tmp_path / "a.csv").write_text("first|was gibt's, und was\nbread|food\n")
    split = open_data(tmp_path / "a.csv", "first", "was gibt's, und was").split("train")
    assert (split.texts, split.labels) == (["bread"], [["food"]])


def test_a_csv_of_unknown_columns_lists_them_and_names_the_option(tmp_path):
    (tmp_path / "a.csv").write_text("eins;zwei\nbread;food\n")
    with pytest.raises(TreetopError) as error:
        open_data(tmp_path / "a.csv")
    assert str(error.value) == (
        f"{tmp_path / 'a.csv'}: which column holds the text? Its columns are eins, zwei: "
        "choose one with --text-column"
    )


def test_a_data_set_is_printed_on_one_line(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nred apple,red;fruit\ngreen pear,green;fruit\n")
    data = open_data(tmp_path / "a.csv")
    assert repr(data) == f"Dataset({data.detected}: train=Split(2 texts))"
    matrix = sp.csr_matrix(np.ones((3, 4), np.float32))
    assert repr(Split(None, None, X=matrix)) == "Split(3 rows of 4 features, no labels)"
