"""Reproduces the tables of the paper: six data sets, three models each, with one command.

    python benchmarks/paper.py --out paper [--recipes pecos] [--dataset eurlex-4k …]

For each data set: downloads the archive that the authors published (raw texts, and the TF-IDF
features of AttentionXML), trains each model of the ensemble with the preset of the data set, saves
it, and measures it and the ensemble on the test documents. Prints the paper's tables, with its
figures in parentheses. Needs a GPU, and a network for data and encoders.

Everything is kept in the folder `--out`. The same command continues after an interruption: finished
models are not trained again, and an unfinished one resumes at its last checkpoint.

`--recipes paper` (the default) takes the hyperparameters that the paper lists, `pecos` those of the
`params.json` that the authors published. `--set` replaces settings, to try the script at a smaller
size; the output then says so.
"""

import argparse
import json
import time
from pathlib import Path

from paper_tables import tables
from transformer import PeakMemory, one_text_ms, versions

import treetop
from treetop.data import open_data
from treetop.data.download import ARCHIVE, NAMES, get_dataset
from treetop.runtime.progress import TimedReporter, reporter
from treetop.settings.notation import parse_assignment
from treetop.settings.presets import ensemble_of, settings_of

RANKS = (1, 3, 5)


def members(dataset, recipes):
    """Return the settings of each model of the ensemble by name, and how their scores are combined."""
    preset = dataset if recipes == "paper" else f"{dataset}-pecos"
    changes, combine = ensemble_of(preset)
    common = settings_of(preset)
    return {f"model-{number}": {**common, **own} for number, own in enumerate(changes, 1)}, combine


class Results:
    """What was measured so far; written to a JSON file after each change."""

    def __init__(self, path):
        self.path = path
        self.content = json.loads(path.read_text()) if path.is_file() else {}

    def of(self, dataset):
        return self.content.setdefault(dataset, {"members": {}})

    def save(self):
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.content, indent=2) + "\n")
        part.replace(self.path)


def trained_model(folder, settings, train):
    """Train a model, or load it if an earlier call has finished it.

    The seconds of interrupted calls are kept and added, so that the training time is that of all.
    """
    clock = folder / "seconds.json"
    spent = json.loads(clock.read_text()) if clock.is_file() else {"training": 0.0, "peak_gb": 0.0}
    if (folder / "model").is_dir():
        return treetop.load(folder / "model"), spent
    folder.mkdir(parents=True, exist_ok=True)
    report = TimedReporter(reporter())
    started = time.perf_counter()
    try:
        with PeakMemory() as memory:
            model = treetop.XRTransformer(**settings)
            model.fit(
                train.texts,
                train.given_labels,
                features=train.X,
                run=folder / "run",
                resume=(folder / "run").is_dir(),
                report=report,
            )
    finally:
        spent["training"] += time.perf_counter() - started
        spent["peak_gb"] = max(spent["peak_gb"], memory.peak)
        clock.write_text(json.dumps(spent) + "\n")
    model.save(folder / "model")
    return model, spent


def measured(model, test, dataset):
    """Return the metrics of the paper on the test documents."""
    result = model.evaluate(test.texts, test.given_labels, RANKS, features=test.X, propensity=dataset)
    return {name: result[name] for name in (f"{kind}@{k}" for kind in ("P", "R", "PSP") for k in RANKS)}


def run_dataset(dataset, given, results):
    """Download a data set, then train and measure its models and their ensemble."""
    data = open_data(get_dataset(dataset, given.data, given.address), None, None)
    train, test = data.split("train"), data.split("test")
    settings, combine = members(dataset, given.recipes)
    changes = dict(map(parse_assignment, given.set))
    result, models = results.of(dataset), []
    result |= {"recipes": given.recipes, "combine": combine, "changed": changes, **versions()}
    for name, own in settings.items():
        folder = given.out / given.recipes / dataset / name
        model, spent = trained_model(folder, {**own, **changes}, train)
        models.append(model)
        if name not in result["members"]:
            result["members"][name] = {
                "settings": {**own, **changes},
                "training_seconds": spent["training"],
                "peak_memory_gb": spent["peak_gb"],
                "one_text_ms": one_text_ms(model, test.texts, test.X),
                "metrics": measured(model, test, dataset),
            }
            results.save()
    if "ensemble" not in result:
        result["ensemble"] = measured(treetop.Ensemble(models, combine), test, dataset)
        results.save()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", action="append", choices=NAMES, help="by default all six")
    parser.add_argument("--recipes", choices=("paper", "pecos"), default="paper")
    parser.add_argument("--data", type=Path, help="folder of the data sets; by default OUT/data")
    parser.add_argument("--address", default=ARCHIVE, help="address of the archives")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, for all models")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.data = given.data or given.out / "data"
    results = Results(given.out / f"{given.recipes}.json")
    for dataset in given.dataset or NAMES:
        run_dataset(dataset, given, results)
        changed = results.of(dataset)["changed"]
        if changed:
            print(f"{dataset}: settings differ from the recipe: {changed}")
    text = tables(results.content)
    (given.out / f"{given.recipes}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
