"""Explanations: parts that add up to the predicted score, and where words stand."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.explain.letters import told_by_words
from treetop.explain.spans import spans_of
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


def slow_weight(weights, feature, cluster, child):
    """The twin of `weights_of`: read through everything."""
    for place in range(weights.row_ptr[feature], weights.row_ptr[feature + 1]):
        number, at = weights.rows[place]
        if number != cluster:
            continue
        if at < 0:
            return weights.full.ravel()[(-1 - at) * 16 + child]
        for pair in range(at + 1, at + 1 + weights.pairs[at, 0]):
            if weights.pairs[pair, 0] == child:
                return weights.pairs.view(np.float32)[pair, 1]
    return 0.0


def test_weights_are_found(model):
    weights = model.rankers_[0].weights
    features = np.arange(model.n_features_in_, dtype=np.int32)
    found = np.empty(features.size, np.float32)
    seen = 0
    for cluster in range(weights.child_ptr.size - 1):
        for child in range(weights.child_ptr[cluster + 1] - weights.child_ptr[cluster]):
            lookup.weights_of(*weights.for_search[:5], features, cluster, child, found)
            slow = [slow_weight(weights, feature, cluster, child) for feature in features]
            np.testing.assert_array_equal(found, np.array(slow, np.float32))
            seen += np.count_nonzero(found)
    assert seen > 100


@pytest.mark.parametrize("transform", ["l3-hinge", "sigmoid", "log-sigmoid", "identity"])
def test_the_score_is_the_predicted_one(texts_and_labels, transform):
    made = treetop.XRLinear(tree="4-16-L", trees=1, score_transform=transform)
    made.fit(*texts_and_labels)
    text = "red apple sky boat"
    for name, score in made.predict([text], 5)[0]:
        assert made.explain(text, name).score == pytest.approx(score, abs=1e-5)


def test_a_forests_score_is_the_predicted_one(texts_and_labels):
    made = treetop.XRLinear(tree="4-16-L", trees=3, beam=1).fit(*texts_and_labels)
    text, missed = "red apple sky boat", 0
    scores = made.predict_scores([text], len(made.classes_))
    for label, score in zip(scores.indices, scores.data, strict=True):
        one = made.explain(text, made.classes_[label])
        assert one.score == pytest.approx(float(score), abs=1e-5)
        missed += sum(not path.reached for path in one.paths)
    assert missed > 0


def test_parts_add_up_to_the_raw_scores(model):
    for one in model.explain("red apple by the sea, a boat", k=4, words=3):
        raw = sum(node.raw for path in one.paths for node in path.nodes) / len(one.paths)
        assert one.word_sum + one.encoder + one.bias == pytest.approx(raw, abs=1e-5)
        assert len(one.words) <= 3
        assert one.paths[0].nodes[-1].labels == [one.label]


def test_a_word_that_is_taken_away_takes_its_value_along():
    X = sp.csr_matrix(np.eye(4, dtype=np.float32))
    made = treetop.XRLinear(tree="flat", bias=0.0, prune_below=0.0, score_transform="identity")
    made.fit(X, [["a"], ["b"], ["a"], ["c"]])
    both = sp.csr_matrix(np.array([[1, 0, 1, 0]], np.float32))
    whole = made.explain(both, "a")
    alone = made.explain(sp.csr_matrix(np.array([[1, 0, 0, 0]], np.float32)), "a")
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
    made = treetop.XRLinear().fit(*texts_and_labels)
    made.save(tmp_path / "m")
    assert not (tmp_path / "m" / "documents.safetensors").exists()
    assert made.explain("red apple", k=1)[0].neighbours == []


def test_kept_documents_are_those_that_count(texts_and_labels):
    texts, labels = texts_and_labels
    weights = np.ones(len(texts))
    weights[0] = 0
    made = treetop.XRLinear(keep_documents=True).fit(iter(texts), labels, sample_weight=weights)
    assert made.model_.documents.text_of(0) == texts[1]


def test_an_ensemble_explains_with_all_members(model, texts_and_labels):
    whole = treetop.Ensemble([model, model]).explain("red apple sky", k=2)
    alone = model.explain("red apple sky", [one.label for one in whole])
    for both, single in zip(whole, alone, strict=True):
        assert both.score == pytest.approx(single.score)
        assert both.word_sum == pytest.approx(single.word_sum)
        assert len(both.paths) == 2 * len(single.paths)


def test_a_transformer_tells_the_encoder_from_the_words(texts_and_labels, tmp_path):
    from tests.tiny import save_encoder

    folder = save_encoder(tmp_path / "encoder")
    made = treetop.XRTransformer(encoder=folder, fine_tune=False, trees=1, tree="4-16-L")
    made.fit(*texts_and_labels)
    text = "red apple sky boat"
    name, score = made.predict([text], 1, beam=100)[0][0]
    one = made.explain(text, name)
    assert one.score == pytest.approx(score, abs=1e-5)
    assert one.encoder != 0
    raw = sum(node.raw for node in one.paths[0].nodes)
    assert one.word_sum + one.encoder + one.bias == pytest.approx(raw, abs=1e-5)
    for_it = max(one.encoder, 0), max(one.word_sum, 0)
    assert one.encoder_share == pytest.approx(for_it[0] / sum(for_it))


def test_where_words_stand():
    text = "Red apple; a RED-apple. Reddish"
    assert [text[a:b] for a, b in spans_of(text, "red")] == ["Red", "RED"]
    assert [text[a:b] for a, b in spans_of(text, "red apple")] == ["Red apple", "RED-apple"]
    assert spans_of("a.b (c", "b (", "char") == [(2, 5)]
    assert len(spans_of("x " * 1000, "x")) == 50
    assert spans_of("the" + " " * 150_000, " th", "char") == []  # at once, not after hours


def test_the_words_of_an_explanation_stand_in_the_text(model):
    text = "Red apple, sky!"
    for word in model.explain(text, k=1)[0].words:
        assert {text[a:b].lower().replace(", ", " ") for a, b in word.spans} == {word.name}


def test_errors_say_what_to_do(model):
    with pytest.raises(treetop.TreetopError, match="label 'nonsense' is not known to the model"):
        model.explain("red", "nonsense")
    with pytest.raises(treetop.TreetopError, match="explain takes one document, not 2"):
        model.explain(["red", "green"])


def test_the_command_prints_and_gives_json(model, tmp_path, capsys):
    from treetop.cli.work import explain_text

    model.save(tmp_path / "m")
    explain_text(tmp_path / "m", "red apple sky", labels=None, k=2, words=5, as_json=False)
    assert "words +" in capsys.readouterr().out
    explain_text(tmp_path / "m", "red apple sky", labels=["M3"], k=2, words=5, as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["label"] == "M3"


def test_paths_go_from_the_root_to_the_label(model):
    ranker = model.rankers_[0]
    X = model.model_.features(["red apple"], treetop.Runtime())
    for label in range(len(model.classes_)):
        steps = path_to(ranker, X, label)
        assert [step.level for step in steps] == list(range(1, ranker.tree.depth + 1))
        assert ranker.tree.label_of[steps[-1].node] == label
        for above, below in zip(steps[:-1], steps[1:], strict=True):
            assert ranker.tree.parents(below.level)[below.node] == above.node


def test_a_word_that_counts_at_the_beginning_is_marked_there(texts_and_labels):
    made = treetop.XRLinear(ngrams="word:1@20", tree="flat").fit(*texts_and_labels)
    text = "red apple sky boat and then red apple"
    found = {word.name: word.spans for one in made.explain(text) for word in one.words}
    assert found["red"] == [(0, 3)]


def test_a_word_stands_once_whatever_it_was_counted_for(texts_and_labels):
    made = treetop.XRLinear(ngrams="word:1+word:1@20", tree="flat").fit(*texts_and_labels)
    one = made.explain("red apple sky boat and then red apple", k=1)[0]
    names = [word.name for word in one.words]
    assert len(names) == len(set(names))
    assert next(word for word in one.words if word.name == "red").spans == [(0, 3), (28, 31)]
    raw = one.paths[0].nodes[0].raw
    parts = sum(word.value for word in one.words) + one.other_words + one.encoder + one.bias
    assert parts == pytest.approx(raw, abs=1e-4)


def test_letters_are_told_by_the_words_they_stand_in(texts_and_labels):
    made = treetop.XRLinear(ngrams="word:1|char:3", tree="flat").fit(*texts_and_labels)
    one = made.explain("red apple, sky boat!", k=1)[0]
    assert {word.name for word in one.words} <= {"red", "apple", "sky", "boat"}
    raw = np.mean([path.nodes[0].raw for path in one.paths])
    assert one.word_sum + one.encoder + one.bias == pytest.approx(raw, abs=1e-4)
    assert abs(one.other_words) < 1e-6


def test_a_model_that_reads_letters_alone_tells_of_letters(texts_and_labels):
    made = treetop.XRLinear(ngrams="char:3", tree="flat").fit(*texts_and_labels)
    assert all(len(word.name) == 3 for word in made.explain("apple boat", k=1)[0].words)


def test_a_piece_is_shared_by_the_words_it_touches():
    sums = {("d ap", "char", True): 0.9, ("red", "word", True): 1.0, ("!!", "char", True): 0.5}
    sums[("zz", "char", True)] = 0.25
    reach = dict.fromkeys(sums, 99)
    told = told_by_words("Red apple !!", sums, reach)
    assert told == {
        ("red", "word", True): pytest.approx(1.3),
        ("apple", "word", True): pytest.approx(0.6),
        ("!!", "char", True): 0.5,
        ("zz", "char", True): 0.25,
    }
    assert reach[("apple", "word", True)] == 99
