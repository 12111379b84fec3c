"""Reads thousands of damaged data files: each must be read right or be refused in one line.

    python benchmarks/fuzz_data.py --mutants 2000 -o benchmarks/results/fuzz_data.json

Every mutant is a small data set in one of the formats in which bytes, lines, numbers or arrays have
been changed. It is read, checked and trained on in a process of its own. Mutants that are neither read
right nor refused are kept in the folder given with --keep.
"""

import argparse
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy
import scipy
from commits import commit_of
from tests.data.mutating import FINE, answers, counts_of, judge, seed_data, write_mutant


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the mutants that something is wrong with")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    told, started = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as spare:
        seeds, mutants = Path(spare, "seeds"), Path(spare, "mutants")
        seeds.mkdir()
        names = seed_data(seeds)
        for name in names:  # compiles all kernels before the first process is started
            assert judge(seeds / name) == "read", f"{name}: {judge(seeds / name)}"

        def written():
            for number in range(given.mutants):
                name = names[number % len(names)]
                folder = mutants / f"{number}-{name}"
                write_mutant(seeds, name, folder, random.Random(f"{given.seed} {number}"))
                yield folder

        for folder, answer in answers(written()):
            told.append((folder.name.partition("-")[2], answer))
            if answer not in FINE:
                print(f"{folder.name}: {answer}", flush=True)
                if given.keep is not None:
                    shutil.copytree(folder, given.keep / folder.name, dirs_exist_ok=True)
            shutil.rmtree(folder)
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {"numpy": numpy.__version__, "scipy": scipy.__version__},
        "commit": commit_of(Path(__file__).parent.parent),
        "seed": given.seed,
        "mutants": len(told),
        "read": sum(answer == "read" for _, answer in told),
        "refused": sum(answer == "refused" for _, answer in told),
        "crashes": sum(answer.startswith("crash") for _, answer in told),
        "hangs": sum(answer.startswith("hang") for _, answer in told),
        "others": [f"{name}: {answer}" for name, answer in told if answer not in FINE],
        "by_format": counts_of(told),
        "seconds": round(time.perf_counter() - started, 1),
    }
    print(json.dumps(result, indent=2))
    if given.output:
        given.output.write_text(json.dumps(result, indent=2) + "\n")
    sys.exit(bool(result["others"]))


if __name__ == "__main__":
    main()
