"""Tests that every fitted model must pass. `test_contract.py` runs them for each kind of model."""

import json
import pickle
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.errors import TreetopError
from treetop.model.ensemble import EnsembleModel
from treetop.runtime import Runtime

# Encoders compute in float32 here: in bfloat16 a text alone and in a batch differ.
FP32 = Runtime(threads=1, device="cpu", precision="fp32")
MACHINE = {option.name for option in fields(Runtime)}


def assert_same(one: sp.csr_matrix, other: sp.csr_matrix, **tolerance) -> None:
    """Assert that scores rank the same labels in the same order with the same values."""
    np.testing.assert_array_equal(one.indptr, other.indptr)
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.data, other.data, **{"rtol": 0, "atol": 0, **tolerance})


class ModelContract:
    """Subclasses define the fixture `model` and, if it does not read texts, `documents`."""

    @pytest.fixture
    def model(self):
        raise NotImplementedError

    @pytest.fixture
    def documents(self, queries):
        return queries

    @pytest.fixture
    def known(self, documents):
        """Documents in which every model finds something to read."""
        return documents[:12]

    def scores(self, model, documents, k=5, **options):
        return model.predict_scores(documents, k, **{"runtime": FP32, **options})

    def test_scores_are_a_sparse_matrix_with_sorted_rows(self, model, documents):
        scores = self.scores(model, documents)
        assert scores.shape == (len(documents), len(model.classes_))
        for start, end in zip(scores.indptr[:-1], scores.indptr[1:], strict=True):
            row = scores.data[start:end]
            assert (row[:-1] >= row[1:]).all()
            assert len(set(scores.indices[start:end])) == len(row) <= 5

    def test_predictions_are_the_scores_with_label_names(self, model, documents):
        scores = self.scores(model, documents, 3)
        for number, row in enumerate(model.predict(documents, 3, runtime=FP32)):
            cells = scores[number]
            assert [name for name, _ in row] == [model.classes_[label] for label in cells.indices]
            assert [score for _, score in row] == cells.data.tolist()
            assert {type(name) for name, _ in row} <= {str, int}

    def test_predictions_do_not_depend_on_the_number_of_threads(self, model, documents):
        one = self.scores(model, documents)
        assert_same(one, self.scores(model, documents, threads=3))
        assert_same(one, self.scores(model, documents, runtime=FP32.changed(threads=2)))

    def test_predictions_do_not_depend_on_the_other_documents(self, model, documents):
        together = self.scores(model, documents)
        for number, document in enumerate(documents):
            assert_same(self.scores(model, alone(document)), together[number], atol=1e-6)

    def test_only_allowed_labels_are_predicted(self, model, documents):
        allowed = model.classes_[:4].tolist()
        for row in model.predict(documents, 3, allow=allowed, runtime=FP32):
            assert {name for name, _ in row} <= set(allowed)
        with pytest.raises(TreetopError, match="label 'no such label' is not known to the model"):
            model.predict(documents, allow=["no such label"])

    def test_exactly_the_candidates_are_scored(self, model, known):
        labels = len(model.classes_)
        columns = np.arange(2 * len(known)) % labels
        cells = (np.ones(columns.size), columns, np.arange(0, columns.size + 1, 2))
        candidates = sp.csr_matrix(cells, shape=(len(known), labels))
        scores = self.scores(model, known, 5, candidates=candidates)
        for number in range(len(known)):
            assert set(scores[number].indices) == set(candidates[number].indices)
        with pytest.raises(TreetopError, match=r"candidates have shape .*, expected"):
            self.scores(model, known, candidates=candidates[:, :-1])

    def test_labels_below_the_threshold_are_left_out(self, model, documents):
        best = model.predict(documents, 5, runtime=FP32)
        scores = sorted(score for row in best for _, score in row)
        threshold = scores[len(scores) // 2]
        reached = [[pair for pair in row if pair[1] >= threshold] for row in best]
        assert model.predict(documents, 5, threshold=threshold, runtime=FP32) == reached
        assert model.predict(documents, 5, threshold=-1, runtime=FP32) == best
        assert not any(model.predict(documents, 5, threshold=scores[-1] + 1, runtime=FP32))

    def test_texts_in_which_there_is_nothing_to_read_get_no_labels(self, model, documents):
        if not model.model_.reads_texts:
            zeros = sp.csr_matrix((1, model.n_features_in_))
            assert len(model.predict(zeros, 3)[0]) == 3  # of a matrix, every row is answered
            return
        known = documents[0]
        rows = model.predict(["", known, " \n\t", "\u2003"], 3, runtime=FP32)
        assert [len(row) for row in rows] == [0, 3, 0, 0]
        assert rows[1] == model.predict([known], 3, runtime=FP32)[0]
        assert model.explain("", runtime=FP32) == []
        explanation = model.explain("", model.classes_[0], runtime=FP32)
        if getattr(model, "combine", "average") == "average":
            assert (explanation.score, explanation.reached) == (0.0, False)

    def test_the_score_is_that_of_evaluate(self, model, known):
        truth = [[row[number % 2][0]] for number, row in enumerate(model.predict(known, 2))]
        assert model.score(known, truth) == model.evaluate(known, truth)["P@1"]

    def test_k_must_be_at_least_1(self, model, documents):
        with pytest.raises(TreetopError, match="k is 0: it must be at least 1"):
            model.predict(documents, 0)

    def test_the_score_is_precision_at_1(self, model, known):
        best = [[row[0][0]] for row in model.predict(known, 1, runtime=FP32)]
        assert model.evaluate(known, best, (1,), runtime=FP32)["P@1"] == 1.0
        half = [names if number % 2 else ["another"] for number, names in enumerate(best)]
        expected = (len(best) // 2) / len(best)
        assert model.evaluate(known, half, (1,), runtime=FP32)["P@1"] == pytest.approx(expected)

    def test_explanations_have_the_predicted_scores(self, model, documents):
        document = documents[0] if isinstance(documents[0], str) else documents[:1]
        # All labels: in a short list a tree counts for nothing that does not list a label itself.
        row = model.predict(alone(document), len(model.classes_), runtime=FP32)[0][:2]
        explanations = model.explain(document, [name for name, _ in row], runtime=FP32)
        assert [one.label for one in explanations] == [name for name, _ in row]
        if getattr(model, "combine", "average") == "average":
            scores = [one.score for one in explanations]
            np.testing.assert_allclose(scores, [score for _, score in row], atol=1e-5)

    def test_a_loaded_model_equals_the_saved_one(self, model, documents, tmp_path):
        model.save(tmp_path / "saved")
        loaded = treetop.load(tmp_path / "saved", runtime=FP32)
        assert type(loaded) is type(model)
        assert loaded.classes_.tolist() == model.classes_.tolist()
        assert_same(self.scores(loaded, documents), self.scores(model, documents))
        assert_same(loaded.predict_scores(documents, 5), self.scores(model, documents))

    def test_runtime_options_are_not_saved(self, model, tmp_path):
        model.save(tmp_path / "saved")
        for config in (tmp_path / "saved").rglob("config.json"):
            settings = json.loads(config.read_text()).get("settings", {})
            assert not MACHINE & set(settings), config

    def test_notebooks_show_a_card(self, model):
        assert f"<strong>{type(model).__name__}</strong> <em>(fitted)</em>" in model._repr_html_()

    def test_fitted_models_are_immutable(self, model):
        with pytest.raises(FrozenInstanceError):
            model.model_.kind = "other"
        with pytest.raises(FrozenInstanceError):
            model.model_.feature_map = None
        for member in members_of(model.model_):
            with pytest.raises(FrozenInstanceError):
                member.settings.beam = 1

    def test_describe_returns_json(self, model):
        facts = model.model_.describe()
        assert facts["model"] == model.kind
        assert facts["labels"] == len(model.classes_)
        json.dumps(facts)

    def test_models_can_be_pickled_for_other_processes(self, model, documents):
        again = pickle.loads(pickle.dumps(model))
        assert_same(self.scores(again, documents), self.scores(model, documents))

    def test_features_can_be_selected_by_row(self, model, documents):
        inner = model.model_
        some = inner.select(inner.features(documents, FP32), np.array([2, 0]))
        scores = inner.scores_from(some, 5, FP32)
        expected = self.scores(model, documents)
        assert_same(scores, sp.vstack([expected[2], expected[0]], "csr"), atol=1e-6)


def alone(document):
    """Wrap one document as an argument of `predict`."""
    return [document] if isinstance(document, str) else document


def members_of(model):
    """List the models of an ensemble, at any depth, or the model itself."""
    if not isinstance(model, EnsembleModel):
        return [model]
    return [single for member in model.members for single in members_of(member)]
