"""Every way in which a file can be wrong: the message names file, line and reason."""

import json
import re

import pytest

from treetop.data import open_data
from treetop.errors import TreetopError

LF = '{"title": "t", "content": "c", "target_ind": [0]}\n'
LBL = '{"title": "x"}\n'
CASES = {
    "xmlrepo-split": [
        (
            {"trn_X_Xf.txt": "no header\n", "trn_X_Y.txt": "1 1\n0:1\n"},
            "trn_X_Xf.txt:1: the header must be two numbers",
        ),
        (
            {"trn_X_Xf.txt": "2 3\n0:1\n", "trn_X_Y.txt": "1 1\n0:1\n"},
            "trn_X_Xf.txt: 1 documents, but its header announces 2",
        ),
        (
            {"trn_X_Xf.txt": "1 3\n5:1\n", "trn_X_Y.txt": "1 1\n0:1\n"},
            "trn_X_Xf.txt:2: feature 5: the header allows 0 to 2",
        ),
        ({"trn_X_Xf.txt": "1 3\n0:x\n", "trn_X_Y.txt": "1 1\n0:1\n"}, "trn_X_Xf.txt:2: a value is NaN"),
        (
            {"trn_X_Xf.txt": "1 3\n0:1\n", "trn_X_Y.txt": "2 1\n0:1\n0:1\n"},
            "trn_X_Y.txt: 2 documents, but trn_X_Xf.txt has 1",
        ),
        (
            {
                "trn_X_Xf.txt": "1 3\n0:1\n",
                "trn_X_Y.txt": "1 1\n0:1\n",
                "filter_labels_train.txt": "0 0\nx\n",
            },
            "filter_labels_train.txt:2: expected two numbers",
        ),
        (
            {
                "trn_X_Xf.txt": "1 3\n0:1\n",
                "trn_X_Y.txt": "1 1\n0:1\n",
                "filter_labels_train.txt": "0 7\n",
            },
            "filter_labels_train.txt:1: document 0, label 7: the data has 1 documents and 1 labels",
        ),
        (
            {"trn_X_Xf.txt": "1 3\n0:1\n", "trn_X_Y.txt": "1 1\n0:1\n", "Yf.txt": "a\nb\n"},
            "Yf.txt: 2 label names for 1 labels",
        ),
    ],
    "lf": [
        ({"trn.json": "{\n", "lbl.json": LBL}, "trn.json:1: not valid JSON"),
        ({"trn.json": LF + "[]\n", "lbl.json": LBL}, "trn.json:2: expected a JSON object"),
        (
            {"trn.json": '{"title": "t"}\n', "lbl.json": LBL},
            "trn.json:1: target_ind must be a list of label numbers",
        ),
        (
            {"trn.json": '{"title": "t", "target_ind": ["a"]}\n', "lbl.json": LBL},
            "trn.json:1: target_ind must be",
        ),
        (
            {"trn.json": '{"title": "t", "target_ind": [3]}\n', "lbl.json": LBL},
            "trn.json:1: label 3: lbl.json has 1 labels",
        ),
        (
            {"trn.json": '{"title": "t", "target_ind": [0], "target_rel": []}\n', "lbl.json": LBL},
            "trn.json:1: target_rel must have as many",
        ),
        (
            {"trn.json": '{"title": "t", "target_ind": [0], "target_rel": ["x"]}\n', "lbl.json": LBL},
            "trn.json:1: target_rel must hold numbers",
        ),
        (
            {"trn.json": '{"title": 3, "target_ind": [0]}\n', "lbl.json": LBL},
            "trn.json:1: title and content must be strings",
        ),
        ({"trn.json": "\n", "lbl.json": LBL}, "trn.json: no records"),
        ({"trn.json": LF, "lbl.json": "nothing\n"}, "lbl.json:1: not valid JSON"),
    ],
    "attentionxml": [
        (
            {"train_texts.txt": "a\nb\n", "train_labels.txt": "x\n"},
            "train_labels.txt: 1 lines of labels, but train_texts.txt has 2 documents",
        ),
        ({"train_raw_texts.txt": "", "train_labels.txt": ""}, "train_raw_texts.txt: empty file"),
        (
            {"train_raw_texts.txt": b"a\n\xff\n", "train_labels.txt": "x\ny\n"},
            "train_raw_texts.txt:2: not UTF-8",
        ),
        (
            {"train_raw_texts.txt": "a\n", "train_labels.txt": b"\0\n"},
            "train_labels.txt:1: contains a NUL byte",
        ),
        ({"train_raw_texts.txt.gz": b"none"}, "train_raw_texts.txt.gz: damaged after line 0"),
    ],
    "libsvm": [
        ({"train.libsvm": "1 2:3\n1 2;3\n"}, "train.libsvm:2: expected l1,l2 f:v"),
        ({"train.libsvm": "1 2:abc\n"}, "train.libsvm:1: a value is NaN"),
        ({"train.libsvm": "1 2:3\n-1 2:3\n"}, "train.libsvm:2: expected"),
        (
            {"train.libsvm": "1 2:3\n1 99999999999:1\n"},
            "train.libsvm:2: a number is above 2,147,483,647",
        ),
        ({"train.libsvm": ""}, "train.libsvm: empty file"),
        ({"train.libsvm.xz": b"none"}, "train.libsvm.xz: damaged after line 0"),
        ({"train.libsvm": "3 2:3\n", "labels.txt": "a\n"}, "labels.txt: 1 label names for 4 labels"),
    ],
    "fasttext": [
        ({"train.ft": "__label__ text\n"}, "train.ft:1: __label__ is not followed by a label"),
        ({"train.ft": "text\n"}, "train.ft:1: no line begins with __label__"),
        ({"train.ft": ""}, "train.ft: empty file"),
        ({"train.ft": b"__label__a b\n\xff\n"}, "train.ft:2: not UTF-8"),
        ({"train.ft": "__label__a b\n__label__a \0\n"}, "train.ft:2: contains a NUL byte"),
        ({"train.ft.zst": b"none"}, "train.ft.zst: damaged after line 0"),
    ],
    "annif": [
        ({"train.tsv": "a\t<u>\nb\n"}, "train.tsv:2: expected a text, a tab and <uri>"),
        ({"train.tsv": "a\t<u>\nb\tu\n"}, "train.tsv:2: subjects must be URIs in angle brackets"),
        ({"train.tsv": b"a\t<u>\n\xff\t<u>\n"}, "train.tsv:2: not UTF-8"),
        (
            {"train.tsv": "a\t<u>\n", "vocab.tsv": "u\tname\n"},
            "vocab.tsv:1: expected <uri>, a tab and a label",
        ),
        ({"train.tsv": "a\t<u>\n\0\t<u>\n"}, "train.tsv:2: contains a NUL byte"),
        ({"a.txt": "text", "a.tsv": "u\n"}, "a.tsv:1: expected <uri>"),
        ({"a.txt": "text", "a.tsv": "<u>\tx\n", "b.txt": "more"}, "b.txt: has no file of subjects"),
        ({"a.txt": b"te\xff", "a.key": "x\n"}, "a.txt: not UTF-8 at byte 3"),
        ({"a.txt": "text", "a.key": b"x\n\xff\n"}, "a.key:2: not UTF-8"),
        (
            {"a.txt": "text", "a.tsv": "<u>\tx\n", "subjects.tsv": "<u>\n"},
            "subjects.tsv:1: expected <uri>",
        ),
    ],
    "parquet": [
        ({"train.parquet": b"nothing"}, "train.parquet: not readable"),
        ({"train.parquet": {"a": ["x"]}}, "train.parquet: which column holds the text?"),
        ({"train.parquet": {"text": [1]}}, "train.parquet: row 1: 'text' is not a text"),
        ({"train.parquet": {"text": ["a", None]}}, "train.parquet: row 2: 'text' is not a text"),
        ({"train.parquet": {"text": []}}, "train.parquet: no records"),
        ({"state.json": "{"}, "state.json: not readable"),
        ({"state.json": "{}"}, "state.json: not readable"),
        ({"state.json": '{"_data_files": [{"filename": "x.arrow"}]}'}, "x.arrow: not readable"),
        (
            {"state.json": '{"_data_files": [{"filename": "x.arrow"}]}', "x.arrow": b"none"},
            "x.arrow: not readable",
        ),
        ({"state.json": '{"_data_files": []}'}, "no records"),
    ],
    "table": [
        ({"train.tsv": "text\tlabels\na\n"}, "train.tsv:2: 1 fields, but the header has 2"),
        ({"train.tsv": 'text\tlabels\n"a\tb\n'}, "train.tsv:2: unexpected end of data"),
        ({"train.tsv": "one\ttwo\na\tb\n"}, "train.tsv: which column holds the text?"),
        ({"train.tsv": b"text\tlabels\n\xff\tb\n"}, "train.tsv:2: not UTF-8"),
        ({"train.tsv": "text\tlabels\n"}, "train.tsv: no records"),
        ({"train.jsonl": '{"text": "a"}\n{"labels": ["x"]}\n'}, "train.jsonl:2: 'text' is not a text"),
        ({"train.jsonl": "\n\n"}, "train.jsonl: no records"),
    ],
    "pecos": [
        ({"Y.trn.npz": b""}, "Y.trn.npz: not a sparse matrix"),
        ({"Y.trn.npz": b"PK\x03\x04"}, "Y.trn.npz: not a sparse matrix"),
    ],
}
ALL = [(form, files, message) for form, cases in CASES.items() for files, message in cases]


@pytest.mark.parametrize(("form", "files", "message"), ALL, ids=lambda value: str(value)[:40])
def test_the_message_says_file_line_and_reason(tmp_path, form, files, message):
    for name, content in files.items():
        if isinstance(content, dict):
            pyarrow = pytest.importorskip("pyarrow")
            table = pyarrow.table({key: pyarrow.array(value) for key, value in content.items()})
            __import__("pyarrow.parquet").parquet.write_table(table, tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TreetopError) as error:
        open_data(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_format_has_at_least_five_cases():
    assert all(len(cases) >= 5 for form, cases in CASES.items() if form != "pecos")


@pytest.mark.parametrize("name", ["pyarrow", "zstandard"])
def test_a_missing_package_is_named(tmp_path, monkeypatch, name):
    monkeypatch.setitem(__import__("sys").modules, name, None)
    path = tmp_path / ("a.parquet" if name == "pyarrow" else "a.jsonl.zst")
    path.write_bytes(json.dumps({"text": "a"}).encode())
    message = f"require an extra package ({name} is not installed): pip install 'treetop-xmc[data]'"
    with pytest.raises(TreetopError, match=re.escape(message)):
        open_data(path)
