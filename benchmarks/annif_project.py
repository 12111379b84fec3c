"""Compares treetop's backend with omikuji's in an Annif project.

    python benchmarks/annif_project.py DATA --out benchmarks/results/annif.json

Run it in an environment with ``annif[omikuji]`` and treetop.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from treetop.data import open_data

PROJECTS = {
    "treetop": "backend=treetop",
    "omikuji": "backend=omikuji\nanalyzer=simple",
}
# Import name → name of the distribution, where they differ.
NAMES = {"treetop": "treetop-xmc"}
MEASURES = ("Precision@1", "Precision@3", "Precision@5", "NDCG@5", "F1@5")


def uri(name):
    return f"http://example.org/{name.replace(' ', '_')}"


def prepare(data, folder):
    """Write vocabulary, corpora and project configuration in Annif's formats."""
    dataset = open_data(data)
    train, test = dataset.split("train"), dataset.split("test")
    names = sorted({name for line in train.labels for name in line})
    known = set(names)
    (folder / "vocab.tsv").write_text("".join(f"<{uri(name)}>\t{name}\n" for name in names))
    for split, part in (("train", train), ("test", test)):
        with (folder / f"{split}.tsv").open("w") as file:
            for text, line in zip(part.texts, part.labels):
                subjects = " ".join(f"<{uri(name)}>" for name in line if name in known)
                file.write(text.replace("\t", " ") + "\t" + subjects + "\n")
    sections = (
        f"[{name}]\nname={name}\nlanguage=en\nvocab=tags\nlimit=10\n{backend}\n"
        for name, backend in PROJECTS.items()
    )
    (folder / "projects.cfg").write_text("\n".join(sections))
    # Annif's analyzer needs NLTK's sentence splitter: an empty model avoids a download.
    punkt = folder / "nltk" / "tokenizers" / "punkt_tab" / "english"
    punkt.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (punkt / name).touch()


def annif(folder, *arguments):
    """Run an Annif command; return its output and its duration in seconds."""
    command = [str(Path(sys.executable).parent / "treetop-annif"), *arguments]
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "NLTK_DATA": str(folder / "nltk")},
    )
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    packages = ("annif", "omikuji", "treetop", "numpy", "numba")
    made = {
        "data": given.data.name,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {name: importlib.metadata.version(NAMES.get(name, name)) for name in packages},
        "backends": {},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(given.data, folder)
        annif(folder, "load-vocab", "tags", "vocab.tsv", "--language", "en")
        for project in PROJECTS:
            _, trained = annif(folder, "train", project, "train.tsv")
            output, evaluated = annif(folder, "eval", project, "test.tsv")
            figures = dict(line.split(":", 1) for line in output.splitlines() if ":" in line)
            row = {name: float(figures[name]) for name in MEASURES}
            made["backends"][project] = {"train_seconds": trained, "eval_seconds": evaluated, **row}
            print(project, made["backends"][project], flush=True)
    if given.out:
        given.out.write_text(json.dumps(made, indent=2) + "\n")


if __name__ == "__main__":
    main()
