"""Writes docs/benchmarks.md, its picture and the table in README.md from results/linear.json."""

import json
import statistics
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "linear.json"
FIRST_RUN = RESULTS.with_name("first_run.json")
DOC = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.png"
MARKS = ("<!-- figures -->", "<!-- end of figures -->")
MEASURES = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "PSP@5")
# Names of the runs in the results, as the page shows them.
TITLES = {
    "treetop, one tree": "treetop (trees=1)",
    "omikuji (words, pairs)": "omikuji (words and pairs)",
    "napkinxc": "napkinXC",
    "sklearn": "scikit-learn (one-vs-rest LinearSVC)",
}
STEPS = {
    "TF-IDF, fit and transform": ("tfidf", lambda run: run["seconds"]["tfidf"], "s", 1),
    "PIFA": ("linear", lambda run: run["seconds"]["pifa"], "s", 1),
    "label tree": ("linear", lambda run: run["seconds"]["tree"], "s", 1),
    "training the rankers": ("linear", lambda run: run["seconds"]["train"], "s", 1),
    "batch prediction, per document": (
        "predict",
        lambda run: run["seconds"]["predict"] / run["documents"],
        "ms",
        1000,
    ),
    "single query": ("predict", lambda run: run["single_ms"], "ms", 1),
    "peak memory of training": ("linear", lambda run: run["peak_mb"], "MB", 1),
}


def median(runs, figure):
    return statistics.median(figure(run) for run in runs)


def show(value):
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def speed_rows(results):
    """(data set, step, treetop, libpecos, ratio, unit)."""
    rows = []
    for name, stages in results.get("speed", {}).items():
        for step, (stage, figure, unit, scale) in STEPS.items():
            ours = median(stages[stage]["treetop"], figure) * scale
            theirs = median(stages[stage]["libpecos"], figure) * scale
            rows.append((name, step, ours, theirs, theirs / ours, unit))
    return rows


def speed_table(results):
    lines = ["| data set | step | treetop | libpecos | ratio |", "| --- | --- | --- | --- | --- |"]
    for name, step, ours, theirs, ratio, unit in speed_rows(results):
        lines.append(f"| {name} | {step} | {show(ours)} {unit} | {show(theirs)} {unit} | {ratio:.1f} |")
    return lines


def quality_table(results, name):
    lines = [
        f"| {name} | training, s | peak memory, MB | " + " | ".join(MEASURES) + " |",
        "| --- | " + " | ".join(["---"] * (2 + len(MEASURES))) + " |",
    ]
    for key, run in results["quality"][name].items():
        title = TITLES.get(key, key)
        if "failed" in run:
            lines.append(f"| {title} | {run['failed']} |" + " |" * (1 + len(MEASURES)))
            continue
        figures = " | ".join(f"{run['quality'][measure]:.2f}" for measure in MEASURES)
        train, peak = run["seconds"]["train"], run["peak_mb"]
        lines.append(f"| {title} | {train:.1f} | {peak:,.0f} | {figures} |")
    return lines


def equal_quality_table(results):
    """Quality of both libraries in the speed runs, where they solve the same problem."""
    lines = [
        "| data set | | " + " | ".join(MEASURES) + " |",
        "| --- | --- | " + " | ".join(["---"] * len(MEASURES)) + " |",
    ]
    for name, stages in results.get("speed", {}).items():
        for worker in ("treetop", "libpecos"):
            quality = stages["linear"][worker][0]["quality"]
            figures = " | ".join(f"{quality[measure]:.2f}" for measure in MEASURES)
            lines.append(f"| {name} | {worker} | {figures} |")
    return lines


def first_run_section():
    """What the first run on a machine and the first text of a process take; needs first_run.json."""
    if not FIRST_RUN.exists():
        return []
    results = json.loads(FIRST_RUN.read_text())
    lines = [
        "## The first run on a machine, and the first text of a process",
        "",
        "treetop compiles its kernels when they are first used, and keeps them. The first rows are the",
        "time of compilation, the others of a new process with compiled kernels, all imports included.",
        "",
        f"| | commit {results['old']} | commit {results['new']} | ratio |",
        "| --- | --- | --- | --- |",
    ]
    for name, row in results.items():
        if isinstance(row, dict):
            step = name.removesuffix(", s")
            lines.append(f"| {step} | {row['old']:.2f} s | {row['new']:.2f} s | {row['ratio']:.2f} |")
    measured = "Measured by `benchmarks/first_run.py`, both commits in turn; medians."
    return [*lines, "", f"{results['machine']}. {measured}", ""]


def setting(results):
    machine, versions = results["machine"], results["versions"]
    listed = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()) if number)
    return (
        f"{machine['cpu']}, {results['threads']} threads on {machine['cores']} cores, "
        f"{machine['system']}; {listed}; seed {results['seed']}."
    )


def document(results):
    lines = [
        "# XRLinear benchmarks",
        "",
        "Generated by `make docs` from `benchmarks/results/linear.json`; do not edit. To repeat the",
        "measurements, see `benchmarks/linear.py`.",
        "",
        setting(results),
        "",
        "## Speed and memory compared with libpecos",
        "",
        "Both libraries use the same features (words and word pairs), the same tree shape,",
        "negatives from the true parents, C = 1, a pruning threshold of 0.1 and a beam of 10, and",
        "return 10 labels. Runs alternate, and the table shows medians. A single query is the",
        "prediction for one row of features. The compilation of treetop's kernels is not included:",
        "it is done once and cached on disk. The ratio is libpecos to treetop: above 1, treetop is",
        "faster or uses less memory.",
        "",
        "![Speed of treetop relative to libpecos](benchmarks.png)",
        "",
        *speed_table(results),
        "",
        "Quality of these runs on the test set, in percent:",
        "",
        *equal_quality_table(results),
        "",
        "## Quality of each tool with its own defaults",
        "",
        "treetop and libpecos are trained on texts, the others on prepared TF-IDF features, so",
        "that their time and memory do not include TF-IDF. Metrics are on the test set, in percent;",
        "labels that only occur in the test set count as missed. treetop's defaults were chosen on",
        "the development set of eurlex57k and on a part of the training sets of the others. Peak",
        "memory is that of the entire process. Not every tool was run on every data set.",
        "",
    ]
    for name in results.get("quality", {}):
        lines += [*quality_table(results, name), ""]
    if "cold" in results:
        lines += ["## Prediction from a cold start", ""]
        for name, run in results["cold"].items():
            seconds = f"{run['median']:.2f} s"
            lines.append(
                f"- `treetop predict` for one text, start-up included, {name} model: {seconds}"
            )
        lines.append("")
    lines += [
        *first_run_section(),
        "## Where to go next",
        "",
        "- [XRTransformer benchmarks](transformer.md) and [the paper's studies](studies.md)",
        "- [Settings](settings.md): `trees`, `prune_below` and `beam` trade quality for speed and size",
        "",
    ]
    return "\n".join(lines)


def picture(results):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in speed_rows(results) if row[5] != "MB"]
    names = list(dict.fromkeys(row[0] for row in rows))
    steps = list(dict.fromkeys(row[1] for row in rows))
    figure, axes = plt.subplots(figsize=(8, 3.6))
    height = 0.8 / len(names)
    for number, name in enumerate(names):
        ratios = [next(r[4] for r in rows if r[:2] == (name, step)) for step in steps]
        places = [place + number * height for place in range(len(steps))]
        bars = axes.barh(places, ratios, height, label=name, color=["#2a6f97", "#a9d6e5"][number])
        axes.bar_label(bars, fmt="%.1f×", padding=3, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.4 - height / 2 for place in range(len(steps))], steps)
    axes.invert_yaxis()
    axes.set_xlabel("speedup over libpecos")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)


def readme(results):
    path = ROOT / "README.md"
    before, _, rest = path.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    rows = [row for row in speed_rows(results) if row[0] == "eurlex57k" and row[1] != "PIFA"]
    lines = ["| eurlex57k, 2 cores | treetop | libpecos | |", "| --- | --- | --- | --- |"]
    for _, step, ours, theirs, ratio, unit in rows:
        lines.append(f"| {step} | {show(ours)} {unit} | {show(theirs)} {unit} | {ratio:.1f} × |")
    text = "\n".join(["", "", *lines, "", setting(results), ""])
    path.write_text(f"{before}{MARKS[0]}{text}{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    results = json.loads(RESULTS.read_text())
    DOC.write_text(document(results), "utf-8")
    picture(results)
    readme(results)
    print(f"wrote {DOC}, {PICTURE} and the table in README.md")
