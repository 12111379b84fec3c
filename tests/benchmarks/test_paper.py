"""benchmarks/paper.py runs end to end on a tiny archive with the layout of the authors' archives."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import treetop
from tests.tiny import WORDS, save_encoder
from treetop.data.download import NAMES
from treetop.evaluation.propensity import propensity_constants

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper.py"
LABELS = [f"label {number}" for number in range(20)]
SMALLER = {
    "budget": "6 steps",
    "batch": 8,
    "max_length": 16,
    "first_tree": "4-L",
    "tree": "4-L",
    "beam": 5,
}


def test_every_data_set_has_the_propensities_of_the_literature():
    wikipedia, amazon, other = (0.5, 0.4), (0.6, 2.6), (0.55, 1.5)
    expected = [other, other, other, wikipedia, amazon, amazon]
    assert [propensity_constants(name) for name in NAMES] == expected


def write_split(folder, short, documents, rng):
    """Texts whose words are those of their labels, with features that are word counts."""
    Y = sp.random(documents, len(LABELS), 0.1, random_state=rng, format="lil")
    Y[np.arange(documents), np.arange(documents) % len(LABELS)] = 1
    Y = sp.csr_matrix(Y > 0, dtype=np.float32)
    texts, X = [], sp.lil_matrix((documents, len(WORDS)), dtype=np.float32)
    for row in range(documents):
        words = [word for label in Y[row].indices for word in (label % len(WORDS), (7 * label) % 18)]
        texts.append(" ".join(WORDS[word] for word in words))
        for word in words:
            X[row, word] += 1
    (folder / f"X.{short}.txt").write_text("".join(f"{text}\n" for text in texts))
    sp.save_npz(folder / f"Y.{short}.npz", Y)
    sp.save_npz(folder / "tfidf-attnxml" / f"X.{short}.npz", sp.csr_matrix(X))


@pytest.fixture
def archive(tmp_path):
    folder = tmp_path / "xmc-base" / "eurlex-4k"
    (folder / "tfidf-attnxml").mkdir(parents=True)
    rng = np.random.default_rng(0)
    write_split(folder, "trn", 80, rng)
    write_split(folder, "tst", 40, rng)
    (folder / "output-items.txt").write_text("".join(f"{name}\n" for name in LABELS))
    (tmp_path / "paper" / "data").mkdir(parents=True)
    path = tmp_path / "paper" / "data" / "eurlex-4k.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(tmp_path / "xmc-base", "xmc-base")
    return path


def run_script(tmp_path, *options):
    settings = {**SMALLER, "encoder": str(tmp_path / "encoder")}
    changes = [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
    command = [sys.executable, SCRIPT, "--dataset=eurlex-4k", "--out", tmp_path / "paper"]
    address = (tmp_path / "nowhere").as_uri()
    done = subprocess.run(
        [*command, "--address", address, *changes, *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_one_command_prints_the_tables_and_resumes(tmp_path, archive):
    save_encoder(tmp_path / "encoder")
    first = run_script(tmp_path)
    result = json.loads((tmp_path / "paper" / "paper.json").read_text())["eurlex-4k"]
    assert list(result["members"]) == ["model-1", "model-2", "model-3"]
    assert result["ensemble"]["P@1"] > 0.5 > 1 / len(LABELS)
    # The paper's own figures are in parentheses, and what differs from its hyperparameters is said.
    row = next(line for line in first.stdout.splitlines() if line.startswith("| eurlex-4k | "))
    assert (
        row
        == "| eurlex-4k | "
        + " | ".join(
            f"{100 * result['ensemble'][name]:.2f} ({published})"
            for name, published in (("P@1", 88.41), ("P@3", 75.97), ("P@5", 63.18))
        )
        + " |"
    )
    assert "settings differ from the recipe: {'budget': '6 steps'" in first.stdout
    # The models read the precomputed features of the archive instead of computing their own.
    model = treetop.load(tmp_path / "paper" / "paper" / "eurlex-4k" / "model-1" / "model")
    assert model.model_.needs_features
    # Finished models are loaded, and nothing is measured again.
    assert run_script(tmp_path).stdout == first.stdout
