"""Adds the results of a run to benchmarks/results/transformer.json under a name.

python benchmarks/collect.py NAME FILE [--variant NAME]
"""

import argparse
import json
from pathlib import Path

TARGET = Path(__file__).parent / "results" / "transformer.json"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("file", type=Path)
    parser.add_argument("--variant")
    given = parser.parse_args()
    made = json.loads(TARGET.read_text("utf-8")) if TARGET.is_file() else {}
    found = json.loads(given.file.read_text("utf-8"))
    if isinstance(found, list) and given.variant:
        found = next(row for row in found if row["variant"] == given.variant)
    made[given.name] = found[0] if isinstance(found, list) and len(found) == 1 else found
    TARGET.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
