"""Writes the model folders in `tests/folders`, with the scores they gave, by the treetop that runs it.

They were written once, by the code of before `Model` and `Runtime` (commit c894825), and are read by
every treetop since. Run it again only to add a folder for a new format version, under another name:

    python tests/folders/make_folders.py NEW_FOLDER
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import treetop

HERE = Path(__file__).parent
K = 5


def problem(count=96, seed=0):
    """Texts of a few words out of forty, labels from their words: enough for trees of three levels."""
    random = np.random.default_rng(seed)
    words = [
        f"{a}{b}"
        for a in ("red", "blue", "old", "new", "big", "tiny", "hot", "cold")
        for b in ("apple", "tree", "boat", "house", "lake")
    ]
    texts, labels = [], []
    for _ in range(count):
        chosen = random.choice(len(words), 5, replace=False)
        texts.append(" ".join(words[one] for one in chosen))
        pair = sorted(words[one][:4] for one in chosen[:2])
        labels.append(sorted({words[chosen[0]], words[chosen[1]], "+".join(pair)}))
    return texts, labels


def cpu() -> str:
    """What the encoder's last bits depend on."""
    flags = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if "flags" in line][:1]
    return f"{platform.machine()} {' '.join(sorted(set(flags[0].split()[2:])))}" if flags else ""


def main(target: Path) -> None:
    sys.path.insert(0, str(HERE.parents[1]))
    from tests.tiny import save_encoder

    target.mkdir(parents=True, exist_ok=True)
    texts, labels = problem()
    queries = problem(12, seed=1)[0] + ["", "redapple", "nothing known here"]
    (target / "queries.json").write_text(json.dumps(queries, indent=0) + "\n")
    scores: dict[str, np.ndarray] = {}
    with tempfile.TemporaryDirectory() as spare:
        work = Path(spare)
        encoder = save_encoder(work / "tiny")
        tuned = {
            "encoder": encoder,
            "max_length": 16,
            "budget": "6 steps",
            "batch": 16,
            "first_tree": "4-L",
            "precision": "fp32",
            "device": "cpu",
            "threads": 2,
        }
        vectors = work / "vectors.txt"
        seen = sorted({word for text in texts for word in text.split()})
        random = np.random.default_rng(2)
        vectors.write_text(
            "".join(f"{word} {' '.join(f'{x:.3f}' for x in random.normal(size=8))}\n" for word in seen)
        )
        X = sp.random(96, 30, 0.3, "csr", np.float32, np.random.default_rng(3))
        made = {
            "flat": treetop.XRLinear().fit(texts, labels),
            "tree": treetop.XRLinear(tree="4-12-L", trees=1, beam=3).fit(texts, labels),
            "forest": treetop.XRLinear(
                flat_labels=0,
                leaf=6,
                branching=4,
                ngrams="word:1|word:1+char:3",
                threads=1,
                keep_documents=True,
            ).fit(texts, labels),
            "matrix": treetop.XRLinear(tree="4-L").fit(X, labels),
            "transformer": treetop.XRTransformer(**tuned).fit(texts, labels),
            "wordvectors": treetop.XRTransformer(encoder=str(vectors), fine_tune=False, tree="4-L").fit(
                texts, labels
            ),
        }
        sp.save_npz(target / "matrix-queries.npz", X[:8])
        made["ensemble"] = treetop.Ensemble([made["forest"], made["transformer"]], "softmax", [1, 2])
        for name, model in made.items():
            model.save(target / name)
        command = [str(Path(sys.executable).with_name("treetop"))]
        for arguments in (
            ("compress", "forest", "-o", "compressed"),
            ("compress", "transformer", "-o", "compressed-transformer", "--weights", "float16"),
            ("compress", "wordvectors", "-o", "compressed-wordvectors"),
            ("export-onnx", "transformer", "-o", "onnx"),
            ("compress", "onnx", "-o", "compressed-onnx"),
        ):
            subprocess.run([*command, *arguments], cwd=target, check=True)
        pecos = HERE.parent / "interop" / "pecos"
        for kind in ("linear", "transformer"):
            arguments = ("--words", str(pecos / "words"), "--labels", str(pecos / "labels.txt"))
            subprocess.run(
                [*command, "import-pecos", str(pecos / kind), "-o", f"pecos-{kind}", *arguments],
                cwd=target,
                check=True,
            )
    for folder in sorted(path for path in target.iterdir() if path.is_dir()):
        asked = X[:8] if folder.name == "matrix" else queries
        found = treetop.load(str(folder)).predict_scores(asked, K)
        for part in ("data", "indices", "indptr"):
            scores[f"{folder.name}.{part}"] = getattr(found, part)
    np.savez_compressed(target / "scores.npz", **scores, cpu=np.array(cpu()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
