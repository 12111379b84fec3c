"""Whether an encoder pays is decided on held-out documents, and costs less wins ties."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("torch")

import treetop
from tests.tiny import WORDS, save_encoder
from treetop.cli.main import run_command
from treetop.runtime import Runtime
from treetop.tuning import encoder_trial
from treetop.tuning.encoder_trial import (
    AS_GIVEN,
    FROZEN,
    UPPER,
    WHOLE,
    candidates_for,
    decided_for,
    encoder_that_pays,
    trial_of,
    without_levels,
)
from treetop.tuning.encoder_trial import (
    WORDS as WORDS_ALONE,
)

PLACE = Runtime(threads=2, device="cpu", precision="fp32")
BRIEF = {"max_length": 8, "batch": 32, "budget": "8 steps", "trees": 1}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("encoder"), num_hidden_layers=3)


def matrix_of(labels):
    names = sorted({name for row in labels for name in row})
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    columns = [names.index(name) for row in labels for name in row]
    ones = np.ones(len(columns), np.float32)
    return sp.csr_matrix((ones, (rows, columns)), (len(labels), len(names)))


def of_words(count, seed=0):
    """Texts whose labels are words that they contain, in any order."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 5, replace=False)) for _ in range(count)]
    return texts, [sorted(set(text.split()) & set(WORDS[:14])) or ["none"] for text in texts]


@pytest.fixture(scope="module")
def data():
    texts, labels = of_words(700)
    return texts, matrix_of(labels)


def test_the_trial_has_documents_of_its_own_and_they_do_not_overlap(data):
    trial = trial_of(*data, seed=0)
    assert len(trial.texts) + len(trial.held_texts) == 700
    assert 0.2 < len(trial.held_texts) / 700 <= 0.3
    assert not set(trial.texts) & set(trial.held_texts), "equal texts stay on one side"
    assert trial.Y.shape[1] == trial.held_labels.shape[1]
    assert np.diff(trial.Y.tocsc().indptr).min() > 0
    assert trial_of(data[0][:300], data[1][:300], seed=0) is None


def test_large_data_are_reduced_to_some_labels_with_all_their_documents(data, monkeypatch):
    monkeypatch.setattr(encoder_trial, "MOST_DOCUMENTS", 550)
    monkeypatch.setattr(encoder_trial, "FEWEST_DOCUMENTS", 100)
    monkeypatch.setattr(encoder_trial, "FEWEST_LABELS", 2)
    texts, Y = data
    trial = trial_of(texts, Y, seed=0)
    assert len(trial.texts) + len(trial.held_texts) <= 550
    assert trial.Y.shape[1] < Y.shape[1]
    whole = {text: row for text, row in zip(texts, Y.toarray().sum(1), strict=True)}
    assert all(whole[text] >= own > 0 for text, own in zip(trial.texts, trial.Y.sum(1), strict=True))


def test_what_competes_on_a_cpu_and_on_a_gpu():
    assert candidates_for("cpu", {}) == (WORDS_ALONE, FROZEN, UPPER)
    assert candidates_for("cuda", {})[2] == WHOLE
    assert candidates_for("cpu", {"tuned_layers": 1}) == (WORDS_ALONE, AS_GIVEN)


def test_a_random_encoder_does_not_pay_where_words_say_all(data, encoder):
    given = {**BRIEF, "encoder": encoder}
    decision = encoder_that_pays(trial_of(*data, 0), candidates_for("cpu", given), given, PLACE)
    assert decision.candidate == WORDS_ALONE
    said, values = decision.line.rsplit(": ", 1)
    assert said == "words alone: nDCG@5 on held-out documents"
    names = [part.rsplit(" ", 1)[0] for part in values.split(", ")]
    assert names == ["words alone", "frozen encoder", "2 layers tuned"]
    again = encoder_that_pays(trial_of(*data, 0), candidates_for("cpu", given), given, PLACE)
    assert again == decision


def test_figures_by_level_are_left_out_of_trials():
    given = {"budget": "4/4 steps", "tree": "4-L", "encoder": "a/b", "warmup": 0.2}
    assert without_levels(given) == {"encoder": "a/b", "warmup": 0.2}


def test_an_encoder_pays_where_words_say_nothing(encoder):
    """No two texts share five words in a row, so n-grams of five words tell nothing."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS[:6], 5)) for _ in range(900)]
    Y = sp.csr_matrix(np.eye(3, dtype=np.float32)[[text.count("red") % 3 for text in texts]])
    given = {**BRIEF, "encoder": encoder, "ngrams": "word:5", "min_df": 2, "flat_labels": 100}
    decision = encoder_that_pays(trial_of(texts, Y, 0), (WORDS_ALONE, FROZEN), given, PLACE)
    assert decision.candidate == FROZEN


def test_what_there_is_no_time_for_is_not_tried(data, encoder):
    given = {**BRIEF, "encoder": encoder}
    shares = []
    decision = decided_for(
        *data, given, PLACE, without_words=True, fits=lambda one, share: bool(shares.append(share))
    )
    assert decision.candidate == FROZEN
    assert decision.line == "frozen encoder: there is no time for more"
    assert shares == [len(trial_of(*data, 0).texts) / 700]


def test_the_best_estimator_keeps_given_settings(data, encoder):
    model = treetop.best_estimator(*data, encoder=encoder, runtime=PLACE, **BRIEF, seed=3)
    assert (model.kind, model.trees, model.seed) == ("xr-linear", 1, 3)


def test_the_command_tries_the_encoder_that_is_given(encoder, tmp_path, capsys):
    texts, labels = of_words(700)
    (tmp_path / "train.txt").write_text("\n".join(texts))
    (tmp_path / "train.labels").write_text("\n".join("\t".join(names) for names in labels))
    command = ["train", str(tmp_path), "-o", str(tmp_path / "model"), "--encoder", encoder]
    settings = [part for name, value in BRIEF.items() for part in ("--set", f"{name}={value}")]
    settings += ["--set", "device=cpu", "--set", "precision=fp32", "--set", "threads=2"]
    assert run_command([*command, "--quality", "best", *settings]) == 0
    assert "words alone: nDCG@5 on held-out documents: " in capsys.readouterr().err
    model = treetop.load(tmp_path / "model")
    assert model.kind == "xr-linear"
    assert "words alone: nDCG@5" in model.model_.competition
