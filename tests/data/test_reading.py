"""Tables are read as they were meant: lists, separators, encodings, nested objects, several columns."""

import bz2
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from treetop.data import open_data
from treetop.data.convert import convert
from treetop.data.dataset import Split
from treetop.errors import TreetopError


def file_of(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def labels_of(path, **options):
    return open_data(path, **options).split("train").labels


def csv_of(cells, column="labels"):
    quoted = ('"' + cell.replace('"', '""') + '"' for cell in cells)
    return f"text,{column}\n" + "".join(f"t{n},{cell}\n" for n, cell in enumerate(quoted))


# Labels in a cell


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['a', 'b']", ["a", "b"]),
        ('["a, c", "b"]', ["a, c", "b"]),
        ("['it''s', \"it's\"]", ["its", "it's"]),
        ("['a' 'b c']", ["a", "b c"]),  # as numpy writes it
        ("[]", []),
        ("[1, 2.0]", ["1", "2"]),
        ("('b', 'a')", ["b", "a"]),
        ("{'b', 'a'}", ["a", "b"]),
        ("(a, b)", ["(a, b)"]),
        ("[a]", ["[a]"]),
    ],
)
def test_lists_written_as_text(tmp_path, cell, labels):
    assert labels_of(file_of(tmp_path, "a.csv", csv_of([cell, "['x']"]))) == [labels, ["x"]]


def test_one_separator_in_one_cell_does_not_change_the_whole_file(tmp_path):
    cells = ["AT&T; Inc.|food", *(["history|food", "food|crafts", "crafts|history"] * 9)]
    data = open_data(file_of(tmp_path, "a.csv", csv_of(cells)))
    assert data.split("train").labels[:4] == [cell.split("|") for cell in cells[:4]]
    assert data.reading.separator == "|"
    single = ["history", "food", "crafts", "law"] * 5 + ["AT&T; Inc."]
    assert labels_of(file_of(tmp_path, "b.csv", csv_of(single))) == [[cell] for cell in single]


def test_the_separator_is_chosen_once_for_all_splits(tmp_path):
    file_of(tmp_path, "train.csv", csv_of(["a;b", "b;c", "a;c"]))
    file_of(tmp_path, "test.csv", csv_of(["x|y"]))
    assert open_data(tmp_path).split("test").labels == [["x|y"]]


@pytest.mark.parametrize(
    ("separator", "labels"),
    [(",", ["Paris", "France; EU"]), ("none", ["Paris, France; EU"]), (";", ["Paris, France", "EU"])],
)
def test_a_separator_on_request(tmp_path, separator, labels):
    path = file_of(tmp_path, "a.csv", csv_of(["Paris, France; EU"]))
    assert labels_of(path, label_separator=separator) == [labels]


def test_two_plausible_readings_are_said_and_the_option_is_named(tmp_path):
    data = open_data(
        file_of(tmp_path, "a.csv", csv_of(["Paris, France", "Lyon, France", "Bonn, Germany"]))
    )
    assert data.split("train").labels[0] == ["Paris, France"]
    (warning,) = data.reading.warnings
    assert "'labels' may hold one label or several, as in 'Paris, France'" in warning
    assert "--label-separator ','" in warning


def test_labels_that_nearly_all_occur_once_are_said(tmp_path):
    cells = [f"topic{n} and more" for n in range(30)]
    path = file_of(tmp_path, "a.csv", csv_of(cells))
    (warning,) = open_data(path).reading.warnings
    assert warning.startswith("30 of 30 labels in 'labels' occur only once")
    assert "--label-separator" in warning
    assert open_data(path, label_separator="none").reading.warnings == ()


def test_uris_in_one_cell_are_separated_by_spaces(tmp_path):
    cells = ["<http://x.org/a> <http://x.org/b>", "http://x.org/a", "<http://x.org/c>"]
    data = open_data(file_of(tmp_path, "a.csv", csv_of(cells, "subject_uris")))
    uris = [["http://x.org/a", "http://x.org/b"], ["http://x.org/a"], ["http://x.org/c"]]
    assert data.split("train").labels == uris
    assert "labels in 'subject_uris' separated by spaces" in data.detected


def test_objects_are_identified_by_their_uri_and_keep_their_name(tmp_path):
    subjects = [{"uri": "http://x/1", "label": "bread"}, {"uri": "http://x/2", "label": "bread"}]
    records = [{"text": "a", "subjects": subjects}, {"text": "b", "subjects": subjects[0]}]
    data = open_data(file_of(tmp_path, "a.jsonl", "\n".join(map(json.dumps, records))))
    assert data.split("train").labels == [["http://x/1", "http://x/2"], ["http://x/1"]]
    assert data.label_titles == {"http://x/1": "bread", "http://x/2": "bread"}
    path = file_of(tmp_path, "b.jsonl", '{"text": "a", "labels": [{"score": 1}]}')
    with pytest.raises(TreetopError, match="labels are objects with the keys score: they must have"):
        open_data(path)


def test_labels_that_differ_by_surrounding_space_are_not_merged_silently(tmp_path):
    data = open_data(file_of(tmp_path, "a.jsonl", '{"text": "a", "labels": ["x", "x "]}'))
    assert data.split("train").labels == [["x"]]
    assert data.reading.warnings == ("1 labels in 'labels' had surrounding space: it was removed",)


def test_a_table_is_written_so_that_it_is_read_back(tmp_path):
    lines = [["a", "b"], *([f"l{n}"] for n in range(20))]
    frame = {"text": ["t"] * len(lines), "labels": lines}
    convert(open_data(frame), tmp_path / "a.csv")
    assert labels_of(tmp_path / "a.csv") == lines


# Columns


def test_several_columns_of_texts_are_joined(tmp_path):
    path = file_of(tmp_path, "a.csv", "title,body,labels\nBread,how to bake,food\nPaper,,crafts\n")
    data = open_data(path, ["title", "body"])
    assert data.split("train").texts == ["Bread\nhow to bake", "Paper"]
    assert data.detected.startswith("csv (texts in 'title' and 'body', labels in 'labels'")
    frame = {"title": ["Bread"], "body": [None], "labels": ["food"]}
    assert open_data(frame, ["title", "body"]).split("train").texts == ["Bread"]


def test_columns_of_the_same_name(tmp_path):
    path = file_of(tmp_path, "a.csv", "text,note,note,labels\na,1,2,x\n")
    assert labels_of(path) == [["x"]]
    path = file_of(tmp_path, "b.csv", "text,text,labels\na,b,x\n")
    with pytest.raises(TreetopError, match="several columns are called 'text': rename them"):
        open_data(path)


@pytest.mark.parametrize(
    "content",
    [
        "text;labels\nbread, and more; twice;food\n".replace("; twice", ""),
        'body text;labels\n"bread; and, more";food|x\n',
        "sep=;\ntext;labels\nbread;food\n",
        "id;labels;text\n1,5;food;a, b, c\n2,5;food;d\n",
    ],
)
def test_files_delimited_by_semicolons(tmp_path, content):
    path = file_of(tmp_path, "a.csv", content)
    column = "body text" if content.startswith("body") else None
    data = open_data(path, column)
    assert data.reading.delimiter == ";"
    assert data.split("train").labels[0][0] == "food"


def test_json_arrays(tmp_path):
    records = [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": []}]
    for indent in (None, 2):
        path = file_of(tmp_path, f"a{indent}.json", json.dumps(records, indent=indent))
        assert open_data(path).split("train").texts == ["a", "b"]
    for content, message in (
        ('[{"text": "a"},\n{"text": }]', "b.json:2: not valid JSON"),
        ('[\n{"text": "a"}\n', "b.json:2: not valid JSON: expected a comma or ]"),
        ('[{"text": "a"}\n, 3]', "b.json:2: expected a JSON object"),
        ("[]", "b.json: no records"),
        ('{"text": "\\ud800", "labels": []}', "b.json:1: contains half of a surrogate pair"),
        ("[" * 100_000, "b.json:1: not valid JSON"),
    ):
        with pytest.raises(TreetopError, match=message.replace("]", r"\]")):
            open_data(file_of(tmp_path, "b.json", content))


def test_excel_files(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (
        ["text", "year", "labels"],
        ["bread", 2020, "food;law"],
        [None] * 3,
        ["law", 1, "law;food"],
    ):
        book.active.append(row)
    book.create_sheet("more")
    book.save(tmp_path / "a.xlsx")
    data = open_data(tmp_path / "a.xlsx")
    assert data.split("train").labels == [["food", "law"], ["law", "food"]]
    assert "only the first sheet is read, 'Sheet' of 2" in data.reading.warnings[0]
    # Excel makes numbers of texts such as a year, and nothing of an empty one.
    assert open_data(tmp_path / "a.xlsx", "year").split("train").texts == ["2020", "1"]
    with pytest.raises(TreetopError, match=r"Excel files have no other encoding: leave out --encoding"):
        open_data(tmp_path / "a.xlsx", encoding="cp1252")
    with pytest.raises(TreetopError, match=r"b.xlsx: not readable .*: save it again, or as CSV"):
        open_data(file_of(tmp_path, "b.xlsx", b"no zip"))


# Encodings and compression


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252", "utf-8-sig"])
def test_encodings_are_detected_and_said(tmp_path, encoding):
    text = "text,labels\n" + "Café zu Hause – „wirklich“,Küche\n" * 5
    content = text.encode(encoding)
    data = open_data(file_of(tmp_path, "a.csv", content))
    assert data.split("train").texts[0] == "Café zu Hause – „wirklich“"
    assert data.split("train").labels[0] == ["Küche"]
    said = encoding if encoding != "utf-8-sig" else None
    assert data.reading.encoding == said
    assert (f"encoding {encoding}" in data.detected) == (said is not None)
    lines = text.encode(encoding)
    assert open_data(file_of(tmp_path, "a.txt", lines)).split("train").texts[0] == "text,labels"


def test_an_encoding_on_request(tmp_path):
    path = file_of(tmp_path, "a.csv", "text,labels\nжар-птица,x\n".encode("cp1251"))
    with pytest.raises(TreetopError, match=r"a.csv:2: not UTF-8 .* or give its --encoding"):
        open_data(path)
    assert open_data(path, encoding="cp1251").split("train").texts == ["жар-птица"]
    with pytest.raises(TreetopError, match=r"not in this encoding .*: give another --encoding"):
        open_data(path, encoding="ascii")
    with pytest.raises(TreetopError, match="encoding 'nonsense' is not known"):
        open_data(path, encoding="nonsense")


def test_a_damaged_character_in_utf8_is_not_taken_for_another_encoding(tmp_path):
    content = ("text,labels\n" + "Café,x\n" * 9).encode() + b"Caf\xe9,x\n"
    with pytest.raises(TreetopError, match=r"a.csv:11: not UTF-8"):
        open_data(file_of(tmp_path, "a.csv", content))


def test_an_option_that_a_format_does_not_use_is_an_error(tmp_path):
    path = file_of(tmp_path, "a.txt", "some text\n")
    with pytest.raises(TreetopError, match="text-lines has no columns of a table: leave out --t"):
        open_data(path, "body")
    path = file_of(tmp_path, "a.csv", csv_of(["x"]))
    with pytest.raises(TreetopError, match="has no file of label names: leave out --merge-duplicates"):
        open_data(path, merge_duplicates=True)


def first_part(content):
    """The first of two zst files, one after the other, which are one file."""
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor(write_checksum=True).compress(content[:999])


def compressed(name, content):
    if name.endswith("zst"):
        zstandard = pytest.importorskip("zstandard")
        compressor = zstandard.ZstdCompressor(write_checksum=True)
        return first_part(content) + compressor.compress(content[999:])
    module = {"gz": "gzip", "xz": "lzma"}.get(name.rsplit(".", 1)[1])
    return __import__(module).compress(content) if module else bz2.compress(content)


@pytest.mark.parametrize("name", ["a.txt.zst", "a.txt.gz", "a.txt.bz2", "a.txt.xz"])
def test_a_cut_file_is_never_read_as_complete(tmp_path, name):
    """Cut after every byte; a zst file also between its two parts, each of which is complete."""
    lines = "".join(f"line {n} {n * n}\n" for n in range(120)).encode()
    content = compressed(name, lines)
    assert len(open_data(file_of(tmp_path, name, content)).split("train")) == 120
    between = first_part(lines) if name.endswith("zst") else b""
    assert len(content) > 200
    for cut in range(1, len(content)):
        if content[:cut] == between:
            continue
        with pytest.raises(TreetopError, match=r"damaged after line|a.txt.\w+: "):
            open_data(file_of(tmp_path, name, content[:cut]))


# Columns


def notes_of(folder, name, content, **options):
    return open_data(file_of(folder, name, content), **options).reading.warnings


def test_columns_that_could_have_been_meant_are_named(tmp_path):
    content = "title,body,tags,category\nBread,of rye,food,x\n"
    texts, labels = notes_of(tmp_path, "a.csv", content)
    assert texts.startswith("texts are read from 'body' alone, not from 'title': choose one or several")
    assert (
        labels == "labels are read from 'tags' alone, not from 'category': choose with --labels-column"
    )
    assert notes_of(tmp_path, "a.csv", content, text_column="body", labels_column="tags") == ()


def test_records_without_the_column_of_labels_are_counted(tmp_path):
    content = '{"text": "a", "subjects": ["x"]}\n{"text": "b"}\n'
    (note,) = notes_of(tmp_path, "a.jsonl", content)
    assert "1 records have no 'subjects': they are read without labels" in note


def test_a_separator_that_does_not_occur_is_said(tmp_path):
    (note,) = notes_of(tmp_path, "a.csv", csv_of(["a|b"]), label_separator="||")
    assert note == "--label-separator '||' does not occur in 'labels'"


def test_names_of_columns_may_have_surrounding_space(tmp_path):
    data = open_data(file_of(tmp_path, "a.csv", " Text , labels\nbread,food\n"))
    assert (data.split("train").texts, data.split("train").labels) == (["bread"], [["food"]])


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "text,labels\rx,a\r", {}, "a.csv:1: a line ends in CR alone: end lines in LF"),
        ("a.csv", "title,x\nT,1\n", {"labels_column": "title"}, "which column holds the text?"),
        (
            "a.csv",
            "title,x\nT,1\n",
            {"text_column": "title", "labels_column": "title"},
            "the column 'title' cannot be texts and labels: choose another",
        ),
        ("a.csv", "text,x\nT,1\n", {"text_column": ["x", "x"]}, "--text-column 'x' is given twice"),
        (
            "a.jsonl",
            '{"text": "a", "labels": []}\n{"text": "a", "labels": [["b"]]}',
            {},
            "train, document 2, 'labels': the label .* is a list or an object",
        ),
    ],
)
def test_what_is_wrong_with_columns_is_one_line(tmp_path, name, content, options, message):
    with pytest.raises(TreetopError, match=message) as error:
        open_data(file_of(tmp_path, name, content), **options)
    assert "\n" not in str(error.value)


# Text lines


def test_lines_of_labels_that_have_another_separator_than_tabs(tmp_path):
    file_of(tmp_path, "train.txt", "x\ny\nz\n")
    file_of(tmp_path, "train.labels", "a,b\nb\na,b\n")
    (note,) = open_data(tmp_path).reading.warnings
    assert (
        "'a,b' have no tab: each is read as one label; divide them with --label-separator ','" in note
    )
    assert labels_of(tmp_path, label_separator=",") == [["a", "b"], ["b"], ["a", "b"]]
    assert labels_of(tmp_path, label_separator="none") == [["a,b"], ["b"], ["a,b"]]
    data = open_data(tmp_path, label_separator="tab")
    assert (data.split("train").labels[0], data.reading.warnings) == (["a,b"], ())


def test_labels_of_lines_that_nearly_all_occur_once_are_said(tmp_path):
    file_of(tmp_path, "train.txt", "x\n" * 30)
    file_of(tmp_path, "train.labels", "".join(f"word {n}\n" for n in range(30)))
    (note,) = open_data(tmp_path).reading.warnings
    assert "30 of 30 labels in 'the files of labels' occur only once" in note


def test_texts_and_labels_may_be_in_different_encodings(tmp_path):
    file_of(tmp_path, "train.txt", "café\nnaïve\n".encode("cp1252"))
    file_of(tmp_path, "train.labels", "été\nüber\n")
    data = open_data(tmp_path)
    assert data.split("train").texts == ["café", "naïve"]
    assert data.split("train").labels == [["été"], ["über"]]
    assert data.reading.encoding == "cp1252"


# Folders


def test_a_folder_of_other_names_says_how_to_name_them(tmp_path):
    file_of(tmp_path, "documents.csv", csv_of(["x"]))
    with pytest.raises(TreetopError, match=r"such as train.csv, or give one, such as .*documents.csv$"):
        open_data(tmp_path)


def test_matrices_beside_text_lines_are_named(tmp_path):
    file_of(tmp_path, "train.txt", "x\n")
    file_of(tmp_path, "train.labels", "a\n")
    file_of(tmp_path, "X.npz", b"")
    (note,) = open_data(tmp_path).reading.warnings
    assert "X.npz is not read: one folder holds one format" in note


def test_files_that_look_like_a_split_are_named(tmp_path):
    for name in ("train.csv", "train.jsonl", "valid.csv", "test.csv.gz", "notes.txt"):
        file_of(tmp_path, name, csv_of(["x"]))
    (tmp_path / "validate").mkdir()
    (tmp_path / "test.csv.gz").write_bytes(compressed("a.gz", csv_of(["x"]).encode()))
    data = open_data(tmp_path)
    assert list(data.splits) == ["train", "test"]
    named = [warning.split(" is not read: ")[0].rsplit("/", 1)[1] for warning in data.reading.warnings]
    assert named == ["train.jsonl", "valid.csv", "validate"]
    assert "rename it" in data.reading.warnings[1]


def test_label_names_that_occur_twice_are_merged_on_request(tmp_path):
    file_of(tmp_path, "train.txt", "3 2 3\n0 0:1\n0,2 1:1\n1 0:1\n")
    file_of(tmp_path, "Yf.txt", "red\ngreen\nred\n")
    apart = open_data(tmp_path)
    assert apart.label_names == ["red", "green", "red (2)"]
    assert apart.split("train").Y.toarray().tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]
    data = open_data(tmp_path, merge_duplicates=True)
    assert data.label_names == ["red", "green"]
    assert data.split("train").Y.toarray().tolist() == [[1, 0], [1, 0], [0, 1]]


@given(st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True), max_size=8))
def test_labels_are_counted_as_their_lists_of_names_are(lines):
    columns = [column for line in lines for column in line]
    pointers = np.cumsum([0, *map(len, lines)])
    Y = sp.csr_matrix((np.ones(len(columns), np.float32), columns, pointers), shape=(len(lines), 6))
    for names in (None, list("abcdef"), list("abcaef")):
        matrix = Split(None, None, Y=Y)
        named = matrix.named_labels(names)
        listed = replace(matrix, labels=named, Y=None)
        for split in (matrix, listed):
            assert split.label_sizes().tolist() == [len(line) for line in named]
            assert split.label_counts(names) == Counter(name for line in named for name in line)
