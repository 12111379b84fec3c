import itertools
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")

import treetop  # noqa: E402
from tests.tiny import documents, save_encoder  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.runtime.arrays import read_arrays  # noqa: E402
from treetop.runtime.progress import Reporter  # noqa: E402
from treetop.training.finetune import trainer as trainer_module  # noqa: E402
from treetop.training.finetune.step import TrainingStep  # noqa: E402
from treetop.training.finetune.trainer import LevelTrainer  # noqa: E402

BRIEF = {"max_length": 16, "batch": 16, "budget": "8/12 steps", "first_tree": "6-L", "threads": 2}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def fitted(encoder):
    return treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())


def same(a, b):
    return a.shape == b.shape and (a != b).nnz == 0


def test_a_tiny_model_overfits(encoder):
    texts, labels = documents(64)
    model = treetop.XRTransformer(
        encoder=encoder,
        max_length=16,
        batch=16,
        budget="60/90 steps",
        first_tree="6-L",
        dropout=0.0,
        learning_rate=3e-3,
    )
    model.fit(texts, labels)
    assert model.score(texts, labels) == 1.0
    first, last = model.history_[0]["loss"], model.history_[-1]["loss"]
    assert last < first


def test_fine_tuning_finds_what_words_and_a_frozen_encoder_do_not(encoder):
    # the only n-gram kept is in every document: what is learned went through the encoder
    texts, labels = documents(400)
    unseen = documents(100, seed=9)
    settings = {
        "encoder": encoder,
        "max_length": 16,
        "batch": 32,
        "first_tree": "6-L",
        "max_features": 1,
        "dropout": 0.0,
        "learning_rate": 3e-3,
    }
    frozen = treetop.XRTransformer(**settings, fine_tune=False).fit(texts, labels)
    tuned = treetop.XRTransformer(**settings, budget="100/150 steps").fit(texts, labels)
    assert tuned.score(*unseen) > frozen.score(*unseen) + 0.1


def test_saved_and_loaded_it_predicts_the_same(fitted, tmp_path):
    texts, _ = documents(20, seed=1)
    fitted.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert same(loaded.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    assert loaded.history_ == fitted.history_
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "encoder", "labels.txt", "tfidf.safetensors", "history.jsonl"} <= names
    loaded.save(tmp_path / "again")  # an encoder that was never opened is copied
    again = treetop.load(str(tmp_path / "again"))
    assert same(again.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    (tmp_path / "model" / "encoder" / "model.safetensors").write_bytes(b"short")
    with pytest.raises(TreetopError, match=r"encoder/model.safetensors: 5 bytes instead of"):
        treetop.load(str(tmp_path / "model"))


def test_trees_may_see_different_words(encoder, tmp_path):
    texts, labels = documents(120)
    settings = {**BRIEF, "encoder": encoder, "tree": "6-L", "trees": 2, "ngrams": "word:1|word:2"}
    model = treetop.XRTransformer(**settings).fit(texts, labels)
    used = [set(np.flatnonzero(np.diff(one.weights.row_ptr))) for one in model.rankers_]
    words = model.model_.feature_map.words.widths[0]
    assert used[0]
    assert max(used[0]) < words <= min(used[1])
    model.save(tmp_path / "m")
    loaded = treetop.load(str(tmp_path / "m"))
    assert same(loaded.predict_scores(texts, 5), model.predict_scores(texts, 5))
    alone = treetop.XRTransformer(**settings, words=False).fit(texts, labels)
    assert len(alone.rankers_) == 2
    assert alone.predict(texts[:1], 1)[0]


def test_same_seed_same_model_and_another_seed_another(fitted, encoder):
    texts, _ = documents(20, seed=1)
    again = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())
    other = treetop.XRTransformer(encoder=encoder, **BRIEF, seed=1).fit(*documents())
    assert same(again.predict_scores(texts, 5), fitted.predict_scores(texts, 5))
    assert not same(other.predict_scores(texts, 5), fitted.predict_scores(texts, 5))


def test_empty_and_long_texts_are_predicted(fitted):
    found = fitted.predict(["", "red " * 10_000, "nothing known here"], k=3)
    assert [len(row) for row in found] == [3, 3, 3]
    assert all(np.isfinite(score) for row in found for _, score in row)


def test_relevance_and_weights_matter_and_zero_weight_is_absence(encoder):
    texts, labels = documents(48)
    plain = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, labels)
    names = list(plain.classes_)
    Y = sp.csr_matrix([[1.0 if name in line else 0.0 for name in names] for line in labels])
    as_matrix = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, Y, label_names=names)
    assert same(as_matrix.predict_scores(texts, 5), plain.predict_scores(texts, 5))
    graded = Y.copy()
    graded.data[::2] = 0.25
    relevant = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts, graded, label_names=names)
    assert not same(relevant.predict_scores(texts, 5), plain.predict_scores(texts, 5))
    weights = np.ones(48)
    weights[:8] = 0
    absent = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(
        texts, Y, label_names=names, sample_weight=weights
    )
    without = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(texts[8:], Y[8:], label_names=names)
    assert same(absent.predict_scores(texts, 5), without.predict_scores(texts, 5))
    weights[:8] = 5
    heavy = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(
        texts, Y, label_names=names, sample_weight=weights
    )
    assert not same(heavy.predict_scores(texts, 5), plain.predict_scores(texts, 5))


def test_validation_keeps_the_best_weights(encoder):
    texts, labels = documents(64)
    settings = {**BRIEF, "validate_every": 0.25, "learning_rate": 1e-3}
    model = treetop.XRTransformer(encoder=encoder, **settings)
    model.fit(texts, labels, validation=documents(32, seed=5))
    scores = [entry["validation P@1"] for entry in model.history_ if entry["level"] == 2]
    assert len(scores) == 4
    assert all(0 <= score <= 1 for score in scores)
    split = treetop.XRTransformer(encoder=encoder, **settings, validation=0.25, patience=1)
    split.fit(texts, labels)
    assert split.train_documents_ == 48


def test_early_stopping_ends_a_level(encoder, monkeypatch):
    monkeypatch.setattr(LevelTrainer, "keep_if_best", fading(LevelTrainer.keep_if_best))
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, "validate_every": 0.1}, patience=2)
    model.fit(*documents(64), validation=documents(32, seed=5))
    assert max(e["step"] for e in model.history_ if e["level"] == 2) < 12


def fading(original):
    """P@1 that only falls: the first weights stay the best."""
    scores = (0.9**number for number in itertools.count())

    def keep_if_best(self, score):
        original(self, next(scores))

    return keep_if_best


def losses_at_the_labels(encoder, **changes):
    model = treetop.XRTransformer(encoder=encoder, **{**BRIEF, **changes}).fit(*documents())
    return [facts["loss"] for facts in model.history_ if facts["level"] == 2]


@pytest.mark.parametrize("loss", ["bce", "squared-hinge"])
def test_every_label_is_learned_on_or_the_shortlist_alone(encoder, loss):
    # a sum over more labels is larger
    brief = {"tune_loss": loss, "tune_beam": 1, "learning_rate": 1e-6, "head_learning_rate": 1e-6}
    every, few = (
        losses_at_the_labels(encoder, tune_shortlist=which, **brief) for which in ("all", "beam")
    )
    assert every[0] > 1.2 * few[0]


class Names(Reporter):
    def __init__(self):
        self.names = []

    def step(self, name, total=None):
        self.names.append(name)
        return super().step(name, total)


def test_where_all_nodes_are_learned_on_none_are_predicted(encoder):
    steps = {}
    for which in ("all", "beam"):
        report = Names()
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, tune_shortlist=which)
        model.fit(*documents(), report=report)
        steps[which] = report.names
    assert "matcher, level 1 of 2" in steps["beam"]
    assert not [name for name in steps["all"] if name.startswith("matcher")]
    # texts are read while torch and the model are being imported
    assert (
        steps["all"].index("tokenizer") < steps["all"].index("tokens") < steps["all"].index("encoder")
    )


def test_a_model_with_fewer_places_than_its_tokenizer_says_reads_less(tmp_path):
    encoder = save_encoder(tmp_path / "short", max_position_embeddings=8)
    texts, labels = documents()
    texts = [" ".join([text] * 5) for text in texts]
    for choice in ({}, {"fine_tune": False}):
        run = tmp_path / f"run{len(choice)}"
        settings = {"encoder": encoder, **BRIEF, "max_length": 32, **choice}
        model = treetop.XRTransformer(**settings).fit(texts, labels, run=run)
        assert model.encoder_.max_length == 8
        assert np.diff(read_arrays(run / "shorter-tokens.safetensors")["ptr"]).max() == 8
        assert model.predict(texts[:1])[0]
        written = [(path.name, path.stat().st_mtime_ns) for path in sorted(run.glob("*tokens*"))]
        model.fit(texts, labels, run=run, resume=True)
        again = [(path.name, path.stat().st_mtime_ns) for path in sorted(run.glob("*tokens*"))]
        assert again == written


def test_a_share_of_the_heads_scores_is_in_the_labels(encoder, fitted):
    without = treetop.XRTransformer(encoder=encoder, **BRIEF, head_share=0.0).fit(*documents())
    texts = documents(20, seed=3)[0]
    assert not same(fitted.predict_scores(texts, 5), without.predict_scores(texts, 5))
    for ranker, plain in zip(fitted.rankers_, without.rankers_, strict=True):
        cells, own = (np.sort(np.abs(one.weights.full).ravel()) for one in (ranker, plain))
        np.testing.assert_allclose(cells, np.float32(0.85) * own, rtol=1e-5)


def test_labels_left_to_the_ranker_have_no_head(encoder):
    coarse = {**BRIEF, "first_tree": "6", "budget": "8 steps"}
    with_share, without = (
        treetop.XRTransformer(encoder=encoder, **coarse, head_share=share).fit(*documents())
        for share in (0.15, 0.0)
    )
    texts = documents(20, seed=3)[0]
    assert same(with_share.predict_scores(texts, 5), without.predict_scores(texts, 5))


def test_bootstrapping_lowers_the_loss_a_level_begins_with(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for bootstrap in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap=bootstrap, dropout=0.0)
        model.fit(*documents())
        first[bootstrap] = next(e["loss"] for e in model.history_ if e["level"] == 2)
    assert first[True] < first[False]


def test_the_first_level_can_be_bootstrapped_too(encoder, monkeypatch):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 1)
    first = {}
    for wanted in (True, False):
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, bootstrap_first=wanted, dropout=0.0)
        first[wanted] = model.fit(*documents()).history_[0]["loss"]
    assert first[True] < first[False]


class Notes(Reporter):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


def test_out_of_memory_halves_the_batch_says_so_and_learns_the_same_gradients(encoder, monkeypatch):
    real = TrainingStep.gradients

    def tight(self, rows):
        if self.part_size > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, rows)

    whole = treetop.XRTransformer(encoder=encoder, **BRIEF, dropout=0.0, precision="fp32")
    whole.fit(*documents())
    monkeypatch.setattr(TrainingStep, "gradients", tight)
    said = Notes()
    parts = treetop.XRTransformer(encoder=encoder, **BRIEF, dropout=0.0, precision="fp32")
    parts.fit(*documents(), report=said)
    assert said.notes[:2] == [
        "out of memory: batches of 16 go in parts of 8 from here on",
        "out of memory: batches of 16 go in parts of 4 from here on",
    ]
    np.testing.assert_allclose(
        [e["loss"] for e in parts.history_], [e["loss"] for e in whole.history_], rtol=1e-3
    )


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(encoder, monkeypatch, tmp_path):
    monkeypatch.setattr(trainer_module, "STEPS_BETWEEN_FIGURES", 2)
    real = LevelTrainer.train_on

    def broken(self, rows):
        real(self, rows)
        if self.task.level == 2 and self.step == 7:
            self.losses[6] = float("nan")

    monkeypatch.setattr(LevelTrainer, "train_on", broken)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, checkpoint_minutes=1e-9)
    with pytest.raises(TreetopError) as error:
        model.fit(*documents(), run=tmp_path / "run")
    assert "not a number at level 2, step 7 of 12, learning rate" in str(error.value)
    monkeypatch.setattr(LevelTrainer, "train_on", real)
    model.fit(*documents(), run=tmp_path / "run", resume=True)
    plain = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())
    texts, _ = documents(20, seed=1)
    assert same(model.predict_scores(texts, 5), plain.predict_scores(texts, 5))


def test_a_gpu_that_fails_stops_or_falls_back_if_asked(encoder, monkeypatch, tmp_path):
    real = LevelTrainer.train_on
    failed = []

    def vanishing(self, rows):
        if not failed and self.task.level == 2:
            failed.append(1)
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")
        real(self, rows)

    monkeypatch.setattr(LevelTrainer, "train_on", vanishing)
    with pytest.raises(TreetopError, match=r"the GPU failed .CUDA error.* run again with --resume"):
        treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())
    failed.clear()
    said = Notes()
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, fallback=True)
    model.fit(*documents(), report=said, run=tmp_path / "run")
    assert said.notes == ["the GPU failed: continuing on the CPU"]
    assert model.score(*documents()) > 0


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({}, (np.eye(3), [["a"]] * 3), "reads texts, not a feature matrix"),
        ({}, (["a"], [["x"], ["y"]]), "1 documents but labels for 2"),
        ({"budget": "3 weeks"}, (["a"], [["x"]]), "budget '3 weeks' is not understood"),
        ({"dropout": 1.0}, (["a"], [["x"]]), "dropout is 1.0: it must be below 1"),
        ({"pooling": "max"}, (["a"], [["x"]]), "pooling is 'max': choose one of auto, mean"),
        ({"validation": 0.01}, (["a b"] * 10, [["x"]] * 10), "leaves none on one side"),
        ({"tune_lambda": 0}, (["a b"], [["x"]]), "tune_lambda is 0: it must be above 0"),
        ({"seed": -1}, (["a b"], [["x"]]), "seed is -1: it must be at least 0"),
        ({"budget": "1.2.3 steps"}, (["a b"], [["x"]]), "is not understood"),
        ({"score_transform": "x"}, (["a b"], [["x"]]), "score_transform is 'x': choose one of auto"),
        ({}, (["a b", None], [["x"], ["y"]]), "document 1 is of type NoneType"),
        ({"encoder": "no/such"}, (["a b"], [["x"]]), "encoder 'no/such'"),
        ({"device": "warp"}, (["a b"], [["x"]]), "device 'warp' cannot be used"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(encoder, settings, fit, message):
    with pytest.raises(TreetopError) as error:
        treetop.XRTransformer(**{"encoder": encoder, **settings}).fit(*fit)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_one_label_and_fewer_documents_than_the_batch(encoder):
    model = treetop.XRTransformer(encoder=encoder, budget="2 epochs", max_length=8)
    model.fit(["red apple", "green pear"], [["fruit"], ["fruit"]])
    assert model.predict(["blue sky"])[0][0][0] == "fruit"


def test_scikit_learn_clones_it(encoder):
    from sklearn.base import clone

    model = clone(treetop.XRTransformer(encoder=encoder, batch=7))
    assert model.get_params()["batch"] == 7
    assert repr(model).startswith("XRTransformer(encoder=")


def test_tensorboard_gets_the_losses(encoder, tmp_path):
    pytest.importorskip("tensorboard")
    treetop.XRTransformer(encoder=encoder, **BRIEF, tensorboard=str(tmp_path / "board")).fit(
        *documents()
    )
    assert any((tmp_path / "board").iterdir())


def test_settings_changed_after_fit_do_not_touch_the_model(encoder, tmp_path):
    texts, _ = documents(10, seed=1)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF, words=False, center=False)
    model.fit(*documents())
    before = model.predict_scores(texts, 5)
    model.set_params(words=True, center=True, dense_weight=3.0)
    assert same(model.predict_scores(texts, 5), before)
    model.save(tmp_path / "model")
    assert same(treetop.load(str(tmp_path / "model")).predict_scores(texts, 5), before)


def test_a_model_carries_no_device_to_another_machine(encoder, tmp_path):
    settings = {**BRIEF, "fine_tune": False, "device": "cpu", "threads": 2}
    model = treetop.XRTransformer(encoder=encoder, **settings).fit(*documents())
    model.save(tmp_path / "model")
    loaded = treetop.load(str(tmp_path / "model"))
    assert {name: loaded.get_params()[name] for name in ("device", "threads", "precision")} == {
        "device": "auto",
        "threads": None,
        "precision": "auto",
    }
    assert same(loaded.predict_scores(["red sky"], 5), model.predict_scores(["red sky"], 5))
    with pytest.raises(TreetopError, match=r"device 'cuda:7' cannot be used .*: try device=cpu"):
        loaded.predict(["red sky"], runtime=treetop.Runtime(device="cuda:7"))
    with pytest.raises(TreetopError, match="device 'cuda:7' cannot be used"):
        model.predict(["red sky"], runtime=treetop.Runtime(device="cuda:7"))


def test_after_fit_no_dropout_is_left(fitted):
    assert not fitted.encoder_.training


def test_validation_takes_what_fit_takes_and_says_what_does_not_fit(encoder):
    texts, labels = documents(32)
    held, held_labels = documents(8, seed=5)
    model = treetop.XRTransformer(encoder=encoder, **BRIEF)
    first = np.array([line[0] for line in held_labels])
    model.fit(texts, labels, validation=(held, first))
    known = treetop.XRTransformer(encoder=encoder, **BRIEF)
    known.fit(texts, labels, validation=(held, [[*line, "unknown"] for line in held_labels]))
    for wrong, message in [
        ((held, held_labels[:3]), "validation: 8 documents but labels for 3"),
        ((held, list(first)), "give a list of names"),
        ((held, np.ones((8, 2))), "validation labels: 2 columns"),
        ((held, [["unknown"]] * 8), "validation: no document has a label that the training data has"),
    ]:
        with pytest.raises(TreetopError, match=message):
            model.fit(texts, labels, validation=wrong)


def test_memory_that_is_never_enough_is_said_in_one_line(encoder, monkeypatch):
    def full(self, rows):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate\nmany lines")

    monkeypatch.setattr(TrainingStep, "gradients", full)
    with pytest.raises(TreetopError, match="memory is full: choose a smaller batch"):
        treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents())


def test_half_a_surrogate_pair_is_read(fitted):
    assert fitted.predict(["red \ud800 sky"], k=2)[0]


# Resuming

STAGES = ["text-features", "first-tree", "tokens", "level-1", "level-2", "rankers"]


def done_again(folder, fit):
    """Names of the stages whose files `fit` wrote anew."""
    before = {name: (folder / f"{name}.safetensors").stat().st_mtime_ns for name in STAGES}
    fit()
    return [
        name for name in STAGES if (folder / f"{name}.safetensors").stat().st_mtime_ns != before[name]
    ]


def test_a_changed_setting_reruns_exactly_what_depends_on_it(encoder, tmp_path):
    folder = tmp_path / "run"

    def fit(**changes):
        settings = {"encoder": encoder, **BRIEF, **changes}
        treetop.XRTransformer(**settings).fit(*documents(), run=folder, resume=True)

    fit()
    cases = [
        ({}, []),
        ({"trees": 4}, ["rankers"]),
        ({"beam": 20}, ["rankers"]),
        ({"lambda_": 1.0, "dense_weight": 1.0, "threshold": 0.5}, ["rankers"]),
        ({"learning_rate": 1e-3}, ["level-1", "level-2", "rankers"]),
        ({"max_length": 8}, ["tokens", "level-1", "level-2", "rankers"]),
        ({"first_tree": "5-L"}, ["first-tree", "level-1", "level-2", "rankers"]),
        ({"ngrams": "word:1"}, ["text-features", "first-tree", "level-1", "level-2", "rankers"]),
        ({"threads": 1, "checkpoint_minutes": 3.0}, None),
    ]
    for changes, expected in cases:
        fit()
        again = done_again(folder, lambda changes=changes: fit(**changes))
        assert again == (expected or []), changes


def test_another_encoder_at_the_same_place_is_noticed(tmp_path):
    folder, place = tmp_path / "run", tmp_path / "encoder"
    save_encoder(place)
    model = treetop.XRTransformer(encoder=str(place), **BRIEF, fine_tune=False)
    model.fit(*documents(), run=folder)
    written = (folder / "embedding.safetensors").stat().st_mtime_ns
    model.fit(*documents(), run=folder, resume=True)
    assert (folder / "embedding.safetensors").stat().st_mtime_ns == written
    save_encoder(place, seed=1)
    model.fit(*documents(), run=folder, resume=True)
    assert (folder / "embedding.safetensors").stat().st_mtime_ns != written


def test_an_earlier_run_is_continued_or_overwritten_as_asked(encoder, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    model = treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents(), run=folder)
    with pytest.raises(TreetopError, match="this run began on other data"):
        model.fit(*documents(60), run=folder, resume=True)
    written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert set(written) == {f"{name}.safetensors" for name in STAGES} | {"run.json", "history.jsonl"}
    with monkeypatch.context() as patched:
        patched.setattr("treetop.estimators.read_documents", None)  # asked before any work is done
        with pytest.raises(TreetopError, match=r"holds an earlier run.*resume=True.*overwrite=True"):
            model.fit(*documents(60), run=folder)
        with pytest.raises(TreetopError, match="resume or overwrite, not both"):
            model.fit(*documents(60), resume=True, overwrite=True)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == written
    model.fit(*documents(60), run=folder, overwrite=True)
    again = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert set(again) == set(written)
    assert all(again[name] != written[name] for name in written)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    with pytest.raises(TreetopError, match="is not the folder of a run"):
        treetop.XRTransformer(encoder=encoder, **BRIEF).fit(*documents(), run=tmp_path / "other")


SCRIPT = """
import sys, time
import treetop
from tests.tiny import documents
from treetop.training.finetune import trainer
trainer.STEPS_BETWEEN_FIGURES = 3
folder, encoder, model = sys.argv[1:]
settings = dict(encoder=encoder, max_length=16, batch=16, budget="40/60 steps", first_tree="6-L",
                checkpoint_minutes=1e-9, trees=2, threads=2)
print("ready", flush=True)
treetop.XRTransformer(**settings).fit(
    *documents(96), validation=documents(32, seed=5), run=folder, resume=True).save(model)
"""


def start(folder, encoder, model):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), encoder, str(model)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
    )
    assert process.stdout.readline().strip() == b"ready"
    return process


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_model(encoder, tmp_path):
    assert start(tmp_path / "whole", encoder, tmp_path / "a").wait() == 0
    chosen = random.Random(7)
    kills = 0
    while True:
        process = start(tmp_path / "broken", encoder, tmp_path / "b")
        try:
            code = process.wait(timeout=chosen.uniform(0.3, 2.5) if kills < 6 else None)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            continue
        assert code == 0
        break
    assert kills > 0
    for file in sorted((tmp_path / "a").rglob("*.safetensors")):
        twin = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert file.read_bytes() == twin.read_bytes(), file.name
