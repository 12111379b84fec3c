"""Writes the figures in docs/howto/annif.md from benchmarks/results/annif.json."""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "howto" / "annif.md"
MARKS = ("<!-- annif figures -->", "<!-- end of annif figures -->")


def table(results):
    names = [name for name in next(iter(results["backends"].values())) if not name.endswith("seconds")]
    lines = [
        "| backend | " + " | ".join(names) + " | training, s | evaluation, s |",
        "| --- |" + " --- |" * (len(names) + 2),
    ]
    for backend, row in results["backends"].items():
        figures = " | ".join(f"{100 * row[name]:.2f}" for name in names)
        times = f"{row['train_seconds']:.0f} | {row['eval_seconds']:.0f}"
        lines.append(f"| {backend} | {figures} | {times} |")
    return lines


def main():
    results = json.loads((ROOT / "benchmarks" / "results" / "annif.json").read_text("utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    middle = [
        MARKS[0],
        "",
        f"Both backends on {results['data']} with their default settings; metrics in percent:",
        "",
        *table(results),
        "",
        f"{results['cores']} cores, Python {results['python']}, {versions}.",
        "To repeat the measurements, see `benchmarks/annif_project.py`.",
        "",
        MARKS[1],
    ]
    text = PAGE.read_text("utf-8")
    before, after = text.split(MARKS[0])[0], text.split(MARKS[1])[1]
    PAGE.write_text(before + "\n".join(middle) + after, "utf-8")


if __name__ == "__main__":
    main()
