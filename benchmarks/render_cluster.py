"""Write the figures of several processes and machines into docs/howto/cluster.md.

From benchmarks/results/cluster.json, cluster_bytes.json, faults.json and nccl.json; what has not been
measured is left out.
"""

import json
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "howto" / "cluster.md"
SHOWN = 1e5  # bytes; stages that send less are left out
MARKS = ("<!-- cluster figures -->", "<!-- end of cluster figures -->")


def setting(found):
    """The machine, versions and commit of a measurement, in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return f"{found['machine']}, {versions}, commit {found['commit']}"


def speed(found):
    """Two workers of one core each against one thread."""
    lines = [
        "Two processes with one core each, against one with one thread; medians of seconds, without",
        f"the time to start processes ({setting(found)}):",
        "",
        "| stage | one | two | speedup |",
        "| --- | --- | --- | --- |",
    ]
    for name, stage in found["stages"].items():
        one, two = (f"{stage[side]:.1f} s" for side in ("one", "two"))
        own = stage.get("commit", found["commit"])
        commit = "" if own == found["commit"] else f" (commit {own})"
        lines.append(f"| {name}{commit} | {one} | {two} | {stage['ratio']:.2f} × |")
    return lines


def faults(found):
    """Random faults, and how many trainings ended in the undisturbed model."""
    rows = [row for row in found["rows"] if row["occurred"]]
    total, equal = (
        Counter(row["kind"] for row in rows),
        Counter(row["kind"] for row in rows if row["equal"]),
    )
    lines = [
        "Random faults (`benchmarks/faults.py`):",
        f"{sum(equal.values())} of {sum(total.values())} trainings",
        "ended in the model of an undisturbed one, bit for bit, by themselves or resumed",
        f"({setting(found)}, seed {found['seed']}).",
        "",
        "| what failed | equal models |",
        "| --- | --- |",
    ]
    return [*lines, *(f"| {kind} | {equal[kind]} of {total[kind]} |" for kind in sorted(total))]


def nccl(found):
    """Two processes that send gradients by NCCL, on one GPU."""
    two = found["fp32"]["NCCL, two processes"]
    difference = found["fp32"]["frozen, two processes"]["largest difference of vectors"]
    vectors = f"differ by at most {difference:.1e}" if difference else "are equal"
    return [
        "Two processes on one GPU, as on two machines, that talk by NCCL, against one process (fp32,",
        f"without dropout; {setting(found)}, NCCL {found['nccl']}): losses differ by at most",
        f"{two['largest difference of losses, relative']:.1e} of their value, and vectors of a frozen",
        f"encoder {vectors}.",
    ]


def megabytes(count):
    """``12.3 MB``."""
    return f"{count / 1e6:.1f} MB"


def network(found):
    """Bytes per stage, measured beside counted."""
    lines = [
        "What two machines send each other, measured on the loopback interface of a network namespace,",
        "less what Ray sends at rest, beside what was counted: the objects for the other machine, half",
        f"of the results, and the gradients of {found['steps']} steps",
        f"(`benchmarks/cluster_bytes.py`; {setting(found)}, seed {found['seed']}):",
        "",
        "| training | stage | measured | counted |",
        "| --- | --- | --- | --- |",
    ]
    for name, training in found["trainings"].items():
        labels = f", {training['labels']:,} labels" if "labels" in training else ""
        about = f"{name} ({training['documents']:,} documents{labels})"
        for stage, row in training["stages"].items():
            if max(row["sent"], row["counted"]) >= SHOWN:
                lines.append(
                    f"| {about} | {stage} | {megabytes(row['sent'])} | {megabytes(row['counted'])} |"
                )
    return lines


PARTS = {"cluster": speed, "cluster_bytes": network, "faults": faults, "nccl": nccl}


def block(results):
    """The paragraphs of all measurements that have been made."""
    parts = []
    for name, part in PARTS.items():
        path = results / f"{name}.json"
        if path.is_file():
            parts.append("\n".join(part(json.loads(path.read_text("utf-8")))))
    return "\n\n".join(parts) or "No figures have been recorded for this version yet."


def page(text, results):
    """The page with the figures between its marks."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{block(results)}\n\n{MARKS[1]}{after}"


def main():
    PAGE.write_text(page(PAGE.read_text("utf-8"), RESULTS), "utf-8")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
