"""Models of the real libpecos (made by make_pecos_fixtures.py): the same labels, the same scores."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.interop.pecos import import_model
from treetop.interop.pecos_params import read_params
from treetop.interop.pecos_words import read_words

HERE = Path(__file__).parent / "pecos"
TEXTS = (HERE / "test.txt").read_text("utf-8").removesuffix("\n").split("\n")


def assert_same(made, name):
    expected = sp.load_npz(HERE / f"{name}.npz")
    assert (made.astype(bool) != expected.astype(bool)).nnz == 0
    assert abs(made - expected).max() <= 1e-6


@pytest.mark.parametrize("name", ["linear", "no-bias", "flat"])
def test_a_linear_model_predicts_the_same(name):
    model = import_model(HERE / name)
    X = sp.load_npz(HERE / "X.npz")
    assert_same(model.predict_scores(X, 20), name)
    assert list(model.classes_[:2]) == ["0", "1"]


@pytest.mark.parametrize(
    ("name", "k", "transforms", "beams", "bias"),
    [("raw-last", 20, "l3-hinge/l3-hinge/identity", 20, 0.5), ("beams", 10, "l3-hinge", "2/3", 1.0)],
)
def test_a_linear_model_with_values_by_level_predicts_the_same(name, k, transforms, beams, bias):
    model = import_model(HERE / name)
    assert (model.score_transform, model.beam, model.bias) == (transforms, beams, bias)
    assert_same(model.predict_scores(sp.load_npz(HERE / "X-frequent.npz"), k), name)


def test_a_linear_model_predicts_from_texts_with_label_names_and_after_saving(tmp_path):
    model = import_model(HERE / "linear", HERE / "words", HERE / "labels.txt")
    assert_same(model.predict_scores(TEXTS, 20), "linear")
    model.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"))
    assert_same(again.predict_scores(TEXTS, 20), "linear")
    names = (HERE / "labels.txt").read_text().splitlines()
    best = [names[number] for number in model.predict_scores(TEXTS, 1).indices]
    assert [row[0][0] for row in again.predict(TEXTS, 1)] == best
    assert "imported" in (tmp_path / "m" / "README.md").read_text()
    truth = [[best[0]]] * len(TEXTS)
    assert treetop.scorer("P@1")(again, TEXTS, truth) == best.count(best[0]) / len(TEXTS)


def test_the_vectorizer_gives_the_features_of_pecos():
    words = read_words(HERE / "words")
    assert abs(words.transform(TEXTS) - sp.load_npz(HERE / "X.npz")).max() < 1e-6
    assert words.transform([]).shape == (0, words.features)
    assert words.transform([""]).nnz == 0
    names = [words.feature_name(number) for number in (0, 1, words.features - 1)]
    assert names == ["Kaban Kaban", "Kaban logul", "twice"]
    with pytest.raises(TreetopError, match="document 0 is of type int"):
        words.transform([3])


def test_a_transformer_without_its_words_takes_texts_with_features():
    pytest.importorskip("torch")
    model = import_model(HERE / "transformer", None, HERE / "labels.txt")
    runtime = treetop.Runtime(precision="fp32")
    X = sp.load_npz(HERE / "X.npz")  # PECOS's TF-IDF of the same texts
    assert_same(model.predict_scores(TEXTS, 20, features=X, runtime=runtime), "transformer")
    with pytest.raises(TreetopError, match="on texts with precomputed features: give features="):
        model.predict(TEXTS)


def test_a_transformer_predicts_the_same(tmp_path):
    pytest.importorskip("torch")
    model = import_model(HERE / "transformer", HERE / "words", HERE / "labels.txt")
    runtime = treetop.Runtime(precision="fp32")  # as PECOS computes
    assert_same(model.predict_scores(TEXTS, 20, runtime=runtime), "transformer")
    model.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"), runtime=runtime)
    assert_same(again.predict_scores(TEXTS, 20), "transformer")


@pytest.mark.parametrize(
    ("name", "k", "pooling", "transforms", "beams", "bias"),
    [
        ("bert-by-level", 10, "pooler", "l3-hinge/l3-hinge/identity", "2/3", 2.0),
        ("roberta", 20, "pooler", "l3-hinge", 20, 1.0),
        ("xlnet", 20, "summary", "l3-hinge/l3-hinge/identity", "2/4", 1.0),
        ("distilbert", 20, "cls", "l3-hinge", "3/5", 0.0),
    ],
)
def test_a_transformer_of_each_family_predicts_the_same(
    tmp_path, name, k, pooling, transforms, beams, bias
):
    pytest.importorskip("torch")
    model = import_model(HERE / name)
    settings = (model.pooling, model.score_transform, model.beam, model.bias)
    assert settings == (pooling, transforms, beams, bias)
    runtime = treetop.Runtime(precision="fp32")
    X = sp.load_npz(HERE / "X-frequent.npz")
    assert_same(model.predict_scores(TEXTS, k, features=X, runtime=runtime), name)
    model.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"), runtime=runtime)
    assert_same(again.predict_scores(TEXTS, k, features=X), name)


def broken(tmp_path, name, change):
    folder = tmp_path / name
    shutil.copytree(HERE / name, folder)
    change(folder)
    return folder


def in_file(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("linear", lambda f: shutil.rmtree(f / "ranker"), "ranker or text_encoder is missing"),
        ("linear", lambda f: (f / "ranker/param.json").unlink(), "param.json: missing"),
        ("linear", lambda f: (f / "ranker/param.json").write_text("{"), "param.json: not valid JSON"),
        ("linear", lambda f: (f / "ranker/param.json").write_text("[]"), "expected a JSON object"),
        (
            "linear",
            lambda f: (f / "ranker/param.json").write_text("{}"),
            "depth is missing",
        ),
        ("linear", lambda f: (f / "ranker/1.model/W.npz").unlink(), "W.npz: missing"),
        ("linear", lambda f: (f / "ranker/1.model/C.npz").write_bytes(b"no"), "not a sparse matrix"),
        (
            "linear",
            lambda f: sp.save_npz(f / "ranker/1.model/C.npz", sp.csc_matrix((2, 3))),
            "but C has 2 rows",
        ),
        (
            "linear",
            lambda f: sp.save_npz(f / "ranker/2.model/C.npz", sp.csc_matrix(np.ones((30, 9)))),
            "exactly one parent",
        ),
        ("transformer", lambda f: shutil.rmtree(f / "concat_model"), "concat_model is missing"),
        (
            "transformer",
            lambda f: (f / "text_encoder/text_encoder/config.json").write_text(
                '{"model_type": "electra"}'
            ),
            "family 'electra' cannot be imported, only bert, roberta, xlm-roberta, xlnet, distilbert",
        ),
        (
            "xlnet",
            lambda f: in_file(f / "text_encoder/text_encoder/config.json", '"d_model": 8', '"x": 8'),
            "config.json: d_model is not a size",
        ),
        (
            "xlnet",
            lambda f: in_file(
                f / "text_encoder/text_encoder/config.json", 'proj": false', 'proj": true'
            ),
            "config.json: summary_use_proj is True, but PECOS trains with False",
        ),
        (
            "raw-last",
            lambda f: in_file(f / "ranker/0.model/param.json", "l3-hinge", "noop"),
            "only the last levels may be identity",
        ),
        (
            "transformer",
            lambda f: shutil.rmtree(f / "text_encoder/text_tokenizer"),
            "text_tokenizer: missing",
        ),
    ],
)
def test_a_damaged_model_is_an_error_that_names_the_file(tmp_path, name, change, message):
    with pytest.raises(TreetopError) as error:
        import_model(broken(tmp_path, name, change), HERE / "words")
    assert message in str(error.value)


def test_parts_that_do_not_fit_together_are_an_error(tmp_path):
    with pytest.raises(TreetopError, match="no such folder"):
        import_model(tmp_path / "absent")
    (tmp_path / "names.txt").write_text("one\n")
    with pytest.raises(TreetopError, match="1 label names for 30 labels"):
        import_model(HERE / "linear", None, tmp_path / "names.txt")

    def another(folder):
        path = folder / "0.base" / "vectorizer" / "config.json"
        path.write_text(path.read_text().replace('"binary": false', '"binary": true'))

    with pytest.raises(TreetopError, match="only PECOS's default TF-IDF of words"):
        import_model(HERE / "linear", broken(tmp_path, "words", another))

    def shorter(folder):
        path = folder / "0.base" / "vectorizer" / "tfidf-model.txt"
        path.write_text(path.read_text().replace("\t2\t", "\t3\t", 1))

    with pytest.raises(TreetopError, match=r"tfidf-model.txt:\d+: not a line of a PECOS TF-IDF model"):
        import_model(HERE / "linear", broken(tmp_path / "b", "words", shorter))


def test_params_become_settings(tmp_path):
    imported = read_params(HERE / "xlinear-params.json")
    assert imported.model == "xr-linear"
    assert imported.settings["lambda_"] == 0.5
    assert not imported.settings["cost_sensitive"]
    assert imported.settings["alpha"] == 1.0
    assert imported.settings["score_transform"] == "l3-hinge"
    params = json.loads((HERE / "xtransformer-params.json").read_text())
    matcher = params["train_params"]["matcher_params_chain"]
    matcher |= {"max_active_matching_labels": 5, "learning_rat": 1.0}
    steps = [
        {**matcher, "max_steps": n, "batch_size": 32, "gradient_accumulation_steps": 8}
        for n in (300, 400)
    ]
    params["train_params"]["matcher_params_chain"] = steps
    path = tmp_path / "params.json"
    path.write_text(json.dumps(params))
    imported = read_params(path)
    assert imported.model == "xr-transformer"
    assert imported.settings["tune_shortlist"] == "true"  # tfn
    assert not imported.settings["cost_sensitive"]
    assert imported.settings["matcher_cost_sensitive"] == bool(matcher["cost_sensitive_ranker"])
    params["train_params"]["ranker_params"]["rel_mode"] = "induce"
    path.write_text(json.dumps(params))
    assert read_params(path).settings["cost_sensitive"]
    assert imported.settings["budget"] == "300/400 steps"
    assert imported.settings["batch"] == 256
    chain = "train_params.matcher_params_chain."
    assert imported.ignored[chain + "max_active_matching_labels"] == "it has no effect in PECOS either"
    assert "silently ignores it" in imported.ignored[chain + "learning_rat"]
    for content, message in (
        ('{"a": 1}', "train_params is missing"),
        (
            '{"train_params": {"hlm_args": {"neg_mining_chain": "x"}}}',
            "neg_mining_chain is 'x', which treetop does not support",
        ),
    ):
        path.write_text(content)
        with pytest.raises(TreetopError, match=message):
            read_params(path)


def test_the_import_command(tmp_path, capsys):
    from treetop.cli.exchange import import_from_pecos

    import_from_pecos(HERE / "linear", tmp_path / "m", HERE / "words", HERE / "labels.txt")
    assert "30 labels, predicts from texts" in capsys.readouterr().out
    import_from_pecos(HERE / "xlinear-params.json", tmp_path / "mine.json", None, None)
    printed = capsys.readouterr()
    assert "left out train_params.mode: all levels are trained" in printed.err
    model = treetop.XRLinear.from_preset(str(tmp_path / "mine.json"))
    assert model.beam == 20
