"""The commands as a user runs them: in a process of their own."""

import json
import signal
import subprocess
import sys
import time

import pytest

COLOURS = "red apple\ngreen pear\nred cherry\ngreen grass\nblue sky\n" * 5
NAMES = "red\tfruit\ngreen\tfruit\nred\tfruit\ngreen\nblue\n" * 5


def treetop(*arguments, stdin=None, cwd=None):
    command = [sys.executable, "-c", "from treetop.cli.main import main; main()"]
    return subprocess.run(
        [*command, *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, check=False
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text(COLOURS)
        (folder / f"{split}.labels").write_text(NAMES)
    done = treetop("train", folder, "-o", folder / "model", "--set", "beam=4")
    assert done.returncode == 0, done.stderr.decode()
    assert b"25 documents, 4 labels, trained in" in done.stdout
    assert done.stderr == b""
    return folder


def test_predict_from_a_file_and_from_standard_input(trained, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("red apple\nblue sky\n")
    done = treetop("predict", trained / "model", texts, "-k", 1)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["labels"][0]["label"] for line in lines][1] == "blue"
    piped = treetop("predict", trained / "model", "-", "-k", 2, stdin=b"green pear\n")
    assert {one["label"] for one in json.loads(piped.stdout)["labels"]} == {"green", "fruit"}
    out = tmp_path / "out.tsv"
    done = treetop("predict", trained / "model", texts, "--format", "tsv", "-o", out, "-k", 99)
    assert done.returncode == 0
    assert out.read_text().splitlines()[1].startswith("blue\t")


def test_evaluate(trained):
    done = treetop("evaluate", trained / "model", trained, "--json")
    result = json.loads(done.stdout)
    assert result["P@1"] == 1.0
    shown = treetop("evaluate", trained / "model", trained, "--threshold", 0.5).stdout.decode()
    assert "nDCG" in shown
    assert "by the number of training documents a label has" in shown


def test_inspect(trained):
    shown = treetop("data", "inspect", trained).stdout.decode()
    assert "text lines" in shown
    assert "labels in train: 4" in shown
    assert "texts of test that are in train too: 5" in shown


def test_documents_without_labels_are_reported(tmp_path):
    (tmp_path / "train.txt").write_text(COLOURS + "grey fog\ngrey fog\n")
    (tmp_path / "train.labels").write_text(NAMES + "\n\n")
    done = treetop("train", tmp_path, "-o", tmp_path / "m")
    assert done.returncode == 0
    assert b"2 documents without a label are kept as negatives" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "absent", "-o", "m"], "absent: no such file or folder"),
        (["train", "{data}", "-o", "{data}"], "exists and is not a treetop model"),
        (["train", "{data}", "-o", "m", "--set", "bean=3"], "did you mean 'beam'"),
        (["train", "{data}", "-o", "m", "--set", "beam=0"], "beam is 0: it must be above 0"),
        (["train", "{data}", "-o", "m", "--preset", "quick"], "unknown preset 'quick'"),
        (["train", "{data}", "-o", "m", "--model", "bert"], "unknown model 'bert'"),
        (["train", "{data}", "-o", "m", "--set", "tree=9-3-L"], "level sizes must grow"),
        (["train", "{data}", "-o", "/proc/nothing/m"], "/proc/nothing/m: cannot be written"),
        (["predict", "{data}", "-"], "no model here"),
        (["predict", "{model}", "absent.txt"], "absent.txt: no such file"),
        (["predict", "{model}", "-", "--format", "xml"], "unknown format 'xml'"),
        (["evaluate", "{model}", "{data}", "--split", "dev"], "no split dev"),
        (["evaluate", "{model}", "{data}", "--propensity", "x"], "unknown propensity preset 'x'"),
        (["data", "inspect", "absent"], "absent: no such file or folder"),
    ],
)
def test_a_users_error_is_one_line_and_exit_code_2(trained, tmp_path, arguments, message):
    values = {"data": trained, "model": trained / "model"}
    done = treetop(*(one.format(**values) for one in arguments), stdin=b"x\n", cwd=tmp_path)
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert message in error
    assert error.startswith("treetop: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_not_exist_and_no_arguments(trained):
    assert treetop("predict", trained / "model", "--nope").returncode == 2
    assert treetop("train").returncode == 2
    assert b"Usage" in treetop("--help").stdout


def test_bad_standard_input(trained):
    done = treetop("predict", trained / "model", "-", stdin=b"ok\n\xff\n")
    assert done.returncode == 2
    assert b"standard input:2: not UTF-8" in done.stderr


def test_a_full_disk_is_one_line(trained):
    done = treetop("predict", trained / "model", "-", "-o", "/dev/full/x", stdin=b"x\n")
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr


@pytest.mark.slow
def test_ctrl_c_stops_within_a_second_and_leaves_nothing(tmp_path, numpy_docs):
    train = numpy_docs.split("train")
    (tmp_path / "train.txt").write_text("\n".join(list(train.texts) * 40) + "\n")
    lines = ["\t".join(labels) for labels in train.labels]
    (tmp_path / "train.labels").write_text("\n".join(lines * 40) + "\n")
    code = "from treetop.cli.main import main; main()"
    slow = ["--set", "tree=flat", "--set", "tolerance=1e-9", "--set", "passes=100000"]
    child = subprocess.Popen(
        [sys.executable, "-c", code, "train", str(tmp_path), "-o", str(tmp_path / "m"), *slow],
        stderr=subprocess.PIPE,
    )
    time.sleep(15)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, error = child.communicate(timeout=20)
    assert time.monotonic() - started < 2.0
    assert child.returncode == 130
    assert b"stopped" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.labels", "train.txt"]
