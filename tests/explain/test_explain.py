"""Explanations: their parts add up to the predicted score, and words are located in the text."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import treetop
from tests.slow_weights import slow_matrix
from treetop.explain.explaining import Explainer
from treetop.kernels import lookup
from treetop.ranking.path import path_to

WORDS = ["red", "green", "blue", "apple", "pear", "sea", "sky", "fire", "car", "boat", "tree", "grass"]


def corpus(documents=200, labels=40, seed=0):
    random = np.random.default_rng(seed)
    texts, names = [], []
    for _ in range(documents):
        chosen = random.choice(len(WORDS), 4, replace=False)
        texts.append(" ".join(WORDS[word] for word in chosen))
        names.append([f"L{(int(chosen[0]) * 7 + int(chosen[1])) % labels}", f"M{chosen[2]}"])
    return texts, names


@pytest.fixture(scope="module")
def texts_and_labels():
    return corpus()


@pytest.fixture(scope="module", params=["flat", "4-16-L"])
def model(request, texts_and_labels):
    settings = {"tree": request.param, "trees": 2, "prune_below": 0.01, "keep_documents": True}
    return treetop.XRLinear(**settings).fit(*texts_and_labels)


def test_weights_are_found(model):
    weights = model.rankers_[0].weights
    W = slow_matrix(weights)
    features = np.arange(model.n_features_in_, dtype=np.int32)
    found = np.empty(features.size, np.float32)
    for cluster in range(weights.child_ptr.size - 1):
        first, last = weights.child_ptr[cluster : cluster + 2]
        for child in range(last - first):
            arrays = (*weights.for_search[:4], weights.child_ptr)
            lookup.weights_of(*arrays, features, cluster, child, found)
            np.testing.assert_array_equal(found, W[:, first + child])
    assert np.count_nonzero(W) > 100


TRANSFORMS = [
    "l3-hinge",
    "sigmoid",
    "log-sigmoid",
    "identity",
    "l3-hinge/.../identity",
    "sigmoid/.../l3-hinge",
]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_the_score_is_the_predicted_one(texts_and_labels, transform):
    model = treetop.XRLinear(tree="4-16-L", trees=1, score_transform=transform)
    model.fit(*texts_and_labels)
    text = "red apple sky boat"
    for name, score in model.predict([text], 5)[0]:
        assert model.explain(text, name).score == pytest.approx(score, abs=1e-5)


def test_a_forests_score_is_the_predicted_one(texts_and_labels):
    model = treetop.XRLinear(tree="4-16-L", trees=3, beam=1).fit(*texts_and_labels)
    text, missed = "red apple sky boat", 0
    scores = model.predict_scores([text], len(model.classes_))
    for label, score in zip(scores.indices, scores.data, strict=True):
        one = model.explain(text, model.classes_[label])
        assert one.score == pytest.approx(float(score), abs=1e-5)
        missed += sum(not path.reached for path in one.paths)
    assert missed == 20


def assert_adds_up(explanation):
    """Every sum that an explanation promises, from the parts to the score."""
    parts = sum(word.value for word in explanation.words) + explanation.other_words
    assert parts == pytest.approx(explanation.word_sum, abs=1e-9)
    parts += explanation.encoder + explanation.bias
    assert parts == pytest.approx(explanation.raw_score, abs=1e-6)
    for path in explanation.paths:
        for node in path.nodes:
            assert node.words + node.encoder + node.bias == pytest.approx(node.raw, abs=1e-6)
        counted = path.nodes[-1:] if path.transform == "identity" else path.nodes
        assert path.raw_score == pytest.approx(sum(node.raw for node in counted), abs=1e-6)
        combine = sum if path.transform.startswith(("identity", "log-")) else np.prod
        assert path.score == pytest.approx(combine([node.worth for node in counted]), abs=1e-6)


def assert_adds_up_over_trees(explanation):
    """The same for the mean over the trees of one model."""
    assert_adds_up(explanation)
    trees = len(explanation.paths)
    score = sum(path.score for path in explanation.paths) / trees
    assert explanation.score == pytest.approx(score if explanation.reached else 0.0, abs=1e-9)
    raw_score = sum(path.raw_score for path in explanation.paths) / trees
    assert explanation.raw_score == pytest.approx(raw_score, abs=1e-9)


settings_of_models = st.fixed_dictionaries(
    {
        "tree": st.sampled_from(["flat", "4-16-L", "8-L"]),
        "trees": st.integers(1, 3),
        "beam": st.integers(1, 4),
        "score_transform": st.sampled_from(["auto", "identity", "sigmoid", "log-sigmoid", "l2-hinge"]),
        "ngrams": st.sampled_from(["word:1-2", "word:1|char:3", "word:1@9+word:1", "char:2-3"]),
        "seed": st.integers(0, 9),
    }
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    settings_of_models, st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=12), st.integers(0, 9)
)
def test_parts_add_up_to_the_predicted_score(chosen, text, words):
    model = treetop.XRLinear(**chosen).fit(*corpus(60, 20))
    text = " ".join(text)
    scores = model.predict_scores([text], len(model.classes_)).toarray()[0]
    for explanation in model.explain(text, list(model.classes_), words=words):
        assert_adds_up_over_trees(explanation)
        label = list(model.classes_).index(explanation.label)
        assert explanation.score == pytest.approx(scores[label], abs=1e-5)
        assert len(explanation.words) <= words
        if chosen["score_transform"] == "identity" and explanation.reached:
            assert explanation.raw_score == pytest.approx(explanation.score, abs=1e-6)


def test_parts_of_a_label_that_is_not_reached_are_those_it_would_have_had(texts_and_labels):
    model = treetop.XRLinear(tree="4-16-L", trees=2, beam=1).fit(*texts_and_labels)
    missed = [e for e in model.explain("red apple", list(model.classes_)) if not e.reached]
    assert missed
    for explanation in missed:
        assert explanation.score == 0.0
        assert explanation.raw_score != 0.0
        assert_adds_up_over_trees(explanation)
        assert "beam search does not reach the label" in str(explanation)


def test_the_last_node_of_a_path_is_the_label(model):
    for explanation in model.explain("red apple by the sea, a boat", k=4, words=3):
        assert all(path.nodes[-1].labels == [explanation.label] for path in explanation.paths)


def test_a_model_without_a_tree_is_not_explained_by_one(texts_and_labels):
    flat = treetop.XRLinear(tree="flat", trees=1).fit(*texts_and_labels).explain("red apple", k=1)[0]
    assert flat.paths[0].is_flat
    assert "tree" not in str(flat)
    assert f"one-versus-all: sigmoid({flat.raw_score:+.3f}) = {flat.score:.4f}" in str(flat)


def test_a_word_that_is_taken_away_takes_its_value_along():
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    model = treetop.XRLinear(tree="flat", bias=0.0, prune_below=0.0, score_transform="identity")
    model.fit(X, [["a"], ["b"], ["a"], ["c"]])
    both = sp.csr_matrix(np.array([[1, 0, 1, 0]], np.float32))
    whole = model.explain(both, "a")
    alone = model.explain(sp.csr_matrix(np.array([[1, 0, 0, 0]], np.float32)), "a")
    assert [word.name for word in whole.words[:2]] in (
        ["feature 0", "feature 2"],
        ["feature 2", "feature 0"],
    )
    value = {word.name: word.value for word in whole.words}
    assert whole.score - alone.score == pytest.approx(value["feature 2"], abs=1e-6)


def test_neighbours_are_the_most_alike(model, texts_and_labels, tmp_path):
    texts, labels = texts_and_labels
    one = model.explain(texts[7], labels[7][0])
    assert one.neighbours[0].similarity == pytest.approx(1.0, abs=1e-3)
    assert sorted(one.neighbours[0].text.split()) == sorted(texts[7].split())
    own = [set(texts[7].split()), set(labels[7])]
    assert own[0] == set(one.neighbours[0].text.split())
    of_text = {text: line for text, line in zip(texts, labels, strict=True)}
    assert [neighbour.has_label for neighbour in one.neighbours] == [
        labels[7][0] in of_text[neighbour.text] for neighbour in one.neighbours
    ]
    model.save(tmp_path / "m")
    assert treetop.load(str(tmp_path / "m")).explain(texts[7], labels[7][0]) == one


def test_documents_are_kept_only_on_request(texts_and_labels, tmp_path):
    model = treetop.XRLinear().fit(*texts_and_labels)
    model.save(tmp_path / "m")
    assert not (tmp_path / "m" / "documents.safetensors").exists()
    assert model.explain("red apple", k=1)[0].neighbours == []


def test_kept_documents_are_those_that_count(texts_and_labels):
    texts, labels = texts_and_labels
    weights = np.ones(len(texts))
    weights[0] = 0
    model = treetop.XRLinear(keep_documents=True).fit(iter(texts), labels, sample_weight=weights)
    assert model.model_.documents.text_of(0) == texts[1]


@pytest.fixture(scope="module")
def members(texts_and_labels):
    flat = treetop.XRLinear(tree="flat", ngrams="word:1-2").fit(*texts_and_labels)
    tree = treetop.XRLinear(tree="4-16-L", trees=2, beam=2, ngrams="word:1|char:3")
    return [flat, tree.fit(*texts_and_labels)]


def test_the_parts_of_an_ensemble_are_the_weighted_means_of_its_members(members):
    ensemble = treetop.Ensemble(members, weights=[3, 1])
    text, names = "red apple sky", list(ensemble.classes_)
    scores = ensemble.predict_scores([text], len(names)).toarray()[0]
    alone = [member.explain(text, names, words=99) for member in members]
    for number, together in enumerate(ensemble.explain(text, names, words=2)):
        assert_adds_up(together)
        assert together.score == pytest.approx(scores[number], abs=1e-5)
        assert len(together.words) <= 2
        assert len(together.paths) == 1 + 2
        flat, tree = (explanations[number] for explanations in alone)
        if tree.reached:
            for part in ("encoder", "bias", "raw_score", "word_sum"):
                mean = 0.75 * getattr(flat, part) + 0.25 * getattr(tree, part)
                assert getattr(together, part) == pytest.approx(mean, abs=1e-6)
            values = [{word.name: word.value for word in one.words} for one in (flat, tree)]
            for word in together.words:
                mean = 0.75 * values[0].get(word.name, 0.0) + 0.25 * values[1].get(word.name, 0.0)
                assert word.value == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("combine", ["rank", "sigmoid", "softmax"])
def test_the_score_of_a_combined_ensemble_is_the_predicted_one(members, combine):
    ensemble = treetop.Ensemble(members, combine=combine)
    predicted = ensemble.predict(["red apple sky"], len(ensemble.classes_))[0][:5]
    for explanation, (name, score) in zip(
        ensemble.explain("red apple sky", [name for name, _ in predicted]), predicted, strict=True
    ):
        assert explanation.label == name
        assert explanation.score == pytest.approx(score, abs=1e-5)
        assert_adds_up(explanation)


def test_a_transformers_score_is_split_into_words_and_encoder(texts_and_labels, tmp_path):
    from tests.tiny import save_encoder

    folder = save_encoder(tmp_path / "encoder")
    model = treetop.XRTransformer(encoder=folder, fine_tune=False, trees=1, tree="4-16-L")
    model.fit(*texts_and_labels)
    text = "red apple sky boat"
    name, score = model.predict([text], 1, beam=100)[0][0]
    one = model.explain(text, name)
    assert one.score == pytest.approx(score, abs=1e-5)
    assert one.encoder != 0
    assert_adds_up_over_trees(one)
    positive = max(one.encoder, 0), max(one.word_sum, 0)
    assert one.encoder_share == pytest.approx(positive[0] / sum(positive))
    assert f"encoder {one.encoder:+.3f}, bias {one.bias:+.3f}" in str(one)


def test_the_spans_of_a_word_are_its_occurrences(model):
    text = "Red apple, sky!"
    words = model.explain(text, k=1)[0].words
    assert {word.name for word in words} >= {"red", "apple", "sky"}
    for word in words:
        assert {text[a:b].lower().replace(", ", " ") for a, b in word.spans} == {word.name}


def test_errors_say_what_to_do(model):
    with pytest.raises(treetop.TreetopError, match="label 'nonsense' is not known to the model"):
        model.explain("red", "nonsense")
    with pytest.raises(treetop.TreetopError, match="explain takes one document, not 2"):
        model.explain(["red", "green"])


def test_the_command_prints_or_writes_json(model, tmp_path, capsys):
    from treetop.cli.explain import explain_text

    model.save(tmp_path / "m")
    explain_text(tmp_path / "m", "red apple sky", labels=None, k=2, words=5, as_json=False)
    best = model.explain("red apple sky", k=2, words=5)
    assert capsys.readouterr().out == f"{best[0]}\n\n{best[1]}\n"
    parts = f"words {best[0].word_sum:+.3f}, bias {best[0].bias:+.3f}"
    assert str(best[0]).splitlines()[1] == f"  raw score {best[0].raw_score:+.3f} = {parts}"
    explain_text(tmp_path / "m", "red apple sky", labels=["M3"], k=2, words=5, as_json=True)
    record = json.loads(capsys.readouterr().out)[0]
    assert record["label"] == "M3"
    parts = sum(word["value"] for word in record["words"]) + record["other_words"]
    assert parts + record["encoder"] + record["bias"] == pytest.approx(record["raw_score"], abs=1e-6)


def test_paths_go_from_the_root_to_the_label(model):
    ranker = model.rankers_[0]
    X = model.model_.features(["red apple"], treetop.Runtime())
    for label in range(len(model.classes_)):
        steps = path_to(ranker, X, label)
        assert [step.level for step in steps] == list(range(1, ranker.tree.depth + 1))
        assert ranker.tree.label_of[steps[-1].node] == label
        for above, below in zip(steps[:-1], steps[1:], strict=True):
            assert ranker.tree.parents(below.level)[below.node] == above.node


def test_a_word_that_is_read_at_the_beginning_only_is_located_there(texts_and_labels):
    model = treetop.XRLinear(ngrams="word:1@20", tree="flat").fit(*texts_and_labels)
    text = "red apple sky boat and then red apple"
    found = {word.name: word.spans for one in model.explain(text) for word in one.words}
    assert found["red"] == [(0, 3)]


def test_a_word_counted_by_two_analyzers_is_listed_once(texts_and_labels):
    model = treetop.XRLinear(ngrams="word:1+word:1@20", tree="flat").fit(*texts_and_labels)
    one = model.explain("red apple sky boat and then red apple", k=1)[0]
    assert sorted(word.name for word in one.words) == ["apple", "boat", "red", "sky"]
    assert next(word for word in one.words if word.name == "red").spans == [(0, 3), (28, 31)]
    assert_adds_up_over_trees(one)


def test_character_ngrams_are_attributed_to_words(texts_and_labels):
    model = treetop.XRLinear(ngrams="word:1|char:3", tree="flat").fit(*texts_and_labels)
    one = model.explain("red apple, sky boat!", k=1)[0]
    assert {word.name for word in one.words} == {"red", "apple", "sky", "boat"}
    assert one.other_words == pytest.approx(0, abs=1e-6)
    assert_adds_up_over_trees(one)


def test_a_model_of_characters_lists_character_ngrams(texts_and_labels):
    model = treetop.XRLinear(ngrams="char:3", tree="flat").fit(*texts_and_labels)
    text = "apple boat"
    words = model.explain(text, k=1, words=99)[0].words
    assert {word.name for word in words} == {"le ", "e b", " bo", "boa", "oat"}
    assert [text[slice(*word.spans[0])] for word in words] == [word.name for word in words]


@pytest.mark.parametrize("ngrams", ["word:1-2", "word:1|char:3", "word:1@30+word:1"])
def test_labels_can_be_explained_one_after_the_other(texts_and_labels, ngrams):
    """The server explains one label at a time, so that other requests can run between two of them."""
    model = treetop.XRLinear(ngrams=ngrams, trees=2, keep_documents=True).fit(*texts_and_labels)
    text, runtime = "red apple, sky boat! " * 20, treetop.Runtime(threads=1)
    labels = [name for name, _ in model.predict([text], 5)[0]]
    explainer = Explainer(model.model_, text, runtime)
    assert [explainer.explain([label])[0] for label in labels] == model.explain(text, labels)


def test_the_values_of_ngrams_that_are_too_small_to_be_named_are_in_the_sum(
    texts_and_labels, monkeypatch
):
    model = treetop.XRLinear(ngrams="word:1-2|char:3", tree="flat").fit(*texts_and_labels)
    text = "red apple sky boat"
    whole = model.explain(text, k=1, words=99)[0]
    monkeypatch.setattr("treetop.explain.grams.MAX_NAMED", 2)
    some = model.explain(text, k=1, words=99)[0]
    assert len(some.words) < len(whole.words)
    assert some.word_sum == pytest.approx(whole.word_sum, abs=1e-9)
    assert_adds_up_over_trees(some)


def test_a_long_text_with_many_labels_is_searched_once(texts_and_labels, monkeypatch):
    """What labels share is computed once: twenty labels do not take twenty times the work of one."""
    from treetop.explain import spans

    model = treetop.XRLinear(ngrams="word:1|char:3", tree="flat").fit(*texts_and_labels)
    calls = []
    original = spans.SearchedText.places_of

    def places_of(self, names, end):
        calls.extend(names)
        return original(self, names, end)

    monkeypatch.setattr(spans.SearchedText, "places_of", places_of)
    model.explain("red apple sky boat " * 10_000, list(model.classes_)[:20])
    assert len(calls) == len(set(calls)) > 0


def test_explanations_of_calibrated_models_begin_with_the_probability(model, texts_and_labels):
    text = texts_and_labels[0][0]
    assert model.model_.calibrated
    probable = dict(model.predict([text], k=40, probability=True)[0])
    explanations = model.explain(text, list(probable))
    assert len(explanations) > 20
    for one in explanations:
        expected = probable[one.label] if one.reached else 0.0
        assert one.probability == pytest.approx(expected, abs=1e-6)
    best = explanations[0]
    title = f"probability {best.probability:.4f}, score {best.score:.4f}"
    assert str(best).splitlines()[0] == f"{best.label}  {title}"
    assert title in best._repr_html_()
    plain = treetop.XRLinear(calibration=False).fit(*texts_and_labels).explain(text)[0]
    assert plain.probability is None
    assert str(plain).splitlines()[0] == f"{plain.label}  score {plain.score:.4f}"
