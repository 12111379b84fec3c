"""The estimate of a training: the counts are right, the figures plausible, the warning helps."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from treetop.runtime import Runtime
from treetop.settings.schema import LinearSettings, TransformerSettings
from treetop.training.advice import advising, sample
from treetop.training.advice.advising import estimate_of, estimate_training, warning
from treetop.training.advice.encoding import EncoderFigures
from treetop.training.advice.problem import read_problem
from treetop.training.advice.stages import (
    FOLD,
    OF_LISTED,
    StageEstimate,
    added_up,
    calibration,
    encoder,
)
from treetop.training.advice.trial import labels_of_counts

RUNTIME = Runtime(threads=2)


@pytest.fixture(scope="module")
def documents():
    """Texts of words that are as rare as those of a language, and labels that follow from words."""
    rng = np.random.default_rng(3)
    words = np.minimum(rng.zipf(1.3, (3000, 30)), 5000)
    texts = [" ".join(f"w{word}" for word in row) for row in words.tolist()]
    labels = words[:, :3] % 120
    rows = np.repeat(np.arange(3000), 3)
    Y = sp.csr_matrix((np.ones(9000, np.float32), (rows, labels.ravel())), (3000, 120))
    Y.data[:] = 1
    return texts, Y


@pytest.fixture(scope="module")
def problem(documents):
    return read_problem(*documents, LinearSettings(), RUNTIME)


def test_features_are_predicted_from_the_sample(documents, problem):
    texts, Y = documents
    assert 0 < problem.competition < 1
    model = treetop.XRLinear(ngrams=problem.settings.ngrams, trees=3).fit(texts, Y)
    assert problem.columns == pytest.approx(model.n_features_in_, rel=0.25)
    assert problem.documents == 3000
    assert problem.positives == Y.nnz
    assert problem.growth == 5


def test_the_estimate_is_the_sum_of_its_stages(problem):
    estimate = estimate_of(problem)
    names = ["competition", "text features", "rankers", "calibration"]
    assert [stage.name for stage in estimate.stages] == names
    assert estimate.seconds == sum(stage.seconds for stage in estimate.stages) > 0
    described = estimate.as_json()
    assert described["memory"] == max(stage["memory"] for stage in described["stages"].values())
    assert estimate.line().startswith("estimate on 2 threads: ")


def test_a_tree_has_a_stage_of_its_own(documents):
    settings = LinearSettings(flat_labels=0, leaf=10, trees=1)
    estimate, warned = estimate_training(*documents, settings, RUNTIME)
    names = ["competition", "text features", "label trees", "rankers", "calibration"]
    assert [stage.name for stage in estimate.stages] == names
    assert warned is None


def test_the_sample_is_trained_on_for_few_passes_only(documents):
    began = time.process_time()
    endless = LinearSettings(trees=1, passes=10**9, tolerance=1e-12)
    estimate_training(*documents, endless, RUNTIME)
    assert time.process_time() - began < 10


def test_few_documents_are_not_estimated(documents):
    texts, Y = documents
    assert estimate_training(texts[:500], Y[:500], LinearSettings(), RUNTIME) == (None, None)


def test_the_sample_is_a_small_part_of_the_documents():
    rows = sample.sampled_rows(["x"] * 5000)
    assert rows.size == 1000 == np.unique(rows).size
    long = ["x" * 2000] * 5000
    assert sample.sampled_rows(long).size == sample.MOST_CHARACTERS // 2000


def test_memory_that_will_not_do_is_warned_of_with_the_setting_that_fits(problem):
    many = tuple(20 * columns for columns in problem.texts.columns)
    problem = problem._replace(texts=problem.texts._replace(columns=many), threads=8)
    estimate = estimate_of(problem)
    alone = estimate_of(problem._replace(threads=1)).memory
    assert alone < estimate.memory
    assert warning(problem, estimate, alone).endswith(": set threads=2")  # tasks are half the size
    few = estimate_of(advising.limited(problem, 100_000, "word:1")).memory
    assert few < estimate_of(advising.limited(problem, 100_000)).memory
    assert warning(problem, estimate, few).endswith(": set max_features=100000, ngrams=word:1")
    assert "on fewer documents" in warning(problem, estimate, 1000)


def test_a_limit_that_is_too_low_is_warned_of(documents):
    runtime = RUNTIME.changed(memory="1MB")
    _, warned = estimate_training(*documents, LinearSettings(trees=1), runtime)
    assert warned.startswith("training needs about ")
    assert "of 1.0 MB" in warned


def test_stages_of_one_name_add_up_and_keep_what_earlier_ones_left():
    first = StageEstimate("rankers", 1.0, memory=10, kept=4, disk=2)
    (both,) = added_up([first, first])
    assert both == StageEstimate("rankers", 2.0, memory=14, kept=8, disk=4)


def test_labels_are_tried_that_are_as_frequent_as_all():
    own = np.array([1, 1, 1, 1, 2, 5, 9])
    counts = np.full(50, 5)
    chosen = labels_of_counts(np.repeat(own, 20), counts)
    assert np.unique(chosen).size == chosen.size == 64
    assert 5 in np.repeat(own, 20)[chosen]


def test_layers_that_are_not_tuned_are_computed_once(problem):
    figures = EncoderFigures("cpu", 16, seconds=10.0, memory=0, weights=100, layers=4)
    seconds = {}
    for tuned in (None, 1, 4):
        settings = TransformerSettings(budget="2 epochs", tuned_layers=tuned)
        given = problem._replace(encoder=figures, settings=settings)
        seconds[tuned] = {stage.name: stage.seconds for stage in encoder(given)}
    seen = seconds[None]["fine-tuning"] / (3 * 10)  # epochs of whole batches
    assert seen == pytest.approx(2, rel=0.1)
    assert seconds[4] == seconds[None]
    assert seconds[1]["fine-tuning"] == pytest.approx(10 * (3 * seen / 4 + 3 / 4))
    assert seconds[1]["embedding"] == 10


def test_calibration_is_a_stage_and_trains_the_rankers_again(problem):
    without = problem._replace(settings=replace(problem.settings, calibration=False))
    own, other = (
        {stage.name: stage for stage in estimate_of(one).stages} for one in (problem, without)
    )
    assert own.keys() - other.keys() == {"calibration"}
    assert own["rankers"].seconds == pytest.approx((1 + FOLD) * other["rankers"].seconds)
    assert own["rankers"].kept == 2 * other["rankers"].kept
    assert own["rankers"].disk == other["rankers"].disk
    # 600 of the 3,000 documents: 20 labels of each, and of 500 of them 10 of each of four copies
    listed = 600 * 20 + 4 * 500 * 10
    one = calibration(problem._replace(threads=1))[0]
    assert one.seconds == pytest.approx(OF_LISTED * listed)
    assert calibration(problem._replace(documents=100)) == []
