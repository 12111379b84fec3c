"""The presets of the paper, field by field.

Source: xr-transformer.tex, the table of hyperparameters in the appendix (label table:hyperparameters)
with the paragraph above it, Algorithm 2, equations 4 to 11, and "float32 precision" in the experiments.
"""

import pytest

import treetop
from treetop.settings import auto, presets
from treetop.settings.making import TRANSFORMER, make_settings
from treetop.settings.notation import parse_budget
from treetop.settings.schema import TransformerSettings

# Dataset: HLT_prelim, HLT_refine, lr_max, n_step, N_x, α ("--": None), λ. The last level of a tree is
# that of the labels where it equals their number.
TABLE = """
eurlex-4k      16-256-3956        4-32-256-3956      5e-5   2400  128  1.0    0.5
wiki10-31k     128-2048-30938     8-128-2048-30938   1e-4   4000  256  0.25   0.25
amazoncat-13k  128-1024-13330     128-1024-13330     1e-4  45000  256  2.0    2.0
wiki-500k      64-512-4096-32768  8-256-8192-501070  1e-4  60000  128  0.25   0.25
amazon-670k    128-2048-32768     8-256-8192-670091  1e-4  20000  128  --     1.0
amazon-3m      128-2048-32768     8-256-8192-2812281 1e-4  30000  128  0.125  0.125
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
# What the text says of all data sets.
TEXT = {
    "batch": 256,  # "a batch size of 32 per GPU (256 total)"
    "dropout": 0.1,  # "dropout probability is set to be 0.1 for all models"
    "bootstrap": True,  # "used for all fine-tuning problems except for the root layer"
    "bootstrap_first": False,
    "head_learning_rate": None,  # one lr_max
    "precision": "fp32",  # "all the experiments are conducted with float32 precision"
    "shortlist": "both",  # equation 8
    "tune_shortlist": "beam",
    "tune_weighting": "relevance",  # R̂ and λ of equation 9
    "relevance_norm": "l1",
    "dense_weight": 1.0,  # equation 10: both halves have length 1
    "center": False,
    "words": True,
    "label_features": "pifa",  # equation 4
    "tree_features": None,
    "balanced": True,  # "balanced k-means"
    "trees": 1,  # Algorithm 2
    "flat_labels": 0,
    "head_share": 0.0,
    "prune_below": 0.0,
    "max_weights": None,
    "max_features": None,
    "fine_tune": True,
    "competition": False,
    "calibration": False,
    "loss": "squared-hinge",
    "tune_loss": "squared-hinge",
}
# Settings that no preset of the paper pins, each with the reason.
NOT_PINNED = {
    "sublinear": "the paper reads ready TF-IDF features",
    "stop_words": "the same",
    "lowercase": "the same",
    "shortest_word": "the same",
    "seed": "it is that of a member of the ensemble",
    "optimize": "without a competition nothing is optimized",
    "keep_documents": "it does not change predictions",
    "validate_every": "nothing is held out",
}


def levels_of(sizes, labels):
    return [size for size in sizes if size < labels]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_preset_has_the_papers_table_field_by_field(row):
    name, prelim, refined, rate, steps, tokens, alpha, lambda_ = row
    values = presets.settings_of(name)
    settings = make_settings({n: v for n, v in values.items() if n != "precision"}, TransformerSettings)
    labels = int(refined.split("-")[-1])
    sizes, tuned = auto.first_sizes(settings.first_tree, labels, settings.largest_level)
    assert "-".join(map(str, (*sizes, labels)[:tuned])) == prelim
    assert "-".join(map(str, [*auto.refined_sizes(settings, labels), labels])) == refined
    assert settings.learning_rate == float(rate)
    assert sum(auto.steps_by_level(settings.budget, tuned, 10**6, settings.batch)) == int(steps)
    assert settings.max_length == int(tokens)
    assert settings.cost_sensitive == settings.tune_cost_sensitive == (alpha != "--")
    assert settings.alpha == settings.tune_alpha == (1.0 if alpha == "--" else float(alpha))
    assert settings.lambda_ == settings.tune_lambda == float(lambda_)
    for setting, value in TEXT.items():
        assert values[setting] == value, setting
    auto.check_levels(settings, labels)
    # What is left open by default follows the ranker's own costs: equations 9 and 11 have one λ, one α.
    for part in ("bootstrap", "matcher"):
        for cost in ("lambda", "alpha"):
            assert values[f"{part}_{cost}"] is None


def test_every_other_setting_is_pinned():
    pinned = set(presets.settings_of("paper-transformer"))
    method = set(TRANSFORMER.defaults) - set(TRANSFORMER.runtime_options) | {"precision"}
    assert method - pinned == set(NOT_PINNED)


def test_members_of_the_ensembles():
    """BERT, RoBERTa and XLNet on the three smaller data sets, three times BERT on the others."""
    for name in ("eurlex-4k", "wiki10-31k", "amazoncat-13k"):
        members, _ = presets.ensemble_of(name)
        chosen = [{**presets.settings_of(name), **member} for member in members]
        assert [(one["encoder"], one["pooling"]) for one in chosen] == [
            ("bert-base-uncased", "pooler"),
            ("roberta-base", "pooler"),
            ("xlnet-base-cased", "summary"),
        ]
    for name in ("wiki-500k", "amazon-670k", "amazon-3m"):
        assert [member["seed"] for member in presets.ensemble_of(name)[0]] == [0, 1, 2]


def test_a_preset_may_set_the_precision():
    assert treetop.from_preset("paper-transformer").get_params()["precision"] == "fp32"
    assert treetop.from_preset("eurlex-4k", precision="bf16").get_params()["precision"] == "bf16"


@pytest.mark.parametrize("total", [2400, 4000, 20_000, 30_000, 1_000_001])
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_the_steps_of_the_levels_add_up_exactly(total, levels):
    steps = auto.steps_by_level(f"{total} steps", levels, 1000, 32)
    assert sum(steps) == total
    assert steps == sorted(steps)


def test_a_figure_for_every_level():
    assert auto.steps_by_level("10/... steps", 3, 1000, 32) == [10, 10, 10]
    assert auto.steps_by_level("10/20/... steps", 4, 1000, 32) == [10, 20, 20, 20]
    assert parse_budget("2/... epochs") == ([2.0], "epochs", True)


def test_the_papers_preset_trains(encoder):
    pytest.importorskip("torch")
    from tests.training.finetune.test_curriculum import texts_and_labels

    small = {"first_tree": "3-L", "tree": "2-4-L", "budget": "3/3 steps", "batch": 16, "max_length": 16}
    model = treetop.from_preset("paper-transformer", encoder=str(encoder), warmup="1 steps", **small)
    texts, labels = texts_and_labels(96, seed=0)
    model.fit(texts, labels)
    assert [figures["steps"] for figures in model.history_] == [3, 3]
    (ranker,) = model.rankers_
    assert [at.score_transform for at in ranker.settings.by_level(3)] == [
        "l3-hinge",
        "l3-hinge",
        "identity",
    ]
    assert ranker.weights.biases.any()
    assert model.evaluate(texts, labels)["P@1"] > 0.8
