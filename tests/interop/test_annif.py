"""Inside a real Annif project, where Annif is installed (pip install 'treetop-xmc[annif]')."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("annif")

COLOURS = {"red": "fire", "green": "grass", "blue": "sky"}


def annif(folder, *arguments, texts=""):
    command = [sys.executable, "-c", "from treetop.interop.annif import main; main()", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, input=texts, env=dict(os.environ)
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("annif")
    uris = {name: f"http://example.org/{name}" for name in COLOURS}
    (folder / "vocab.tsv").write_text("".join(f"<{uri}>\t{name}\n" for name, uri in uris.items()))
    lines = [f"the {word} is {name}\t<{uris[name]}>" for name, word in COLOURS.items()] * 8
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    section = "[{0}]\nname={0}\nlanguage=en\nvocab=colours\nbackend=treetop\nlimit=2\n{1}\n"
    cases = {"plain": "", "odd": "beam=-1", "kind": "model=forest", "preset": "preset=fast\nseed=3"}
    (folder / "projects.cfg").write_text("\n".join(section.format(*one) for one in cases.items()))
    assert annif(folder, "load-vocab", "colours", "vocab.tsv", "--language", "en").returncode == 0
    return folder


def test_train_suggest_eval(project):
    assert "not trained" in (done := annif(project, "suggest", "plain", texts="fire")).stderr, done
    done = annif(project, "train", "plain", "train.tsv")
    assert done.returncode == 0, done.stderr
    done = annif(project, "suggest", "plain", texts="fire is red")
    assert done.stdout.startswith("<http://example.org/red>\tred\t"), done.stderr
    assert annif(project, "suggest", "plain", texts=" ").stdout.strip() == ""
    done = annif(project, "eval", "plain", "train.tsv")
    assert "Precision@1:                  \t1.0000" in done.stdout, done.stdout + done.stderr
    assert annif(project, "train", "plain", "--cached").returncode == 0
    assert annif(project, "train", "preset", "train.tsv").returncode == 0
    assert (Path(project) / "data/projects/preset/treetop-model/config.json").is_file()


@pytest.mark.parametrize(
    ("name", "message"), [("odd", "beam is -1"), ("kind", "choose xr-linear or xr-transformer")]
)
def test_wrong_settings_are_an_error_without_traceback(project, name, message):
    done = annif(project, "train", name, "train.tsv")
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
