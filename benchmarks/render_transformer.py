"""docs/transformer.md, docs/studies.md and its picture, and README's figures of XRTransformer.

All from benchmarks/results/transformer.json and studies.json; what is not measured is left out.
"""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MARKS = ("<!-- transformer figures -->", "<!-- end of transformer figures -->")
MEASURES = ("P@1", "P@3", "P@5", "RP@5", "nDCG@5")
RUNS = {
    "same-budget": "eurlex57k, MiniLM, 300/400/600 steps of 256 × 256 tokens",
    "seed-1": "the same, seed 1 (GPU shared)",
    "seed-2": "the same, seed 2 (GPU shared)",
    "mpnet-512": "eurlex57k, mpnet-base, 512 tokens, 300/400/900 steps, 6 trees, chosen on dev",
    "bge-512": "eurlex57k, bge-small, 512 tokens, 300/400/900 steps, other `ngrams` (GPU shared)",
    "cooking": "cooking, defaults (GPU shared)",
    "debian-debtags": "debian-debtags, defaults (GPU shared)",
    "frozen-cooking": "cooking, encoder as it comes, no GPU",
    "frozen-debian-debtags": "debian-debtags, encoder as it comes, no GPU",
}
STUDIES = {
    "single": "One model, the same steps in all (the paper's Table 4)",
    "embedding": "What stands beside the words (Table 5)",
    "cost": "Cost-sensitive learning (Table 6)",
}


def read(name):
    path = RESULTS / name
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def percent(value):
    return f"{100 * value:.2f}"


def machine(row):
    where = row["gpu"] or "no GPU"
    return (
        f"{where}, {row['cores']} cores, Python {row['python']}, torch {row['torch']}, "
        f"transformers {row['transformers']}, seed {row['settings'].get('seed', 0)}"
    )


def run_table(results):
    """A row for each training run."""
    lines = [
        "| run | "
        + " | ".join(MEASURES)
        + " | micro-F1 | train, s | memory, GB | predict, ms a document |",
        "| --- |" + " --- |" * (len(MEASURES) + 4),
    ]
    for key, title in RUNS.items():
        if key not in results:
            continue
        row = results[key]
        figures = [percent(row["metrics"][name]) for name in MEASURES]
        f1 = row["metrics"].get("micro_f1")
        lines.append(
            f"| {title} | {' | '.join(figures)} | {percent(f1) if f1 else ''} "
            f"| {row['saved_seconds']:.1f} | {row['peak_memory_gb']:.1f} | {row['predict_ms']:.3f} |"
        )
    return lines


def stage_table(row):
    """Where the time of a run went."""
    lines = ["| stage | seconds |", "| --- | --- |"]
    lines += [f"| {name} | {seconds:.1f} |" for name, seconds in row["stages"].items()]
    return lines


def besides(row, cold):
    """What the table of runs does not say."""
    first = (
        [
            "Where Triton has not yet compiled its kernels for the GPU, the same run takes",
            f"{cold['saved_seconds']:.1f} s.",
            "",
        ]
        if cold
        else [""]
    )
    return [
        f"One text: {row['one_text_ms']:.1f} ms. torch and transformers were in the disk's cache: the",
        "first process on a machine waits some ten seconds longer for them.",
        *first,
        "Runs marked (GPU shared) were trained beside another one on the same GPU: alone they are",
        "faster.",
        "",
    ]


def transformer_page(results):
    lines = [
        "# XRTransformer, measured",
        "",
        "Written by `make docs` from `benchmarks/results/transformer.json`; do not edit.",
        "`benchmarks/transformer.py` and `benchmarks/steptime.py` say how to run them.",
        "",
        "Settings were chosen on the dev set (eurlex57k) or on a fifth of the training set (the",
        "others); figures are of the test set where no other is named, in per cent. Training is from",
        "texts in memory to the saved model, imports and the first use of the GPU included, numba's",
        "compilation not.",
        "",
        *run_table(results),
        "",
    ]
    for key in ("same-budget", "frozen-cooking"):
        if key in results:
            lines += [f"{RUNS[key]}: {machine(results[key])}.", ""]
    if "same-budget" in results:
        lines += besides(results["same-budget"], results.get("same-budget-cold"))
        lines += ["## Where the time goes", "", *stage_table(results["same-budget"]), ""]
    if "step" in results:
        step = results["step"]
        lines += [
            "## A step against its floor",
            "",
            f"{step['device']}, batch {step['batch']} × {step['tokens']} tokens: "
            f"{step['step_ms']:.1f} ms. {step['operations'] / 1e12:.2f} TFLOP at the measured "
            f"{step['teraflops']:.0f} TFLOP/s need {step['compute_ms']:.1f} ms; "
            f"{step['bytes'] / 1e9:.1f} GB at the measured {step['terabytes_a_second']:.1f} TB/s "
            f"need {step['memory_ms']:.1f} ms.",
            "",
        ]
    if "ensemble" in results:
        lines += ["## Ensembles", "", "| | " + " | ".join(MEASURES) + " |", "| --- |" + " --- |" * 5]
        for row in results["ensemble"]:
            figures = " | ".join(percent(row["metrics"][name]) for name in MEASURES)
            lines.append(f"| {row['variant']} | {figures} |")
        lines.append("")
    return "\n".join(lines)


def studies_page(results):
    measures = ("P@1", "P@3", "P@5", "R@1", "R@3", "R@5")
    lines = [
        "# The paper's studies on " + results["data"],
        "",
        "Written by `make docs` from `benchmarks/results/studies.json`; do not edit. "
        f"`benchmarks/studies.py` runs them. Split: {results['split']}, in per cent. "
        f"{results['gpu']}, torch {results['torch']}, seed 0. Note: {results['note']}.",
        "",
    ]
    for study, title in STUDIES.items():
        found = results["studies"].get(study, {})
        lines += [f"## {title}", "", "| | " + " | ".join(measures) + " |", "| --- |" + " --- |" * 6]
        for name, row in found.items():
            lines.append(
                f"| {name} | " + " | ".join(percent(row["metrics"][m]) for m in measures) + " |"
            )
        lines.append("")
    lines += [
        "## Label resolution (Figure 3)",
        "",
        "One level of clusters instead of all levels; the larger the clusters, the coarser what the "
        "encoder learns.",
        "",
        "![Precision by cluster size](studies.png)",
        "",
    ]
    return "\n".join(lines)


def draw(results, target):
    """P@1 and P@5 by cluster size, with and without words."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = results["studies"]["resolution"]
    sizes = sorted({int(name.split(":")[0]) for name in found if name[0].isdigit()})
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6))
    for panel, measure in zip(panels, ("P@1", "P@5"), strict=True):
        for features, colour in (("Φ_cat", "tab:blue"), ("Φ_dnn", "tab:orange")):
            values = [100 * found[f"{size}: {features}"]["metrics"][measure] for size in sizes]
            panel.plot(sizes, values, "o-", color=colour, label=f"{features}, one level")
            whole = found.get(f"all levels: {features}")
            if whole:
                height = 100 * whole["metrics"][measure]
                panel.axhline(height, ls="--", color=colour, label=f"{features}, all levels")
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes, map(str, sizes))
        panel.set_xlabel("labels a cluster")
        panel.set_ylabel(f"{measure}, per cent")
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=120)


def readme_lines(results):
    """The main figures, for README."""
    row = results["same-budget"]
    figures = " / ".join(percent(row["metrics"][name]) for name in MEASURES)
    return [
        f"{RUNS['same-budget']} ({row['gpu']}): text to saved model in {row['saved_seconds']:.0f} s, "
        f"{' / '.join(MEASURES)} {figures} on the test set. "
        "[docs/transformer.md](docs/transformer.md) has the rest, "
        "[docs/studies.md](docs/studies.md) the paper's studies.",
    ]


def main():
    results, studies = read("transformer.json"), read("studies.json")
    if results:
        (ROOT / "docs" / "transformer.md").write_text(transformer_page(results), "utf-8")
    if studies:
        (ROOT / "docs" / "studies.md").write_text(studies_page(studies), "utf-8")
        draw(studies, ROOT / "docs" / "studies.png")
    readme = (ROOT / "README.md").read_text("utf-8")
    if "same-budget" in results and MARKS[0] in readme:
        before, after = readme.split(MARKS[0])[0], readme.split(MARKS[1])[1]
        middle = "\n".join([MARKS[0], "", *readme_lines(results), MARKS[1]])
        (ROOT / "README.md").write_text(before + middle + after, "utf-8")


if __name__ == "__main__":
    main()
