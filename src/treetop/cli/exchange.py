"""What the command ``import-pecos`` does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from treetop import store
from treetop.cli.work import writing


def import_from_pecos(source: Path, output: Path, words: Path | None, labels: Path | None) -> None:
    """A model folder of PECOS as one of treetop, or its params.json as a preset."""
    if source.suffix == ".json":
        import_params(source, output)
        return
    from treetop.interop.pecos import import_model

    store.check_target(output)
    model = import_model(source, words, labels)
    model.save(output)
    what = "texts" if model.tfidf_ is not None else "features (give --words to predict from texts)"
    print(f"{output}: {model.kind}, {len(model.classes_):,} labels, predicts from {what}")
    if labels is None:
        print("treetop: labels are called by their numbers: --labels gives names", file=sys.stderr)


def import_params(source: Path, output: Path) -> None:
    """Write a preset and say which keys were left out."""
    from treetop.interop.pecos_params import read_params

    found = read_params(source)
    made = {"about": f"From PECOS: {source.name}", "model": found.model, "settings": found.settings}
    with writing(output) as out:
        json.dump(made, out, indent=2)
        out.write("\n")
    print(f"{output}: a preset of {found.model}: treetop train DATA --preset {output} -o MODEL")
    for key, reason in found.ignored.items():
        print(f"treetop: left out {key}: {reason}", file=sys.stderr)
