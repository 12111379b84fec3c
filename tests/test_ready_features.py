"""Precomputed features beside the texts: `fit(texts, labels, features=X)` and everything after it."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MultiLabelBinarizer

import treetop
from tests.tiny import BRIEF, documents, same
from treetop.errors import TreetopError
from treetop.runtime import Runtime

FP32 = Runtime(threads=1, device="cpu", precision="fp32")
# One analyzer: with several, each tree would see only some of the features.
SETTINGS = {**BRIEF, "ngrams": "word:1-2"}


@pytest.fixture(scope="module")
def own(encoder):
    """A model with its own TF-IDF features."""
    return treetop.XRTransformer(encoder=encoder, **SETTINGS).fit(*documents(), runtime=FP32)


@pytest.fixture(scope="module")
def tfidf(own):
    """Texts to the same features as those of `own`, computed outside of the model."""
    return lambda texts: own.model_.feature_map.words.transform(texts)


@pytest.fixture(scope="module")
def ready(encoder, tfidf):
    """The same model, trained on precomputed features."""
    texts, labels = documents()
    model = treetop.XRTransformer(encoder=encoder, **SETTINGS)
    return model.fit(texts, labels, features=tfidf(texts), runtime=FP32)


@pytest.fixture(scope="module")
def queries():
    return documents(20, seed=1)


def test_ready_features_train_the_model_that_tfidf_features_train(own, ready, tfidf, queries):
    texts, labels = queries
    X = tfidf(texts)
    assert ready.model_.feature_map.words is None
    assert ready.n_features_in_ == own.n_features_in_
    expected = own.predict_scores(texts, 5, runtime=FP32)
    assert same(ready.predict_scores(texts, 5, features=X, runtime=FP32), expected)
    assert ready.predict(texts, features=X) == own.predict(texts)
    assert ready.score(texts, labels, features=X) == own.score(texts, labels)
    assert ready.evaluate(texts, labels, features=X)["P@3"] == own.evaluate(texts, labels)["P@3"]


def test_every_form_of_the_same_matrix_is_taken(ready, tfidf, queries):
    texts, _ = queries
    X = tfidf(texts)
    expected = ready.predict_scores(texts, 5, features=X, runtime=FP32)
    for form in (sp.csc_matrix(X), sp.coo_matrix(X), X.toarray(), X.astype(np.float64)):
        assert same(ready.predict_scores(iter(texts), 5, features=form, runtime=FP32), expected)


def test_features_that_are_missing_or_of_another_width_are_errors_of_one_line(ready, own, tfidf):
    texts, X = ["red apple"], tfidf(["red apple"])
    width = X.shape[1]
    cases = [
        (
            ready,
            texts,
            None,
            rf"trained on texts with precomputed features: give features= \({width} columns",
        ),
        (
            ready,
            texts,
            X[:, :-1],
            rf"features has {width - 1} columns, but this model was trained with",
        ),
        (ready, X, None, "trained on texts with precomputed features: give the texts too"),
        (ready, texts * 2, X, "2 texts, but features has 1 rows: give one row per text"),
        (ready, X, X, "features= is for texts, but X is a matrix of features"),
        (own, texts, X, "this model computes its features from the texts: leave out features="),
    ]
    for model, documents_, features, message in cases:
        with pytest.raises(TreetopError, match=message) as error:
            model.predict(documents_, features=features)
        assert "\n" not in str(error.value)


def test_the_model_is_saved_and_loaded_without_a_vectoriser(ready, tfidf, queries, tmp_path):
    texts, _ = queries
    ready.save(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert "tfidf.safetensors" not in names
    assert "features=" in (tmp_path / "model" / "README.md").read_text()
    loaded = treetop.load(tmp_path / "model")
    expected = ready.predict_scores(texts, 5, features=tfidf(texts), runtime=FP32)
    assert same(loaded.predict_scores(texts, 5, features=tfidf(texts), runtime=FP32), expected)
    with pytest.raises(TreetopError, match="give features="):
        loaded.predict(texts)


def test_a_blank_text_with_features_is_not_blank(ready, tfidf):
    X = sp.vstack([tfidf(["red apple"]), tfidf([""])], "csr")
    predicted = ready.predict([" ", " "], 2, features=X)
    assert [len(row) for row in predicted] == [2, 0]


def test_features_name_the_parts_of_an_explanation(own, ready, tfidf):
    text = "red apple"
    (with_names,) = own.explain(text, k=1, runtime=FP32)
    (with_numbers,) = ready.explain(text, k=1, features=tfidf([text]), runtime=FP32)
    assert with_numbers.label == with_names.label
    assert with_numbers.score == pytest.approx(with_names.score, abs=1e-6)
    words = own.model_.feature_map.words
    by_number = {f"feature {n}": words.feature_name(n) for n in range(words.features)}
    values = {by_number[word.name]: word.value for word in with_numbers.words}
    assert sum(values.values()) == pytest.approx(
        sum(word.value for word in with_names.words) + with_names.other_words, abs=1e-5
    )
    assert "red" in values


def test_held_out_documents_take_their_features_along(encoder, tfidf, queries):
    texts, labels = documents()
    held_texts, held_labels = queries
    settings = {"encoder": encoder, **SETTINGS, "validate_every": 2}
    plain = treetop.XRTransformer(**settings).fit(texts, labels, validation=queries, runtime=FP32)
    words = plain.model_.feature_map.words.transform
    held = (held_texts, held_labels, words(held_texts))
    model = treetop.XRTransformer(**settings)
    model.fit(texts, labels, features=words(texts), validation=held, runtime=FP32)
    for one, other in zip(model.history_, plain.history_, strict=True):
        assert one.keys() == other.keys()
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-5)
        assert one.get("P@1") == other.get("P@1")
    drawn = treetop.XRTransformer(**settings, validation=0.2)
    drawn.fit(texts, labels, features=words(texts), runtime=FP32)
    assert drawn.train_documents_ == round(0.8 * len(texts))
    for features, validation, message in [
        (words(texts), queries, "the validation documents have no precomputed features"),
        (None, held, "the training documents have no precomputed features"),
        (words(texts), (*held[:2], held[2][:, :-1]), "validation: features has .* columns, but those"),
        (words(texts), (*held, 1), r"validation: give \(texts, labels\), or \(texts, labels, features"),
    ]:
        with pytest.raises(TreetopError, match=message):
            model.fit(texts, labels, features=features, validation=validation)


def test_a_run_belongs_to_its_features(encoder, tfidf, tmp_path):
    texts, labels = documents()
    X, folder = tfidf(texts), tmp_path / "run"
    model = treetop.XRTransformer(encoder=encoder, **SETTINGS, fine_tune=False)
    first = model.fit(texts, labels, features=X, run=folder).predict(texts, features=X)
    written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = model.fit(texts, labels, features=X, run=folder, resume=True)
    assert again.predict(texts, features=X) == first
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == written
    other = X.copy()
    other.data[0] *= 2
    for features in (other, None):
        with pytest.raises(TreetopError, match="this run began on other data"):
            model.fit(texts, labels, features=features, run=folder, resume=True)


def test_documents_of_weight_zero_are_left_out_with_their_features(encoder, tfidf, queries):
    texts, labels = documents()
    weights = np.ones(len(texts))
    weights[::3] = 0
    kept = np.flatnonzero(weights)
    model = treetop.XRTransformer(encoder=encoder, **SETTINGS, fine_tune=False)
    X, Q, Y = tfidf(texts), tfidf(queries[0]), MultiLabelBinarizer().fit_transform(labels)
    weighted = model.fit(texts, Y, features=X, sample_weight=weights).predict(queries[0], features=Q)
    part = model.fit([texts[n] for n in kept], Y[kept], features=X[kept])
    assert part.predict(queries[0], features=Q) == weighted


def test_features_only_the_first_tree_needs_are_not_needed_later(encoder, tfidf):
    texts, labels = documents()
    model = treetop.XRTransformer(encoder=encoder, **SETTINGS, words=False)
    model.fit(texts, labels, features=tfidf(texts))
    assert model.model_.feature_map.widths[0] == 0
    assert len(model.predict(["red apple"], 2)[0]) == 2


def test_xrlinear_takes_features_in_place_of_the_words(queries):
    texts, labels = documents()
    X = sp.random(len(texts), 30, 0.3, "csr", np.float32, np.random.default_rng(0))
    both = treetop.XRLinear(keep_documents=True).fit(texts, labels, features=X)
    alone = treetop.XRLinear().fit(X, labels)
    assert both.predict(texts, features=X) == both.predict(X) == alone.predict(X)
    (explanation,) = both.explain(texts[0], k=1, features=X[:1])
    assert explanation.neighbours[0].text == texts[0]
    with pytest.raises(TreetopError, match="trained on a feature matrix, not on text: give a matrix"):
        both.predict(texts)
    with pytest.raises(TreetopError, match="X has 29 features, but XRLinear is expecting 30"):
        both.predict(texts, features=X[:, :29])


def test_an_ensemble_gives_each_member_what_it_takes(ready, tfidf, queries, tmp_path):
    texts, labels = documents()
    linear = treetop.XRLinear().fit(texts, labels)
    matrix = treetop.XRLinear(seed=1).fit(texts, labels, features=tfidf(texts))
    ensemble = treetop.Ensemble([linear, ready, matrix])
    questions, X = queries[0], tfidf(queries[0])
    scores = ensemble.predict_scores(questions, 3, features=X, runtime=FP32)
    every = [
        linear.predict_scores(questions, 100, runtime=FP32),
        ready.predict_scores(questions, 100, features=X, runtime=FP32),
        matrix.predict_scores(X, 100, runtime=FP32),
    ]
    label, row = int(scores.indices[0]), 0
    assert scores[row, label] == pytest.approx(np.mean([one[row, label] for one in every]), abs=1e-6)
    ensemble.save(tmp_path / "e")
    loaded = treetop.load(tmp_path / "e")
    assert same(loaded.predict_scores(questions, 3, features=X, runtime=FP32), scores)
    (explanation,) = loaded.explain("red apple", k=1, features=tfidf(["red apple"]), words=1000)
    names = [word.name for word in explanation.words]
    assert "red" in names
    assert any(name.startswith("feature ") for name in names)
    with pytest.raises(TreetopError, match="give features="):
        loaded.predict(questions)


def test_named_features_are_explained_by_their_names(encoder, own, tfidf, tmp_path):
    texts, labels = documents()
    words = own.model_.feature_map.words
    names = [f"the word {words.feature_name(n)}" for n in range(words.features)]
    given = {"features": tfidf(texts), "feature_names": names}
    linear = treetop.XRLinear().fit(texts, labels, **given)
    model = treetop.XRTransformer(encoder=encoder, **SETTINGS, fine_tune=False)
    for one in (linear, model.fit(texts, labels, **given)):
        one.save(tmp_path / one.kind)
        loaded = treetop.load(tmp_path / one.kind)
        why = loaded.explain("red apple", "red", features=tfidf(["red apple"]))
        assert "the word red" in [word.name for word in why.words]
    assert treetop.XRLinear().fit(tfidf(texts), labels, feature_names=names).model_.feature_names
    with pytest.raises(TreetopError, match=f"feature_names has 1 names for {len(names)} features"):
        treetop.XRLinear().fit(texts, labels, features=tfidf(texts), feature_names=["a"])
    with pytest.raises(
        TreetopError, match="but there are texts alone: leave it out, or give features="
    ):
        model.fit(texts, labels, feature_names=["a"])
