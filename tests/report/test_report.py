"""Reports about all kinds of models and data: complete, harmless, and the figures of `evaluate`."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.cli.main import run_command
from treetop.cli.model_options import ReportOptions
from treetop.cli.reporting import report_models
from treetop.explain.nodes import named_tree, words_of_labels
from treetop.labels.tree import from_parents
from treetop.model.training_record import TrainingRecord
from treetop.report.subject import Subject
from treetop.report.writing import html_report

TEXTS = ["red apple", "green pear", "blue sky", "red sky"] * 5
LABELS = [["red", "fruit"], ["green", "fruit"], ["blue"], ["red", "blue"]] * 5
TESTS = {"a red pear": "red\tfruit", "the green sky": "green\tblue", "appel": "fruit", "bluish": "new"}
VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = '<img src=x onerror="alert(1)"></style><script>alert(2)</script>'
ARABIC = "تفاح أحمر"


class Page(HTMLParser):
    """Checks that elements are closed; collects tags, text and ids."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text, self.attributes = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(page):
    """The page, after checking that it is complete and loads and executes nothing."""
    parsed = Page(page)
    assert not {"script", "link", "iframe", "object", "img", "base", "form"} & set(parsed.tags)
    names = {name for name, _ in parsed.attributes}
    assert not {"src", "onerror", "onload", "onclick"} & names
    targets = [value for name, value in parsed.attributes if name == "href"]
    ids = [value for name, value in parsed.attributes if name == "id"]
    assert targets == [f"#{name}" for name in ids]
    assert len(set(ids)) == len(ids)
    assert "url(" not in page
    assert "@import" not in page
    return page


def sections(page):
    return re.findall(r"<h2>(.*?)</h2>", page)


def plain(page):
    return "".join(Page(page).text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of several kinds, and a test set."""
    folder = tmp_path_factory.mktemp("report")
    linear = treetop.XRLinear(ngrams="word:1").fit(TEXTS, LABELS)
    other = treetop.XRLinear(ngrams="char:2").fit(TEXTS, LABELS)
    linear.save(folder / "linear")
    treetop.Ensemble([linear, other]).save(folder / "ensemble")
    (folder / "data").mkdir()
    (folder / "data" / "test.txt").write_text("\n".join(TESTS) + "\n")
    (folder / "data" / "test.labels").write_text("\n".join(TESTS.values()) + "\n")
    return folder


def report(folder, *arguments, name="report.html"):
    assert run_command(["report", *map(str, arguments), "-o", str(folder / name), "-q"]) == 0
    return checked((folder / name).read_text("utf-8"))


def test_a_report_has_the_figures_of_evaluate(folder):
    page = report(folder, folder / "linear", folder / "data")
    assert sections(page) == [
        "Overview",
        "Metrics",
        "Thresholds",
        "Confidence",
        "Labels and lengths",
        "Worst labels",
        "Worst documents",
        "Label tree",
        "Training",
    ]
    model = treetop.load(folder / "linear")
    labels = [line.split("\t") for line in TESTS.values()]
    result = model.evaluate(list(TESTS), labels, k=(1, 3, 5, 10))
    text = plain(page)
    for key, (low, high) in result.intervals().items():
        row = f"{key}{100 * result[key]:.2f}{100 * low:.2f} – {100 * high:.2f}"
        assert row in text
    assert "Measured on data, test: 4 documents." in text
    assert "a red pear" in text
    assert len(page) < 100_000
    assert page == report(folder, folder / "linear", folder / "data")  # nothing random, no date


def test_without_data_it_shows_what_is_known(folder):
    page = report(folder, folder / "linear")
    assert sections(page) == ["Overview", "Label tree", "Training"]
    assert "No metrics: give data with labels" in page
    evaluated = folder / "evaluated"
    treetop.load(folder / "linear").save(evaluated)
    assert run_command(["evaluate", str(evaluated), str(folder / "data"), "--keep", "-q"]) == 0
    kept = report(folder, evaluated)
    assert sections(kept) == ["Overview", "Metrics", "Label tree", "Training"]
    assert "data, test: 4 documents." in plain(kept)


def test_several_models_are_compared(folder):
    page = report(folder, folder / "linear", folder / "ensemble", "--data", folder / "data")
    assert "Differences" in sections(page)
    models = [treetop.load(folder / name) for name in ("linear", "ensemble")]
    labels = [line.split("\t") for line in TESTS.values()]
    comparison = treetop.compare(*models, list(TESTS), labels)
    assert "".join(comparison.rows()[1]) in plain(page)
    assert "ensemble of xr-linear" in plain(page)
    same = report(folder, folder / "linear", folder / "linear", folder / "data")
    assert f"A: {folder / 'linear'}." in plain(same)


def test_names_cannot_break_the_page(folder, tmp_path):
    names = [HOSTILE, ARABIC, "a & b", "x" * 300]
    texts = [f"{HOSTILE} apple", "pear", "blue sky", "red"] * 5
    treetop.XRLinear(ngrams="word:1").fit(texts, [[name] for name in names] * 5).save(tmp_path / "m")
    (tmp_path / "test.txt").write_text(f"{HOSTILE} sky\npear apple\n")
    (tmp_path / "test.labels").write_text(f"{HOSTILE}\n{ARABIC}\n")
    hostile = tmp_path / "<b>m"
    (tmp_path / "m").rename(hostile)
    page = report(tmp_path, hostile, tmp_path)
    assert HOSTILE in plain(page)  # as text
    assert f"<bdi>{ARABIC}" in page
    assert "Model report: <b>m" in plain(page)


def write_data(folder, labels):
    """Test documents of `TESTS` with other labels."""
    folder.mkdir()
    (folder / "test.txt").write_text("\n".join(TESTS) + "\n")
    (folder / "test.labels").write_text("\n".join(labels) + "\n")
    return folder


@pytest.mark.parametrize(
    "labels",
    [["new", "new", "other", ""], ["", "", "", "red"], ["red", "red", "red", "red"]],
    ids=["unknown", "almost none", "one"],
)
def test_strange_labels_are_reported_too(folder, tmp_path, labels):
    page = report(tmp_path, folder / "linear", write_data(tmp_path / "data", labels))
    assert "Metrics" in sections(page)
    assert "nan" not in plain(page)


def test_models_of_one_label_and_of_matrices(tmp_path):
    treetop.XRLinear().fit(TEXTS, [["only"]] * 20).save(tmp_path / "one")
    data = write_data(tmp_path / "data", ["only"] * 4)
    assert "Worst documents" in sections(report(tmp_path, tmp_path / "one", data))

    X = sp.random(40, 12, 0.4, "csr", np.float32, random_state=0)
    model = treetop.XRLinear().fit(X, [["a"], ["b"]] * 20)
    result = model.evaluate(X, [["a"], ["b"]] * 20)
    page = checked(html_report([Subject("matrix", model.model_, result)]))
    assert "features per document" in plain(page)
    assert re.search(r"document \d+true labels", plain(page))
    scores_only = treetop.metrics.evaluate(
        [["a"], ["b"]] * 20, model.predict_scores(X), classes=model.classes_
    )
    page = checked(html_report([Subject("scores", model.model_, scores_only)]))
    assert "by length" not in plain(page)


def test_an_imported_model_is_reported(folder):
    model = treetop.load(folder / "linear")
    imported = replace(model.model_, train_documents=0, label_counts=model.train_counts_ * 0)
    page = checked(html_report([Subject("imported", imported)]))
    assert "trained onunknownimported" in plain(page)


def test_calibrated_probabilities_are_shown_beside_scores(folder):
    model = treetop.load(folder / "linear")
    result = model.evaluate(TEXTS, LABELS, k=(1, 5))
    probabilities = model.predict_scores(TEXTS, 5)
    probabilities.data[:] = 0.4  # 7 of 20 pairs of the first five are right
    subject = Subject("m", model.model_, result, probabilities)
    bins = subject.calibrated_reliability(5)
    assert bins.predicted == pytest.approx(0.4)
    assert (bins.sizes * bins.observed).sum() == sum(map(len, LABELS))
    page = checked(html_report([subject]))
    assert "probabilities" in plain(page)
    assert "is not calibrated" not in plain(page)


def test_training_shows_history_time_and_memory(folder, fitted):
    history = ({"level": 1, "step": s, "loss": 1 / s, "validation P@1": 0.1 * s} for s in (1, 2, 3))
    model = replace(fitted.model_, history=tuple(history))
    record = TrainingRecord({"text features": 61.0, "rankers": 2.5}, 2_500_000_000)
    page = checked(html_report([Subject("tuned", model, record=record)]))
    text = plain(page)
    assert "Loss while fine-tuning" in text
    assert "P@1 on validation documents while fine-tuning" in text
    assert "1 min 04 s in all; at most 2.5 GB of memory." in text
    assert "text features" in text
    assert "max_length" in text


def test_training_writes_its_record(folder, tmp_path):
    (tmp_path / "train.txt").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "train.labels").write_text("\n".join("\t".join(line) for line in LABELS) + "\n")
    target = tmp_path / "model"
    assert run_command(["train", str(tmp_path), "-o", str(target), "-q"]) == 0
    record = TrainingRecord.read(target)
    assert {"reading data", "text features", "saving"} <= set(record.seconds)
    assert record.peak_bytes > 10_000_000
    assert "training.json" not in json.loads((target / "config.json").read_text())["files"]
    assert "Where the time went" in plain(report(tmp_path, target))
    assert run_command(["train", str(tmp_path), "-o", str(target), "-q"]) == 0  # may be replaced
    treetop.load(target).save(tmp_path / "copy")
    assert TrainingRecord.read(tmp_path / "copy") is None


@pytest.mark.parametrize(
    "content", ["", "[]", '{"seconds": 3}', '{"seconds": {"a": NaN}, "peak_bytes": 1}', "[" * 10**5]
)
def test_a_damaged_record_is_ignored(tmp_path, content):
    (tmp_path / "training.json").write_text(content)
    assert TrainingRecord.read(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{f}/data"], "holds data, not a model"),
        (["{f}/linear", "{f}/nothing"], "nothing: no such file or folder"),
        (["{f}/linear", "{f}/data", "-o", "{f}"], "is a folder: give the name of an HTML file with -o"),
        (
            ["{f}/linear", "-o", "{f}/no/r.html"],
            "no does not exist: create it or choose another folder",
        ),
        (["{f}/linear", "{f}/data", "--split", "dev"], "the data has no split dev: choose one of test"),
        (["{f}/linear", "{f}/unlabeled"], "the data has no labels to compare predictions with"),
    ],
)
def test_mistakes_are_one_line(folder, capsys, arguments, message):
    (folder / "unlabeled").mkdir(exist_ok=True)
    (folder / "unlabeled" / "test.txt").write_text("a text\n")
    command = ["report", *(argument.format(f=folder) for argument in arguments), "-q"]
    assert run_command(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_nodes_of_the_tree_have_words_and_labels():
    """A tree of two clusters: fruit and sky."""
    texts = ["apple fruit"] * 4 + ["pear fruit"] * 3 + ["cloud sky"] * 2 + ["star sky"]
    labels = [["apple"]] * 4 + [["pear"]] * 3 + [["cloud"]] * 2 + [["star"]]
    clusters = from_parents([np.array([0, 1, 0, 1])])  # of apple, cloud, pear, star
    model = treetop.XRLinear(ngrams="word:1", min_df=1, trees=1).fit(texts, labels, tree=clusters)
    root = named_tree(model.model_, model.rankers_[0])
    assert (root.size, root.words) == (4, ())
    assert root.labels == (("apple", 4), ("pear", 3), ("cloud", 2), ("star", 1))
    fruit, sky = sorted(root.children, key=lambda node: -node.labels[0][1])
    assert (fruit.labels, sky.labels) == ((("apple", 4), ("pear", 3)), (("cloud", 2), ("star", 1)))
    assert "fruit" in fruit.words
    assert "sky" in sky.words
    assert not set(fruit.words) & set(sky.words)
    assert fruit.children == ()
    assert named_tree(model.model_, model.rankers_[0], most_nodes=1).children == ()
    (label, documents, words), *_ = words_of_labels(model.model_, model.rankers_[0])
    assert (label, documents, words[0]) == ("apple", 4, "apple")


def test_the_command_says_what_it_wrote(folder, capsys):
    report_models(ReportOptions((folder / "linear", folder / "data"), output=folder / "r.html"))
    assert re.fullmatch(r".*r\.html: report about linear, \d+\.\d kB\n", capsys.readouterr().out)
