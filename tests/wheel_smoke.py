"""Train and predict with a wheel that is installed in an otherwise empty environment."""

import json
import subprocess
import sys
import tempfile
from importlib import metadata
from importlib.resources import files
from pathlib import Path

treetop = sys.argv[1]
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "train.txt").write_text("red apple\ngreen pear\nred cherry\ngreen grass\n" * 5)
    (folder / "train.labels").write_text("red\tfruit\ngreen\tfruit\nred\tfruit\ngreen\n" * 5)
    subprocess.run([treetop, "train", folder, "-o", folder / "model"], check=True)
    out = subprocess.run(
        [treetop, "predict", folder / "model", "-k", "1"],
        check=True,
        input="a green field\n",
        capture_output=True,
        text=True,
    )
    assert json.loads(out.stdout)["labels"][0]["label"] == "green", out.stdout
    out = subprocess.run(
        [treetop, "serve", folder / "model"], check=False, capture_output=True, text=True
    )
    assert out.returncode == 2, out
    assert "pip install 'treetop-xmc[serve]'" in out.stderr, out.stderr

assert (files("treetop") / "py.typed").is_file()
# Pretend that the other project called treetop is installed too.
other = Path(str(metadata.distribution("treetop-xmc").locate_file(""))) / "treetop-2024.5.13.dist-info"
other.mkdir()
try:
    out = subprocess.run([treetop, "--help"], check=True, capture_output=True, text=True)
finally:
    other.rmdir()
assert "another project's distribution 'treetop' is installed" in out.stderr, out.stderr
print("the wheel trains and predicts")
