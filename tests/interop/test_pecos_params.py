"""Every key of PECOS's params.json becomes settings or has a reason, and the settings train a model."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import treetop
from tests.interop.recipe import recipe
from treetop.errors import TreetopError
from treetop.interop.pecos_params import leaves, read_params
from treetop.settings import auto, presets
from treetop.settings.making import check_parameters, make_settings
from treetop.settings.schema import LinearSettings, TransformerSettings

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "pecos-recipes"
RECIPES = sorted(OFFICIAL.glob("*.json"))
LABELS = {
    "eurlex-4k": 3_956,
    "wiki10-31k": 30_938,
    "amazoncat-13k": 13_330,
    "wiki-500k": 501_070,
    "amazon-670k": 670_091,
    "amazon-3m": 2_812_281,
}


def changed(tmp_path: Path, *changes: tuple[str, object]) -> Path:
    """Write the recipe with some values replaced; a number in a path is a level."""
    content = recipe()
    for path, value in changes:
        *above, last = path.split(".")
        inner = content
        for name in above:
            inner = inner[int(name)] if name.isdecimal() else inner[name]
        inner[last] = value
    (tmp_path / "params.json").write_text(json.dumps(content))
    return tmp_path / "params.json"


def keys_of(path: Path) -> Iterator[str]:
    return (".".join(names) for names, _ in leaves(json.loads(path.read_text()), ()))


def assert_accounted(path: Path) -> None:
    """Each key is honoured by settings that exist, or has a reason; none is both."""
    imported = read_params(path)
    honoured, ignored = imported.honoured, imported.ignored
    assert sorted([*honoured, *ignored]) == sorted(keys_of(path))
    for names in honoured.values():
        assert names
        assert set(names) <= set(imported.settings) | {"relevance_norm"}
    assert all(len(reason) > 10 for reason in ignored.values())
    check_parameters(imported.model, imported.settings)


def test_every_key_of_a_recipe_is_accounted_for(tmp_path):
    assert_accounted(changed(tmp_path))
    here = Path(__file__).parent / "pecos"
    assert_accounted(here / "xlinear-params.json")
    assert_accounted(here / "xtransformer-params.json")


def test_values_by_level_stay_by_level(tmp_path):
    settings = read_params(changed(tmp_path), devices=8).settings
    expected = {
        "first_tree": "pecos:nr_splits=4,min_codes=4,max_leaf_size=4",
        "tree": "pecos:nr_splits=2,min_codes=2,max_leaf_size=4",
        "budget": "4/6 steps",
        "warmup": "2 steps",
        "batch": 64,
        "tune_beam": "2/5",
        "beam": "2/3",
        "score_transform": "l3-hinge/l3-hinge/identity",
        "shortlist": "true/true/both",
        "bias": "1.0/0.5/1.0",
        "lambda_": "0.25/0.5/0.125",
        "alpha": "0.5/2.0/0.25",
        "cost_sensitive": True,
        "relevance_norm": "l1",
        "tune_loss": "squared-hinge",
        "tune_weighting": "counts",
        "tune_shortlist": "beam",
        "bootstrap": True,
        "bootstrap_weighting": "counts",
        "bootstrap_lambda": 1 / 200,
        "bootstrap_alpha": 1.0,
        "matcher_cost_sensitive": True,
        "matcher_lambda": 0.5,
        "matcher_alpha": 1.0,
        "matcher_prune_below": 0.002,
        "matcher_score_transform": "l3-hinge",
        "prune_below": 0.001,
        "passes": 50,
        "tolerance": 0.05,
        "precision": "fp32",
        "pooling": "pooler",
        "trees": 1,
        "flat_labels": 0,
        "center": False,
        "dense_weight": 1.0,
        "head_share": 0.0,
        "label_features": "pifa-pecos",
        "tree_features": None,
        "ngrams": "word:1-2",
        "head_learning_rate": None,
    }
    assert {name: settings[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("matcher_params_chain.0.max_steps", 6, {"budget": "6/6 steps"}),
        ("matcher_params_chain.1.warmup_steps", 3, {"warmup": "2/3 steps"}),
        ("ranker_params.rel_mode", "disable", {"cost_sensitive": False}),
        ("ranker_params.rel_norm", "no-norm", {"cost_sensitive": True, "relevance_norm": "none"}),
        (
            "refined_indexer_params.max_leaf_size",
            100,
            {"tree": "pecos:nr_splits=2,min_codes=2,max_leaf_size=100"},
        ),
    ],
)
def test_single_keys(tmp_path, key, value, expected):
    settings = read_params(changed(tmp_path, (f"train_params.{key}", value))).settings
    assert {name: settings[name] for name in expected} == expected


def both(key: str, value: object) -> list[tuple[str, object]]:
    return [(f"train_params.matcher_params_chain.{level}.{key}", value) for level in (0, 1)]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("bootstrap_method", "linear", {"bootstrap": True, "bootstrap_weighting": "equal"}),
        ("bootstrap_method", "no-bootstrap", {"bootstrap": False}),
        ("loss_function", "squared-hinge", {"tune_weighting": "equal"}),
        ("negative_sampling", "tfn", {"tune_shortlist": "true"}),
        ("model_shortcut", "xlnet-base-cased", {"pooling": "summary"}),
        ("model_shortcut", "distilbert-base-uncased", {"pooling": "cls"}),
        ("max_steps", 0, {"budget": "10/10 epochs"}),
        ("gradient_accumulation_steps", 4, {"batch": 32}),
    ],
)
def test_keys_of_all_matchers(tmp_path, key, value, expected):
    imported = read_params(changed(tmp_path, *both(key, value)))
    assert {name: imported.settings[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            both("negative_sampling", "man"),
            r"negative_sampling is \['man', 'man'\], which",
        ),
        (both("bootstrap_method", "inherit"), "bootstrap_method is .*, which treetop does not support"),
        (both("learning_rate", 1.0)[:1], r"learning_rate is \[1.0, 0.0002\], which treetop does not"),
        ([("train_params.ranker_params.rel_norm", "l2")], "rel_norm is 'l2', which treetop does not"),
    ],
)
def test_what_treetop_does_not_support_is_an_error(tmp_path, changes, message):
    with pytest.raises(TreetopError, match=message):
        read_params(changed(tmp_path, *changes))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("fix_clustering", True, "the refined tree is always built from Φ_cat; True is not supported"),
        (
            "refined_indexer_params.seed",
            4,
            "seed is that of train_params.preliminary_indexer_params.seed",
        ),
        ("refined_indexer_params.imbalanced_ratio", 0.5, "PECOS silently ignores it too"),
    ],
)
def test_reasons(tmp_path, key, value, reason):
    path = changed(tmp_path, (f"train_params.{key}", value))
    assert read_params(path).ignored[f"train_params.{key}"] == reason


def test_of_steps_and_epochs_one_decides(tmp_path):
    chain = "train_params.matcher_params_chain."
    imported = read_params(changed(tmp_path))
    assert imported.ignored[chain + "num_train_epochs"] == "max_steps decides"
    assert imported.honoured[chain + "max_steps"] == ("budget",)
    imported = read_params(changed(tmp_path, *both("max_steps", 0)))
    assert imported.ignored[chain + "max_steps"] == "num_train_epochs decides"


def test_a_params_json_is_not_a_preset_yet(tmp_path):
    with pytest.raises(
        TreetopError, match=r"params.json of PECOS: convert it first, by treetop import-"
    ):
        treetop.from_preset(str(changed(tmp_path)))


def test_the_skeleton_of_xlinear_gives_a_tree():
    imported = read_params(Path(__file__).parent / "pecos" / "xlinear-params.json")
    settings = make_settings(imported.settings, LinearSettings)
    assert auto.refined_sizes(settings, 2_000) == [2, 32]  # as HierarchicalKMeans does
    texts = [f"word{number} word{number % 7}" for number in range(300)]
    labels = [[f"label{number}"] for number in range(300)]
    model = treetop.XRLinear(**imported.settings, max_df=0.9).fit(texts, labels)
    assert model.rankers_[0].tree.sizes == [4, 300]
    assert model.settings_.tree == "4-L"


def test_a_recipe_trains(tmp_path, encoder):
    pytest.importorskip("torch")
    from tests.training.finetune.test_curriculum import texts_and_labels
    from treetop.cli.exchange import import_from_pecos

    import_from_pecos(changed(tmp_path), tmp_path / "mine.json", None, None)
    model = treetop.from_preset(str(tmp_path / "mine.json"), encoder=str(encoder), ngrams="word:1")
    texts, labels = texts_and_labels(96, seed=0)
    model.fit(texts, labels, run=tmp_path / "run")
    assert [(f["level"], f["steps"]) for f in model.history_] == [(1, 4), (2, 6)]
    assert (model.settings_.first_tree, model.settings_.tree) == ("4-L", "2-4-L")
    ranker = model.rankers_[0]
    assert ranker.tree.sizes == [2, 4, 12]
    assert ranker.beams.tolist() == [2, 3, 3]
    assert not ranker.score.exponentiate  # raw scores of the last level
    model.save(tmp_path / "model")
    again = treetop.load(str(tmp_path / "model"), runtime=treetop.Runtime(precision="fp32"))
    assert again.predict(texts[:3], 3) == model.predict(texts[:3], 3)
    assert model.evaluate(texts, labels)["P@1"] > 0.8


@pytest.mark.skipif(not RECIPES, reason="the official recipes are not here")
@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_the_official_recipes_are_accounted_for_and_fit_their_data(path):
    assert len(RECIPES) == 18
    assert_accounted(path)
    content = json.loads(path.read_text())
    values = read_params(path, devices=8).settings
    del values["precision"]
    settings = make_settings(values, TransformerSettings)
    labels = next(count for name, count in LABELS.items() if path.stem.startswith(name))
    auto.check_levels(settings, labels)
    matchers = content["train_params"]["matcher_params_chain"]
    steps = auto.steps_by_level(settings.budget, len(matchers), 10**6, 256)
    assert steps == [one["max_steps"] for one in matchers]
    assert settings.batch == 256
    # PECOS continues with the weights of its last save: here always those of the last step.
    assert all(one["max_steps"] % one["save_steps"] == 0 for one in matchers)
    rankers = content["train_params"]["ranker_params"]["hlm_args"]["model_chain"]
    by_level = settings.ranker().by_level(len(rankers))
    assert [1 / (2 * at.lambda_) for at in by_level] == pytest.approx([one["Cp"] for one in rankers])
    assert [at.alpha / (2 * at.lambda_) for at in by_level] == pytest.approx(
        [one["Cn"] for one in rankers]
    )


@pytest.mark.skipif(not RECIPES, reason="the official recipes are not here")
def test_the_presets_are_those_of_the_recipes():
    """`benchmarks/pecos_presets.py` has been run since the import last changed."""
    from benchmarks.pecos_presets import presets_from, text_of

    for name, preset in presets_from(OFFICIAL).items():
        assert (presets.FOLDER / f"{name}.json").read_text("utf-8") == text_of(preset), name


def test_presets_of_the_recipes_by_member_and_by_data_set():
    for data in LABELS:
        members, combine = presets.ensemble_of(f"{data}-pecos")
        assert combine in ("softmax", "linear-rank", "sigmoid", "average")
        assert len(members) == 3
        assert presets.settings_of(f"{data}-pecos") == members[0]
    encoders = [member["encoder"] for member in presets.ensemble_of("eurlex-4k-pecos")[0]]
    assert encoders == ["bert-base-uncased", "roberta-base", "xlnet-base-cased"]
    both = [presets.settings_of(name)["tree"] for name in ("amazon-3m", "amazon-3m-bert1-pecos")]
    found = [
        auto.refined_sizes(make_settings({"tree": tree, "flat_labels": 0}), LABELS["amazon-3m"])
        for tree in both
    ]
    assert found == [[8, 256, 8192], [32, 1024, 32768]]  # as printed, and as computed
