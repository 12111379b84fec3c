import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import treetop
from treetop.errors import TreetopError
from treetop.labels import tree

TEXTS = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 6
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 6


def first(model, text, **options):
    return model.predict([text], k=1, **options)[0][0][0]


@pytest.mark.parametrize("name", ["xr-linear", "parabel", "bonsai", "one-vs-all", "fast", "paper"])
def test_every_preset_learns_real_data(numpy_docs, name):
    train, test = numpy_docs.split("train"), numpy_docs.split("test")
    model = treetop.XRLinear.from_preset(name, leaf=20, branching=4).fit(train.texts, train.labels)
    found = model.predict(test.texts, k=1)
    hits = [line and line[0][0] in true for line, true in zip(found, test.labels, strict=True)]
    assert np.mean(hits) > 0.35


def test_the_contract_of_the_design():
    model = treetop.XRLinear()
    assert model.fit(TEXTS, LABELS) is model
    prediction = model.predict(["a red cherry"], k=2)
    assert [type(part) for part in prediction[0][0]] == [str, float]
    assert {name for name, _ in prediction[0]} == {"red", "fruit"}
    scores = model.predict_scores(TEXTS, k=100)
    assert scores.shape == (len(TEXTS), 4)
    assert sp.issparse(scores)
    assert list(model.classes_) == ["blue", "fruit", "green", "red"]
    assert model.score(TEXTS, LABELS) == 1.0


def test_a_matrix_of_labels_with_names():
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]]))
    model = treetop.XRLinear(min_df=1).fit(["a b", "c d", "a e"], Y, label_names=["ab", "cd"])
    assert first(model, "c d") == "cd"


def test_matrices_instead_of_texts(rng):
    X = rng.random((40, 6))
    y = np.where(X[:, 0] > X[:, 1], "left", "right")
    for features in (X, sp.csr_matrix(X), treetop.features.hybrid.features(X[:, :1], X[:, 1:])):
        model = treetop.XRLinear(lambda_=0.01).fit(features, y)
        assert model.score(features, y) > 0.9


def test_same_seed_same_model_on_any_number_of_threads(numpy_docs):
    train = numpy_docs.split("train")
    settings = {"leaf": 20, "branching": 4, "trees": 2, "seed": 3, "flat_labels": 0}
    one = treetop.XRLinear(threads=1, **settings).fit(train.texts, train.labels)
    many = treetop.XRLinear(threads=5, **settings).fit(train.texts, train.labels)
    for a, b in zip(one.rankers_, many.rankers_, strict=True):
        for name, values in a.weights.arrays.items():
            np.testing.assert_array_equal(values, b.weights.arrays[name])
    other = treetop.XRLinear(**{**settings, "seed": 4}).fit(train.texts, train.labels)
    assert str(other.rankers_[0].tree.label_of) != str(one.rankers_[0].tree.label_of)


def test_a_forest_averages_its_trees(numpy_docs):
    train = numpy_docs.split("train")
    model = treetop.XRLinear(leaf=20, branching=4, trees=3, flat_labels=0)
    model.fit(train.texts, train.labels)
    assert len({str(ranker.tree.label_of) for ranker in model.rankers_}) == 3
    found = model.predict_scores(train.texts[:5], k=3)
    labels = len(model.classes_)
    everything = [
        ranker.predict(
            model.model_.features(train.texts[:5], treetop.Runtime()), labels, 1, 100
        ).toarray()
        for ranker in model.rankers_
    ]
    mean = np.mean(everything, axis=0)
    for row in range(5):
        assert found[row].data[0] == pytest.approx(mean[row, found[row].indices[0]], rel=0.05)


def test_allow_list_candidates_and_a_given_tree():
    given = tree.from_parents([np.array([0, 0, 1, 1])])
    model = treetop.XRLinear().fit(TEXTS, LABELS, tree=given)
    assert str(model.rankers_[0].tree) == "2-4"
    assert first(model, "red apple", allow=["blue", "green"]) in {"blue", "green"}
    only = sp.csr_matrix(np.array([[1, 0, 0, 0]]))
    assert model.predict(["red apple"], candidates=only)[0][0][0] == "blue"
    with pytest.raises(TreetopError, match="label 'pink' is not known"):
        model.predict(["x"], allow=["pink"])
    with pytest.raises(TreetopError, match="candidates have shape"):
        model.predict(["x"], candidates=sp.csr_matrix((1, 2)))


def test_few_labels_need_no_tree_and_a_tree_can_be_forced(numpy_docs):
    train = numpy_docs.split("train")
    flat = treetop.XRLinear().fit(train.texts, train.labels)
    assert [ranker.tree.depth for ranker in flat.rankers_] == [1] * len(flat.settings_.views())
    deep = treetop.XRLinear(tree="4-16-L", trees=1).fit(train.texts, train.labels)
    assert str(deep.rankers_[0].tree).startswith("4-16-")


def test_documents_without_labels_are_negatives():
    model = treetop.XRLinear().fit([*TEXTS, "grey fog", "grey fog"], [*LABELS, [], []])
    assert model.predict(["grey fog"], k=1)[0][0][1] < 0.9


def test_relevance_and_duplicates_in_a_line():
    model = treetop.XRLinear().fit(TEXTS, [[*line, line[0]] for line in LABELS])
    plain = treetop.XRLinear().fit(TEXTS, LABELS)
    assert model.predict(TEXTS) == plain.predict(TEXTS)


@pytest.mark.parametrize("labels", [[["only"]] * 30, [[f"l{n % 3}"] for n in range(30)]])
def test_one_label_and_fewer_labels_than_the_branching(labels):
    model = treetop.XRLinear().fit(TEXTS, labels)
    assert len(model.predict(TEXTS[:1], k=50)[0]) == len({x for line in labels for x in line})


def test_a_label_that_never_occurs_is_kept_and_ranks_last():
    Y = sp.csr_matrix(np.array([[1, 0, 0], [0, 1, 0]] * 10))
    model = treetop.XRLinear().fit(["a", "b"] * 10, Y, label_names=["a", "b", "never"])
    assert [name for name, _ in model.predict(["a"], k=3)[0]][-1] == "never"


def test_scikit_learn_can_clone_and_set():
    model = treetop.XRLinear(alpha=0.25, beam=7)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(beam=9).beam == 9
    assert repr(model) == "XRLinear(alpha=0.25, beam=9)"


# What cannot apply, and why.
NOT_FOR_US = {
    "check_fit2d_1feature": "asks for a message about X.reshape",
    "check_dict_unchanged": "wants predict to return an array",
    "check_methods_sample_order_invariance": "wants predict to return an array",
    "check_methods_subset_invariance": "wants predict to return an array",
    "check_readonly_memmap_input": "wants predict to return an array",
    "check_estimator_sparse_array": "wants predict to return an array",
    "check_estimator_sparse_matrix": "wants predict to return an array",
    "check_sample_weight_equivalence_on_dense_data": "holds at the exact optimum: see test_solver",
    "check_sample_weight_equivalence_on_sparse_data": "holds at the exact optimum: see test_solver",
    "check_estimators_pickle": "models are saved with save, never pickled",
}


def test_scikit_learns_own_checks_pass():
    results = check_estimator(
        treetop.XRLinear(threads=1), on_fail=None, expected_failed_checks=NOT_FOR_US
    )
    failed = [
        f"{one['check_name']}: {one['exception']}" for one in results if one["status"] == "failed"
    ]
    assert not failed, "\n".join(failed)
    assert sum(one["status"] == "passed" for one in results) > 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: treetop.XRLinear(bean=3), "unknown setting 'bean': did you mean 'beam'?"),
        (lambda: treetop.XRLinear().set_params(tre="x"), "did you mean 'trees?'?"),
        (lambda: treetop.XRLinear().fit(["a", "a"], [["x"]]), "2 documents but labels for 1"),
        (lambda: treetop.XRLinear().fit(["a"], [[]]), "no document has a label"),
        (lambda: treetop.XRLinear().fit(["a"], ["x"]), "give a list of names"),
        (lambda: treetop.XRLinear().fit(["a"], [[3]]), "label 3 is of type int"),
        (lambda: treetop.XRLinear().fit(["a a"], [["x\ny"]]), "contains a line break"),
        (lambda: treetop.XRLinear().fit("a text", [["x"]]), "X is one string"),
        (lambda: treetop.XRLinear().fit(["a"], None), "requires y"),
        (lambda: treetop.XRLinear(threads=1.5).fit(["a"], [["x"]]), "threads is 1.5"),
        (
            lambda: treetop.XRLinear().fit(["a"], sp.csr_matrix([[1]]), label_names=["x", "y"]),
            "2 label names for 1 columns",
        ),
        (lambda: treetop.XRLinear().fit(np.array([[np.nan]]), [["x"]]), "NaN or infinity"),
    ],
)
def test_errors(call, message):
    with pytest.raises(TreetopError, match=message):
        call()


def test_dimensions_that_disagree(rng):
    model = treetop.XRLinear().fit(rng.random((10, 3)), np.arange(10) % 2)
    with pytest.raises(TreetopError, match="X has 4 features, but XRLinear is expecting 3"):
        model.predict(rng.random((1, 4)))
    with pytest.raises(TreetopError, match="trained on a feature matrix"):
        model.predict(["text"])
    with pytest.raises(TreetopError, match="k is 0"):
        model.predict(rng.random((1, 3)), k=0)


def test_score_takes_the_matrix_that_fit_took():
    texts, names = ["red sky", "blue sea", "red sea"] * 4, ["r", "b"]
    Y = sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 0]] * 4, np.float32))
    model = treetop.XRLinear().fit(texts, Y, label_names=names)
    assert model.score(texts, Y) == 1.0 == model.score(texts, [["r"], ["b"], ["r"]] * 4)


def test_integer_labels_are_found_by_number_and_by_name(tmp_path):
    texts = ["red sky", "blue sea"] * 4
    model = treetop.XRLinear().fit(texts, np.array([7, 3] * 4))
    model.save(tmp_path / "m")  # a saved model has strings as names
    for one in (model, treetop.load(str(tmp_path / "m"))):
        assert one.score(texts, [[7], [3]] * 4) == 1.0 == one.score(texts, [["7"], ["3"]] * 4)
        for allow in ([3], ["3"], [np.int64(3)]):
            assert str(first(one, "red sky", allow=allow)) == "3"


def test_labels_as_a_series_as_iterators_and_with_line_breaks():
    texts = ["red sky", "blue sea"] * 4
    one = treetop.XRLinear().fit(texts, np.array(["r", "b"] * 4, dtype=object))
    assert one.predict(["red sky"])[0][0][0] == "r"
    once = treetop.XRLinear().fit(texts, [map(str, [name]) for name in ["r", "b"] * 4])
    assert once.score(texts, [["r"], ["b"]] * 4) == 1.0
    with pytest.raises(TreetopError, match="line break"):
        treetop.XRLinear().fit(texts, np.array(["r\nx", "b"] * 4))


def test_settings_changed_after_fit_do_not_touch_the_model(tmp_path):
    texts = ["red sky", "blue sea"] * 4
    model = treetop.XRLinear().fit(texts, [["r"], ["b"]] * 4)
    before = model.predict(texts)
    model.set_params(ngrams="char:3").save(tmp_path / "m")
    assert treetop.load(str(tmp_path / "m")).predict(texts) == before
