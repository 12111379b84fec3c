"""The figures of docs/howto/annif.md, from benchmarks/results/annif.json."""

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "howto" / "annif.md"
MARKS = ("<!-- annif figures -->", "<!-- end of annif figures -->")


def table(found):
    names = [name for name in next(iter(found["backends"].values())) if not name.endswith("seconds")]
    lines = [
        "| backend | " + " | ".join(names) + " | train, s | eval, s |",
        "| --- |" + " --- |" * (len(names) + 2),
    ]
    for backend, row in found["backends"].items():
        figures = " | ".join(f"{100 * row[name]:.2f}" for name in names)
        times = f"{row['train_seconds']:.0f} | {row['eval_seconds']:.0f}"
        lines.append(f"| {backend} | {figures} | {times} |")
    return lines


def main():
    found = json.loads((ROOT / "benchmarks" / "results" / "annif.json").read_text("utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    middle = [
        MARKS[0],
        "",
        f"Both backends on {found['data']} with their defaults, in per cent:",
        "",
        *table(found),
        "",
        f"{found['cores']} cores, Python {found['python']}, {versions}.",
        "`benchmarks/annif_project.py` runs it.",
        "",
        MARKS[1],
    ]
    text = PAGE.read_text("utf-8")
    made = text.split(MARKS[0])[0] + "\n".join(middle) + text.split(MARKS[1])[1]
    PAGE.write_text(made, "utf-8")


if __name__ == "__main__":
    main()
