"""docs/benchmarks.md, its picture and the table of the README, from benchmarks/results/*.json."""

import json
import statistics
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "linear.json"
DOC = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.png"
MARKS = ("<!-- figures -->", "<!-- end of figures -->")
MEASURES = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5", "PSP@5")
STEPS = {
    "TF-IDF, fit and transform": ("tfidf", lambda run: run["seconds"]["tfidf"], "s", 1),
    "PIFA": ("linear", lambda run: run["seconds"]["pifa"], "s", 1),
    "label tree from Z": ("linear", lambda run: run["seconds"]["tree"], "s", 1),
    "training the rankers": ("linear", lambda run: run["seconds"]["train"], "s", 1),
    "batch prediction, a document": (
        "predict",
        lambda run: run["seconds"]["predict"] / run["documents"],
        "ms",
        1000,
    ),
    "one query": ("predict", lambda run: run["single_ms"], "ms", 1),
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
    lines = ["| data | step | treetop | libpecos | times |", "| --- | --- | --- | --- | --- |"]
    for name, step, ours, theirs, ratio, unit in speed_rows(results):
        lines.append(f"| {name} | {step} | {show(ours)} {unit} | {show(theirs)} {unit} | {ratio:.1f} |")
    return lines


def quality_table(results, name):
    lines = [
        f"| {name} | train, s | peak, MB | " + " | ".join(MEASURES) + " |",
        "| --- | " + " | ".join(["---"] * (2 + len(MEASURES))) + " |",
    ]
    for title, run in results["quality"][name].items():
        if "failed" in run:
            lines.append(f"| {title} | {run['failed']} |" + " |" * (1 + len(MEASURES)))
            continue
        figures = " | ".join(f"{run['quality'][measure]:.2f}" for measure in MEASURES)
        train, peak = run["seconds"]["train"], run["peak_mb"]
        lines.append(f"| {title} | {train:.1f} | {peak:,.0f} | {figures} |")
    return lines


def equal_quality_table(results):
    """Quality of both sides in the speed runs, where they solve the same problem."""
    lines = [
        "| data | | " + " | ".join(MEASURES) + " |",
        "| --- | --- | " + " | ".join(["---"] * len(MEASURES)) + " |",
    ]
    for name, stages in results.get("speed", {}).items():
        for worker in ("treetop", "libpecos"):
            quality = stages["linear"][worker][0]["quality"]
            figures = " | ".join(f"{quality[measure]:.2f}" for measure in MEASURES)
            lines.append(f"| {name} | {worker} | {figures} |")
    return lines


def setting(results):
    machine, versions = results["machine"], results["versions"]
    listed = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()) if number)
    return (
        f"{machine['cpu']}, {results['threads']} threads on {machine['cores']} cores, "
        f"{machine['system']}; {listed}; seed {results['seed']}."
    )


def document(results):
    lines = [
        "# Benchmarks",
        "",
        "Written by `make docs` from `benchmarks/results/linear.json`; do not edit.",
        "`benchmarks/linear.py` says how to run them.",
        "",
        setting(results),
        "",
        "## Beside libpecos, step by step",
        "",
        "Same features (words and pairs), same tree shape, negatives from true parents, C = 1,",
        "threshold 0.1, beam 10, 10 labels. Runs alternate; medians. Numba's compilation is not part",
        "of the times: it is done once and kept on disk. One query is a row of features to 10 labels.",
        "",
        "![Times beside libpecos](benchmarks.png)",
        "",
        *speed_table(results),
        "",
        "Quality in these runs, in per cent on the test set:",
        "",
        *equal_quality_table(results),
        "",
        "## Every tool with its own defaults",
        "",
        "From text (treetop, libpecos) or from TF-IDF features (the others), on the test set, in per",
        "cent. Labels that only the test set has count as missed. treetop's defaults were chosen on",
        "the dev set of eurlex57k and on a part of the others' training sets. Peak memory is of the",
        "whole process; omikuji's and napkinXC's do not include TF-IDF. A tool that is not in a table",
        "was not run on that set.",
        "",
    ]
    for name in results.get("quality", {}):
        lines += [*quality_table(results, name), ""]
    if "cold" in results:
        lines += ["## One text from a cold start", ""]
        for name, run in results["cold"].items():
            lines.append(f"`treetop predict` of one text, {name} model: {run['median']:.2f} s.")
        lines.append("")
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
    axes.set_xlabel("times faster than libpecos")
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
    found = json.loads(RESULTS.read_text())
    DOC.parent.mkdir(exist_ok=True)
    DOC.write_text(document(found), "utf-8")
    picture(found)
    readme(found)
    print(f"wrote {DOC}, {PICTURE} and the figures of README.md")
