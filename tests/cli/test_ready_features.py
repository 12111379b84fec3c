"""The commands on an archive of texts with precomputed features, from training to predictions."""

import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.tiny import WORDS, documents
from treetop.cli.main import run_command
from treetop.labels.vocabulary import vocabulary_of

TEXTS, LABELS = documents(60)
COLUMNS = 7


def features_of(texts):
    """Counts of letters: features that no vectoriser of treetop makes."""
    return sp.csr_matrix([[float(text.count(letter)) for letter in "aeglprs"] for text in texts])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an archive, a file of word vectors as encoder, and models trained on both."""
    here = tmp_path_factory.mktemp("ready")
    features = here / "archive" / "tfidf-attnxml"
    features.mkdir(parents=True)
    vocabulary = vocabulary_of(LABELS)
    for short, texts, labels in (
        ("trn", TEXTS, LABELS),
        ("val", *documents(9, seed=6)),
        ("tst", *documents(12, seed=5)),
    ):
        (here / "archive" / f"X.{short}.txt").write_text("".join(f"{text}\n" for text in texts))
        known = [[name for name in line if name in vocabulary.numbers] for line in labels]
        sp.save_npz(here / "archive" / f"Y.{short}.npz", vocabulary.encode(known))
        sp.save_npz(features / f"X.{short}.npz", features_of(texts))
    (here / "archive" / "output-items.txt").write_text("".join(f"{n}\n" for n in vocabulary.names))
    random = np.random.default_rng(0)
    lines = (f"{word} {' '.join(map(str, random.normal(size=6).round(3)))}\n" for word in WORDS)
    (here / "vectors.txt").write_text("".join(lines))
    return here


@pytest.fixture
def run(place, monkeypatch, capsys):
    """Runs a command; returns its exit code and what it prints."""
    monkeypatch.chdir(place)

    def run_one(*arguments):
        code = run_command([str(argument) for argument in arguments])
        return code, capsys.readouterr()

    return run_one


@pytest.fixture
def model(place, run):
    """An XR-Transformer of the archive."""
    if not (place / "both").exists():
        code, shown = run(*TRAIN, "-o", "both", "--hold-out", "0.2")
        assert code == 0, shown.err
        assert "texts with precomputed features in tfidf-attnxml/X.trn.npz" in shown.err
        assert "7 precomputed features are used in place of TF-IDF features: predictions" in shown.err
    return "both"


TRAIN = (
    *("train", "archive", "--model", "xr-transformer", "--encoder", "vectors.txt"),
    *("--set", "fine_tune=false"),
)


def test_train_evaluate_and_predict_with_the_features_of_the_archive(place, run, model):
    trained = treetop.load(place / model)
    assert trained.model_.feature_map.widths == (COLUMNS, 6)
    code, shown = run("evaluate", model, "archive", "--json")
    texts = (place / "archive" / "X.tst.txt").read_text().splitlines()
    Y = sp.load_npz(place / "archive" / "Y.tst.npz")
    expected = trained.evaluate(texts, Y, features=features_of(texts), columns=trained.classes_)
    assert code == 0
    assert json.loads(shown.out)["P@3"] == expected["P@3"]
    code, shown = run("predict", model, "archive", "-k", 1)
    best = [json.loads(line)["labels"][0]["label"] for line in shown.out.splitlines()]
    known = trained.predict(texts, 1, features=features_of(texts))
    assert best == [row[0][0] for row in known]
    code, shown = run("evaluate", model, "archive", "--split", "train")
    assert code == 2
    assert "the model was trained on 100% of these documents" in shown.err


def test_lines_take_a_file_of_features(place, run, model):
    file = place / "archive" / "tfidf-attnxml" / "X.tst.npz"
    code, shown = run(
        "predict", model, "archive/X.tst.txt", "--features", file, "-k", 1, "--format", "csv"
    )
    assert code == 0, shown.err
    assert shown.out.splitlines()[1].startswith(documents(12, seed=5)[0][0])
    _, whole = run("predict", model, "archive", "-k", 1)
    assert len(shown.out.splitlines()) == 1 + len(whole.out.splitlines())
    code, shown = run("predict", model, "archive/X.tst.txt")
    assert code == 2
    assert (
        "the model takes texts with precomputed features, but the data has texts: give the features "
        "with --features, or train a model with --features none"
    ) in shown.err


def test_explain_takes_the_features_of_its_text(place, run, model):
    sp.save_npz(place / "row.npz", features_of(["red apple"]))
    code, shown = run("explain", model, "red apple", "--features", "row.npz", "-k", 1)
    assert code == 0
    assert "feature 0" in shown.out  # the letter a


def test_a_validation_split_and_a_resumed_run_take_the_same_features(place, run):
    code, shown = run(*TRAIN, "-o", "again")
    assert code == 0, shown.err
    stages = {file: file.stat().st_mtime_ns for file in place.glob("again.run/*/*.safetensors")}
    assert stages
    code, shown = run(*TRAIN, "-o", "again", "--resume")
    assert code == 0, shown.err
    assert {file: file.stat().st_mtime_ns for file in stages} == stages
    code, shown = run(*TRAIN, "-o", "again", "--resume", "--features", "none")
    assert code == 2
    assert "this run began on other data" in shown.err


def test_without_features_the_words_are_counted(place, run):
    code, shown = run("train", "archive", "-o", "plain", "--features", "none")
    assert code == 0, shown.err
    assert "precomputed features" not in shown.err
    model = treetop.load(place / "plain")
    assert model.predict(["red apple"], 1)[0][0][0] in model.classes_
    code, shown = run("evaluate", "plain", "archive")
    assert code == 0
    assert "its features from the texts: the precomputed ones are ignored" in shown.err


def test_xr_linear_uses_the_features_instead_of_the_texts(place, run, model):
    code, shown = run("train", "archive", "-o", "linear")
    assert code == 0, shown.err
    assert "7 precomputed features are used instead of the texts" in shown.err
    trained = treetop.load(place / "linear")
    assert trained.n_features_in_ == COLUMNS
    assert not trained.model_.reads_texts
    code, shown = run("evaluate", "linear", "archive", "--split", "train")
    assert code == 2
    assert "the model was trained on 100% of these documents" in shown.err
    run("ensemble", "linear", model, "-o", "mixed")
    code, shown = run("evaluate", "mixed", "archive")
    assert code == 0, shown.err


def test_a_compressed_model_takes_the_same_features(run, model):
    code, shown = run("compress", model, "-o", "small", "--data", "archive", "--json")
    assert code == 0, shown.err
    figures = json.loads(shown.out)
    assert figures["after"]["P@1"] == pytest.approx(figures["before"]["P@1"], abs=0.1)


def test_inspect_and_convert_say_what_becomes_of_the_features(place, run):
    _, shown = run("data", "inspect", "archive", "--json")
    figures = json.loads(shown.out)
    assert figures["splits"]["train"]["features"] == COLUMNS
    assert [path.rsplit("/", 1)[1] for path in figures["features"]] == [
        "X.trn.npz",
        "X.val.npz",
        "X.tst.npz",
    ]
    _, shown = run("data", "convert", "archive", "lines")
    lost = "the precomputed features were left out: text-lines cannot hold texts and features"
    assert lost in shown.err
    _, shown = run("data", "convert", "archive", "matrices", "--to", "xmlrepo")
    assert "the texts were left out: xmlrepo cannot hold texts and features" in shown.err
    _, shown = run("data", "convert", "archive", "copy", "--to", "pecos")
    assert "left out" not in shown.err
    assert (place / "copy" / "X.tst.npz").is_file()


def test_constants_follow_the_name_of_the_data_or_of_the_preset(place, run):
    preset = {"model": "xr-linear", "settings": {"trees": 1}}
    (place / "amazon-3m.json").write_text(json.dumps(preset))
    code, shown = run("train", "archive", "-o", "named", "--preset", "amazon-3m.json")
    assert code == 0, shown.err
    assert treetop.load(place / "named").model_.preset == "amazon-3m"
    code, shown = run("evaluate", "named", "archive")
    assert "propensities: amazon, as is usual for the preset amazon-3m" in shown.err
    assert "metrics in percent at k = 1, 3, 5, 10; propensities with A = 0.6, B = 2.6" in shown.out
    moved = place / "copied"
    shutil.copytree(place / "archive", moved / "wiki-500k")
    _, shown = run("evaluate", "named", moved / "wiki-500k", "--also", "PSP_raw", "--json")
    assert "propensities: wikipedia, as is usual for the data set wiki-500k" in shown.err
    figures = json.loads(shown.out)
    assert figures["propensity"] == {"A": 0.5, "B": 0.4}
    assert figures["k"] == [1, 3, 5, 10]
    assert figures["PSP_raw@1"] > figures["PSP@1"]
    _, shown = run("evaluate", "named", moved / "wiki-500k", "--propensity", "default")
    assert "A = 0.55, B = 1.5" in shown.out
    code, shown = run("evaluate", "named", "archive", "--also", "nDCGG")
    assert code == 2
    assert "unknown metric 'nDCGG': also takes PSP_raw" in shown.err
