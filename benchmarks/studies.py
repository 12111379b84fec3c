"""Repeats the paper's studies: its Tables 4, 5 and 6 and its Figure 2.

    python benchmarks/studies.py DATA --preset eurlex-4k --encoder FOLDER --seeds 0 1 2 \
        --set budget="600 steps" --set batch=64 --run FOLDER --out benchmarks/results/studies.json

All variants use the paper's preset of a data set of similar size, in which `--encoder` and `--set`
replace what the machine cannot afford: the results list what was replaced. All fine-tuned variants
are trained for the same total number of steps, and evaluated on the split dev or on a share of the
training documents (`--hold-out`): nothing is chosen on a test set. Stages that variants share run
once (`--run`), so that the times are those of the other stages. `--only NAME` runs one study or
variant. Results of several data sets and seeds are kept in the same file, each with its machine,
versions and commit; those that it contains are not repeated.
"""

import argparse
import json
import time
from pathlib import Path

from commits import commit_of
from transformer import measure, splits, versions

import treetop
from treetop.data import open_data
from treetop.kernels import common_kernels
from treetop.kernels.warming import warm_up
from treetop.runtime.progress import TimedReporter
from treetop.settings import presets
from treetop.settings.making import PARAMETERS
from treetop.settings.notation import parse_assignment

KEPT = ("P@1", "P@3", "P@5", "R@1", "R@3", "R@5", "RP@5", "nDCG@5", "PSP@5")
CLUSTER_SIZES = (4, 16, 64, 256)
LINEAR, TRANSFORMER = "xr-linear", "xr-transformer"
WITHOUT_COSTS = {"cost_sensitive": False}
# What each study compares: names of variants.
STUDIES = {
    "levels": (
        "XR-Linear",
        "a single level of clusters",
        "all labels at once, without clusters",
        "XR-Transformer without bootstrapping",
        "XR-Transformer",
    ),
    "features": ("Φ_tfidf", "Φ_dnn, frozen", "Φ_cat, frozen", "Φ_dnn", "Φ_cat"),
    "costs": (
        "XR-Linear without R̂",
        "XR-Linear with R̂",
        "XR-Transformer without R̂",
        "XR-Transformer, R̂ in fine-tuning only",
        "XR-Transformer with R̂",
    ),
    "resolution": tuple(
        f"{size}: {features}"
        for size in (*CLUSTER_SIZES, "all levels")
        for features in ("Φ_cat", "Φ_dnn")
    ),
}


def linear_settings(settings):
    """Return those settings of a preset of XR-Transformer that XR-Linear has too."""
    return {name: settings[name] for name in PARAMETERS[LINEAR].defaults if name in settings}


def variants(settings, labels):
    """Return the kind of model and the settings of each variant by name."""
    finest = settings["first_tree"].split("-")[-2]
    without = {**settings, **WITHOUT_COSTS, "tune_cost_sensitive": False}
    dense, frozen = {"words": False}, {"fine_tune": False}
    made = {
        "XR-Linear": (LINEAR, linear_settings(settings)),
        "a single level of clusters": (TRANSFORMER, {**settings, "first_tree": finest}),
        "all labels at once, without clusters": (TRANSFORMER, {**settings, "first_tree": "flat"}),
        "XR-Transformer without bootstrapping": (TRANSFORMER, {**settings, "bootstrap": False}),
        "XR-Transformer": (TRANSFORMER, settings),
        "Φ_tfidf": (LINEAR, linear_settings(settings)),
        "Φ_dnn, frozen": (TRANSFORMER, {**settings, **dense, **frozen}),
        "Φ_cat, frozen": (TRANSFORMER, {**settings, **frozen}),
        "Φ_dnn": (TRANSFORMER, {**settings, **dense}),
        "Φ_cat": (TRANSFORMER, settings),
        "XR-Linear without R̂": (LINEAR, linear_settings({**settings, **WITHOUT_COSTS})),
        "XR-Linear with R̂": (LINEAR, linear_settings(settings)),
        "XR-Transformer without R̂": (TRANSFORMER, without),
        "XR-Transformer, R̂ in fine-tuning only": (TRANSFORMER, {**settings, **WITHOUT_COSTS}),
        "XR-Transformer with R̂": (TRANSFORMER, settings),
        "all levels: Φ_cat": (TRANSFORMER, settings),
        "all levels: Φ_dnn": (TRANSFORMER, {**settings, **dense}),
    }
    for size in CLUSTER_SIZES:
        single = {**settings, "first_tree": str(max(2, labels // size))}
        made[f"{size}: Φ_cat"] = (TRANSFORMER, single)
        made[f"{size}: Φ_dnn"] = (TRANSFORMER, {**single, **dense})
    return made


def run(kind, settings, whole, split, folder):
    """Train one variant and measure it; the times are those of the stages that ran."""
    report = TimedReporter()
    started = time.perf_counter()
    if kind == LINEAR:
        model = treetop.XRLinear(**settings).fit(whole.texts, whole.labels, report=report)
    else:
        model = treetop.XRTransformer(**settings)
        model.fit(whole.texts, whole.labels, report=report, run=folder, resume=folder.is_dir())
    seconds = time.perf_counter() - started
    result = measure(model, split)
    return {
        "seconds": seconds,
        "stages": {name: round(value, 2) for name, value in report.seconds.items()},
        "metrics": {name: result[name] for name in KEPT},
    }


def asked_for(name, only):
    """Whether a variant is asked for, by its name or by a study that compares it."""
    return not only or any(name == one or name in STUDIES.get(one, ()) for one in only)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", required=True, help="of the paper, such as eurlex-4k")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE replaces a setting")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--split", default="dev")
    parser.add_argument("--hold-out", type=float, default=0.0)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--only", action="append", help="a study or a variant")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--commit", help="of treetop; by default that of this checkout")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    warm_up(common_kernels())
    whole, split = splits(open_data(given.data, None, None), given)
    labels = len({name for line in whole.labels for name in line})
    published = presets.settings_of(given.preset)
    replaced = {"encoder": given.encoder, "pooling": "auto", **dict(map(parse_assignment, given.set))}
    content = json.loads(given.out.read_text()) if given.out.is_file() else {}
    result = content.setdefault(given.data.name, {})
    result |= {
        "preset": given.preset,
        "replaced": {name: value for name, value in replaced.items() if published[name] != value},
        "evaluated_on": f"{100 * given.hold_out:g} % of train" if given.hold_out else given.split,
        "documents": len(whole.texts),
        "labels": labels,
    }
    origin = {"commit": given.commit or commit_of(Path(__file__).parent.parent), **versions()}
    measured = result.setdefault("variants", {})
    for seed in given.seeds:
        done = {}
        for name, (kind, own) in variants({**published, **replaced, "seed": seed}, labels).items():
            known = measured.setdefault(name, {})
            if str(seed) in known or not asked_for(name, given.only):
                continue
            key = json.dumps([kind, own], sort_keys=True)
            if key not in done:
                done[key] = {**run(kind, own, whole, split, given.run / str(seed)), **origin}
            known[str(seed)] = done[key]
            figures = (f"{m} {100 * done[key]['metrics'][m]:.2f}" for m in ("P@1", "P@3", "P@5"))
            print(
                f"seed {seed}, {name}: {'  '.join(figures)}  {done[key]['seconds']:.1f} s", flush=True
            )
            given.out.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
