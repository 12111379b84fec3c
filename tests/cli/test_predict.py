"""`treetop predict` and `evaluate`: all formats are read, columns kept, training data noticed."""

import gzip
import io
import json
import os
import shlex
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from treetop import Ensemble, XRLinear
from treetop.cli.main import run_command
from treetop.cli.predicted import added_column, as_json, csv_line
from treetop.model.seen import KEPT, SeenDocuments, hash_of_text

DOCS = [("red apple", "red;fruit"), ("green pear", "green;fruit"), ("blue sky", "blue")] * 6
ROWS = sp.random(30, 12, 0.4, "csr", random_state=0)
NAMES = sp.csr_matrix(np.eye(3)[np.arange(30) % 3])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    here = tmp_path_factory.mktemp("predict")
    texts, labels = [text for text, _ in DOCS], [line.split(";") for _, line in DOCS]
    XRLinear(threads=1).fit(texts, labels).save(here / "model")
    XRLinear(threads=1).fit(ROWS, NAMES).save(here / "matrix")
    table = "".join(f"{n};{text};{2000 + n}\n" for n, (text, _) in enumerate(DOCS[:3]))
    (here / "new.csv").write_text("id;title;year\n" + table + "9;;2009\n10;zzz qqq;2010\n")
    (here / "seen.csv").write_text("text,labels\n" + "".join(f"{t},{ls}\n" for t, ls in DOCS))
    (here / "lines.txt").write_text("red apple\n\nblue sky\n")
    return here


@pytest.fixture
def run(place, monkeypatch, capsys):
    """Runs a command; its exit code, stdout and stderr."""
    monkeypatch.chdir(place)

    def of(command):
        code = run_command(shlex.split(command))
        return code, *capsys.readouterr()

    return of


def first_labels(out, name="labels"):
    return [one[name][0]["label"] if one[name] else None for one in map(json.loads, out.splitlines())]


def test_columns_are_kept_and_nothing_is_labelled_without_a_known_word(run):
    code, out, err = run("predict model new.csv -k 1")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [one["id"] for one in records] == ["0", "1", "2", "9", "10"]
    assert records[1]["year"] == "2001"
    assert first_labels(out)[2:] == ["blue", None, None]
    assert "columns separated by ';'" in err


def test_csv_has_a_header_and_the_delimiter_of_the_input(run, place):
    assert run("predict model new.csv -k 2 -o out.csv")[0] == 0
    lines = (place / "out.csv").read_text().splitlines()
    assert lines[0] == "id;title;year;labels;scores"
    assert lines[3].startswith("2;blue sky;2002;blue|")
    assert lines[4] == "9;;2009;;"
    assert run("predict model new.csv -k 1 -o out.tsv")[0] == 0
    assert (place / "out.tsv").read_text().splitlines()[3].startswith("2\tblue sky\t2002\tblue\t0.")


def test_labels_below_the_threshold_are_left_out(run):
    def scores(options):
        lines = run(f"predict model lines.txt -k 3 {options}")[1].splitlines()
        return [[label["score"] for label in json.loads(line)["labels"]] for line in lines]

    every = scores("")
    least = every[0][1]  # of the first text, two labels reach it
    assert scores(f"--threshold {least - 1e-6}") == [
        [score for score in line if score >= least] for line in every
    ]
    assert scores("--threshold 2") == [[], [], []]


def test_a_command_that_waits_for_texts_to_be_typed_says_so(run, monkeypatch):
    controller, terminal = os.openpty()
    os.write(controller, b"red apple\n\x04")  # Ctrl-D ends the input
    with open(terminal, encoding="utf-8") as typed:
        monkeypatch.setattr(sys, "stdin", typed)
        code, out, err = run("predict model -k 1")
        assert code == 0
        assert len(first_labels(out)) == 1
        assert "treetop: reading texts from the terminal; end the input with Ctrl-D\n" in err
        os.write(controller, b"red apple\n\x04")
        assert "terminal" not in run("predict model -k 1 -q")[2]
    os.close(controller)


def test_lines_as_csv_and_compressed(run, place):
    assert run("predict model lines.txt -k 1 -o lines.csv.gz")[0] == 0
    lines = gzip.decompress((place / "lines.csv.gz").read_bytes()).decode().splitlines()
    assert lines[0] == "text,labels,scores"
    assert lines[2] == ",,"
    assert lines[3].startswith("blue sky,blue,")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "blue sky", "labels": ["x"]}\n'),
        ("b.json", '[{"text": "blue sky"}]'),
        ("c.ft", "__label__x blue sky\n"),
        ("d.tsv", "blue sky\t<http://example.org/x>\n"),
        ("e.dat", "blue sky\n"),
        ("f.txt.gz", gzip.compress(b"blue sky\n")),
        ("g.csv", "Text,Größe\nblue sky,für\n".encode("cp1252")),
    ],
)
def test_formats_of_texts(run, place, name, content):
    (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, _ = run(f"predict model {name} -k 1 -q")
    assert code == 0
    assert first_labels(out, "predicted_labels" if name == "a.jsonl" else "labels") == ["blue"]


def test_ids_of_lf_and_annif(run, place):
    (place / "lf").mkdir()
    record = {"uid": "B0", "title": "blue", "content": "sky", "target_ind": [0]}
    (place / "lf" / "tst.json").write_text(json.dumps(record) + "\n")
    (place / "full").mkdir()
    (place / "full" / "one.txt").write_text("blue sky")
    (place / "full" / "one.key").write_text("x\n")
    (kept,) = map(json.loads, run("predict model lf -k 1 -q")[1].splitlines())
    assert (kept["uid"], kept["labels"][0]["label"]) == ("B0", "blue")
    (kept,) = map(json.loads, run("predict model full -k 1 -q")[1].splitlines())
    assert kept["file"] == "one.txt"


def test_matrices(run, place):
    (place / "plain").mkdir()
    sp.save_npz(place / "plain" / "X.npz", ROWS[:6])
    sp.save_npz(place / "plain" / "Y.npz", NAMES[:6])
    expected = run("predict matrix plain/X.npz -k 1 -q")[1]
    assert expected.count("\n") == 6
    assert run("predict matrix plain -k 1 -q")[1] == expected
    cells = [zip(row.indices, row.data, strict=True) for row in ROWS[:6]]
    lines = [" ".join(f"{column}:{value!r}" for column, value in row) for row in cells]
    sparse = "\n".join(f"0 {line.replace('np.float64(', '').replace(')', '')}" for line in lines)
    (place / "x.svm").write_text(sparse + "\n")
    assert run("predict matrix x.svm -k 1 -q")[1] == expected
    (place / "wide.svm").write_text(sparse.replace("\n", " 99:1\n") + " 99:1\n")
    code, out, err = run("predict matrix wide.svm -k 1")
    assert (code, out) == (0, expected)
    assert "features from 12 on are left out: the model was trained without them" in err
    assert json.loads(run("evaluate matrix plain --json --allow-training-data -q")[1])["documents"] == 6


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict matrix lines.txt", "the model takes features, but the data has texts"),
        ("predict model x.svm", "the model takes texts, but the data has features"),
        ("predict model lines.txt --split dev", "has lines, no splits: leave out --split"),
        ("predict model lines.txt --text-column a", "leave out --text-column"),
        ("predict model two", "the data has the splits train, dev: choose one with --split"),
        ("predict model two --split test", "no split test: choose one of train, dev with --split"),
        ("evaluate model two", "the data has the splits train, dev: choose one with --split"),
        ("predict model .", "is a folder: give a file with one text per line"),
    ],
)
def test_what_cannot_be_labelled(run, place, command, message):
    (place / "two").mkdir(exist_ok=True)
    (place / "x.svm").write_text("0 0:1\n")
    for name in ("train", "dev"):
        (place / "two" / f"{name}.csv").write_text("text,labels\nred,red\n")
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]


def test_the_columns_of_predictions_have_free_names():
    assert added_column("labels", ["text"]) == "labels"
    assert added_column("labels", ["labels", "predicted_labels"]) == "predicted_predicted_labels"
    header, line = csv_line(["a", "b"], ",", ["x;y", "u|v"])
    assert header == "a,b,labels,scores\n"
    assert (
        line({"a": [1, None]}, [("x;y", 0.5), ("u|v", 0.25)]) == '"[1, null]",,x;y / u|v,0.5 / 0.25\n'
    )
    _, line = csv_line([], ",", ["x;y", "u|v", "1 / 2"])
    assert line({}, [("1 / 2", 0.5)]) == '"[""1 / 2""]",0.5\n'
    assert as_json({"a": float("nan"), "b": [float("inf"), 1]}) == '{"a": null, "b": [null, 1]}'


def test_training_data_is_not_evaluated_on_silently(run, place):
    code, out, err = run("evaluate model seen.csv")
    assert (code, out) == (2, "")
    assert "the model was trained on 100% of these documents" in err.splitlines()[-1]
    assert "--allow-training-data" in err.splitlines()[-1]
    others = "".join(f"new {n},blue\n" for n in range(3)) + "blue sky,blue\n"
    (place / "some.csv").write_text("text,labels\n" + others)
    code, _, err = run("evaluate model some.csv")
    assert code == 0
    assert "the model was trained on 25.0% of these documents: metrics are too high" in err
    assert run("evaluate model seen.csv --allow-training-data --keep")[0] == 0
    assert "100% of them were trained on" in (place / "model" / "README.md").read_text()


def test_an_ensemble_knows_its_training_data(run, place):
    texts, labels = [text for text, _ in DOCS], [line.split(";") for _, line in DOCS]
    members = [XRLinear(threads=1, seed=seed).fit(iter(texts), labels) for seed in (0, 1)]
    Ensemble(members).save(place / "ensemble")
    assert run("evaluate ensemble seen.csv")[0] == 2


def test_a_sample_of_the_training_documents_is_enough():
    """Of four times as many documents as are kept, a part of those that are asked about is compared."""
    hashes = [hash_of_text(f"text {n}") for n in range(4 * KEPT)]
    seen = SeenDocuments.of(hashes)
    assert seen.arrays["hashes"].size == KEPT
    known, compared = seen.common(hashes[:4000])
    assert known == compared
    assert 800 < compared < 1200
    known, compared = seen.common(hash_of_text(f"other {n}") for n in range(4000))
    assert known == 0
    assert 800 < compared < 1200
    assert hash_of_text("a\r\nb ") == hash_of_text("a b") != hash_of_text("a  b")


def test_holding_out_prints_metrics_and_trains_on_all(run, place):
    docs = "".join(f"red thing {n},red\nblue thing {n},blue\n" for n in range(20))
    (place / "all.csv").write_text("text,labels\n" + docs)
    code, out, err = run("train all.csv -o held --hold-out 0.2 --set trees=1")
    assert code == 0
    assert (
        "Metrics of 8 documents that were held out, by a model that was trained on the other 32" in out
    )
    assert "training without 8 documents that are held out" in err
    config = json.loads((place / "held" / "config.json").read_text())
    assert config["train_documents"] == 40
    assert config["metrics"]["documents"] == 8
    assert run("evaluate held all.csv")[0] == 2
    summary = json.loads(run("train all.csv -o held --hold-out 0.2 --set trees=1 --json")[1])
    assert summary["held_out"]["documents"] == 8
    assert "hold_out is 1.5: it must be below 1" in run("train all.csv -o x --hold-out 1.5")[2]


def test_several_inputs(run, place):
    (place / "first.csv").write_text("text,labels\nred sky,red\nblue sea,blue\n")
    (place / "more.jsonl").write_text('{"text": "red sky", "labels": ["blue"]}\n')
    code, out, err = run("train first.csv more.jsonl -o several")
    assert code == 0
    assert "several: 3 documents, 2 labels" in out
    assert "1 documents have the text of an earlier one, but other labels" in err


def test_splitting_keeps_all_columns(run, place):
    rows = "".join(f"{n};red thing {n};red;{n // 4}\n" for n in range(40))
    (place / "table.csv").write_text("id;text;labels;journal\n" + rows)
    command = "data split table.csv {} --test 0.2 --dev 0.1 --group-by journal --seed 1"
    assert run(command.format("parts"))[0] == 0
    assert run(command.format("again"))[0] == 0
    found = [(place / "parts" / f"{name}.csv").read_text() for name in ("train", "dev", "test")]
    assert found == [(place / "again" / f"{n}.csv").read_text() for n in ("train", "dev", "test")]
    assert sorted("".join(one.partition("\n")[2] for one in found)) == sorted(rows)
    assert all(one.startswith("id;text;labels;journal\n") for one in found)
    assert [one.count("\n") - 1 for one in found] == [28, 4, 8]
    for options, message in (
        ("parts", "already exists"),
        ("x --group-by y", "no such column: its columns are id, text, labels, journal"),
        ("x --test 0.6 --dev 0.5", "--test plus --dev must be above 0 and below 1"),
        ("x --to y", "unknown format 'y'"),
    ):
        code, _, err = run(f"data split table.csv {options}")
        assert code == 2
        assert message in err.splitlines()[-1]
    assert run("data split plain matrices --test 0.4 --stratify")[0] == 0
    assert "has the splits train, dev, test already" in run("data split parts x")[2]


@pytest.mark.parametrize("name", ["x.xlsx", "x.parquet", "x.xlsx.gz"])
def test_predictions_are_not_written_to_files_of_other_programs(run, name):
    code, _, err = run(f"predict model lines.txt -o {name}")
    assert (code, "predictions are written as jsonl, csv, tsv: choose another name" in err) == (2, True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_standard_input_in_other_encodings(run, monkeypatch, encoding):
    content = "red apple\r\n\nblue sky".encode(encoding)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    option = "" if encoding.startswith("utf-8") else f"--encoding {encoding}"
    code, out, _ = run(f"predict model -k 1 --format csv {option}")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()] == ["text", "red apple", "", "blue sky"]


def test_what_predict_does_not_read_is_not_reported_as_missing(run):
    _, _, err = run("predict model seen.csv")
    assert "csv (texts in 'text', columns separated by ',')" in err


def test_members_of_an_ensemble_are_put_aside_while_others_are_trained(run, place):
    """Each is as trained alone, and nothing is left beside the ensemble."""
    before = set(os.listdir(place))
    command = "train seen.csv -o aside --member seed=3 --member ngrams=char:2-3 --hold-out 0.3"
    code, _, err = run(command)
    assert code == 0, err
    assert set(os.listdir(place)) - before == {"aside"}
    assert "member 2 of 2" in err
    texts, labels = [text for text, _ in DOCS], [line.split(";") for _, line in DOCS]
    for number, settings in enumerate(({"seed": 3}, {"ngrams": "char:2-3"})):
        XRLinear(**settings).fit(texts, labels).save(place / "alone")
        for name in ("ranker.safetensors", "tree.safetensors", "tfidf.safetensors"):
            own = (place / "aside" / f"member-{number}" / name).read_bytes()
            assert own == (place / "alone" / name).read_bytes()


def test_training_reports_its_memory_or_says_that_it_does_not_fit(run, place):
    code, _, err = run("train seen.csv -o modest --memory 40GB")
    assert code == 0
    assert "at most, of 40,000.0 MB" in err
    code, _, err = run("train seen.csv -o small --memory 9MB")
    assert code == 2
    assert "memory is 9.0 MB" in err or "more than memory=9.0 MB" in err
    assert not (place / "small").exists()
    assert run("train seen.csv -o small --memory much")[2].count("size 'much' is not understood") == 1
