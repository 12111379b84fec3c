"""The commands as a user runs them: in a process of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from treetop import load
from treetop.cli.main import run_command
from treetop.runtime.files import reserving
from treetop.settings.quality import QUALITIES

COLOURS = "red apple\ngreen pear\nred cherry\ngreen grass\nblue sky\n" * 5
NAMES = "red\tfruit\ngreen\tfruit\nred\tfruit\ngreen\nblue\n" * 5


COMMAND = [sys.executable, "-c", "from treetop.cli.main import main; main()"]


def treetop(*arguments, stdin=None, cwd=None):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, check=False
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split in ("train", "test"):
        (folder / f"{split}.txt").write_text(COLOURS)
        (folder / f"{split}.labels").write_text(NAMES)
    done = treetop("train", folder, "-o", folder / "model", "--set", "beam=4")
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stdout.decode().splitlines()
    assert re.fullmatch(r".*/model: 25 documents, 4 labels, trained in [\d.]+ s", shown[0])
    assert shown[2:4] == [
        "Next:",
        f"  treetop evaluate {folder}/model {folder}  # metrics on test documents",
    ]
    first, *lines = done.stderr.decode().splitlines()
    assert first == f"treetop: {folder}: text-lines; documents: train 25, test 25"
    stages = [line.removeprefix("treetop: ") for line in lines]
    assert all(re.fullmatch(r"[^:]+: ([\d.]+ s|\d+ min \d\d s)", stage) for stage in stages)
    assert stages[0].startswith("reading data:")
    assert stages[-1].startswith("saving:")
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
    done = treetop("evaluate", trained / "model", trained, "--json", "--allow-training-data")
    result = json.loads(done.stdout)
    assert result["P@1"] == 1.0
    options = ["--threshold", 0.5, "--allow-training-data"]
    shown = treetop("evaluate", trained / "model", trained, *options).stdout.decode()
    assert "nDCG" in shown
    assert "by number of training documents per label" in shown


def test_inspect(trained):
    shown = treetop("data", "inspect", trained).stdout.decode()
    assert "text-lines" in shown
    assert "labels in train: 4" in shown
    assert re.search(r"^duplicate texts +20 +20$", shown, re.MULTILINE)
    assert re.search(r"^mean labels per document +1\.60 +1\.60$", shown, re.MULTILINE)
    assert "texts of test also in train: 25" in shown


def test_documents_without_labels_are_reported(tmp_path):
    (tmp_path / "train.txt").write_text(COLOURS + "grey fog\ngrey fog\n")
    (tmp_path / "train.labels").write_text(NAMES + "\n\n")
    done = treetop("train", tmp_path, "-o", tmp_path / "m")
    assert done.returncode == 0
    assert b"2 documents without a label are kept as negatives" in done.stderr


def test_an_error_of_the_user_is_one_line_and_exit_code_2(trained, tmp_path):
    done = treetop("train", trained, "-o", "m", "--set", "bean=3", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"treetop: unknown setting 'bean': did you mean 'beam'?\n"
    assert list(tmp_path.iterdir()) == []


def test_verbose_shows_where_an_error_came_from(trained, tmp_path):
    done = treetop("-v", "train", trained, "-o", "m", "--set", "bean=3", cwd=tmp_path)
    first, *_, last = done.stderr.decode().splitlines()
    assert first == "Traceback (most recent call last):"
    assert last == "treetop: unknown setting 'bean': did you mean 'beam'?"


def test_bad_standard_input(trained):
    done = treetop("predict", trained / "model", "-", stdin=b"ok\n\xff\n")
    assert done.returncode == 2
    assert b"standard input:2: not UTF-8" in done.stderr


def test_a_full_disk_is_one_line(trained):
    done = treetop("predict", trained / "model", "-", "-o", "/dev/full/x", stdin=b"x\n")
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_soon_and_leaves_nothing(tmp_path, numpy_docs, start_process, number, code):
    train = numpy_docs.split("train")
    (tmp_path / "train.txt").write_text("\n".join(list(train.texts) * 8) + "\n")
    lines = ["\t".join(labels) for labels in train.labels]
    (tmp_path / "train.labels").write_text("\n".join(lines * 8) + "\n")
    slow = ["--set", "tree=flat", "--set", "tolerance=1e-9", "--set", "passes=100000"]
    child = start_process(
        [*COMMAND, "train", str(tmp_path), "-o", str(tmp_path / "new" / "m"), *slow],
        stderr=subprocess.PIPE,
    )
    with child.stderr as log:
        until(log, b"text features: ")  # the solver has begun
        time.sleep(1)
        assert child.poll() is None
        child.send_signal(number)
        started = time.monotonic()
        assert child.wait(timeout=60) == code
        assert time.monotonic() - started < 10  # a second, on a machine that has nothing else to do
        error = log.read()
    assert error.splitlines()[-1] == b"treetop: stopped; nothing was left half-written"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.labels", "train.txt"]


def until(log, words):
    """Read lines until one contains `words`."""
    for line in log:
        if words in line:
            return
    raise AssertionError(f"{words} was not printed")


def test_the_second_training_of_a_model_is_told_who_is_first(trained, tmp_path, capsys):
    def answer(*arguments):
        code = run_command(["train", str(trained), "-o", str(tmp_path / "m"), *arguments])
        return code, capsys.readouterr().err

    held = f"is being written by process {os.getpid()} on"
    with reserving(tmp_path / "m"), ThreadPoolExecutor(1) as pool:
        code, error = pool.submit(answer).result()
        assert code == 2
        assert error.startswith(f"treetop: {tmp_path / 'm'}: {held}")
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_full_disk_is_noticed_before_training(trained, tmp_path):
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    code = f"{limited}; from treetop.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "train", str(trained), "-o", str(tmp_path / "new" / "m")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"cannot be written" in done.stderr
    assert b"free some space or choose another path" in done.stderr
    assert done.stderr.count(b"\n") == 1  # no stage has begun
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_one_line(start_process):
    reader, writer = os.pipe()
    os.close(reader)
    child = start_process([*COMMAND, "settings"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, error = child.communicate(timeout=60)
    assert child.returncode == 2
    assert error == b"treetop: standard output was closed before everything was written\n"


READ_ONLY = """
mount --bind / /mnt && mount -o remount,ro,bind / || exit 99
for folder in /tmp /var/tmp /dev/shm {folder}; do
    mount --bind $folder $folder && mount -o remount,ro,bind $folder || exit 99
done
cd {folder}
export HOME=/nonexistent
exec {python} -c "from treetop.cli.main import main; main()" "$@"
"""


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="mounts file systems")
def test_a_model_is_used_where_nothing_can_be_written(trained):
    script = READ_ONLY.format(folder=trained, python=sys.executable)
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "bash", "predict", "model", "train.txt", "-q"],
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("no file systems can be mounted here")
    assert (done.returncode, done.stderr) == (0, "")
    first = json.loads(done.stdout.splitlines()[0])["labels"]
    assert {one["label"] for one in first[:2]} == {"red", "fruit"}


BRIEF = [f"--set={one}" for one in ("budget=2 epochs", "batch=8", "max_length=8")]


def test_a_transformer_is_trained_resumed_and_used(trained, encoder, tmp_path):
    common = ["train", trained, "-o", tmp_path / "m", "--model", "xr-transformer", "--encoder", encoder]
    done = treetop(*common, *BRIEF)
    assert done.returncode == 0, done.stderr.decode()
    assert b"keeps the run" in done.stdout
    level = tmp_path / "m.run" / "member-0" / "level-1.safetensors"
    written = level.stat().st_mtime_ns
    again = treetop(*common, *BRIEF, "--set", "trees=4", "--resume")
    assert again.returncode == 0, again.stderr.decode()
    assert level.stat().st_mtime_ns == written
    history = (tmp_path / "m" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["level"] for line in history] == [1]
    model = (tmp_path / "m" / "config.json").read_bytes()
    asked = treetop(*common, *BRIEF, "-q")
    assert asked.returncode == 2
    assert asked.stdout == b""
    assert asked.stderr.decode() == (
        f"treetop: {tmp_path}/m.run/member-0: holds an earlier run: "
        "continue it (--resume, resume=True) or start again (--overwrite, overwrite=True)\n"
    )
    both = treetop(*common, "--resume", "--overwrite")
    assert (both.returncode, both.stdout) == (2, b"")
    assert b"resume or overwrite, not both" in both.stderr
    assert level.stat().st_mtime_ns == written
    assert (tmp_path / "m" / "config.json").read_bytes() == model
    anew = treetop(*common, *BRIEF, "--overwrite")
    assert anew.returncode == 0, anew.stderr.decode()
    assert level.stat().st_mtime_ns != written
    piped = treetop("predict", tmp_path / "m", "-", "-k", 1, stdin=b"blue sky\n")
    assert json.loads(piped.stdout)["labels"][0]["label"] == "blue", piped.stderr.decode()


def test_a_transformer_of_the_best_quality_has_its_trees_and_n_grams(trained, encoder, tmp_path):
    model = tmp_path / "m"
    options = ["--model", "xr-transformer", "--encoder", encoder, "--quality", "best", *BRIEF]
    assert run_command(["train", str(trained), "-o", str(model), *options]) == 0
    settings = json.loads((model / "config.json").read_text())["settings"]
    assert {name: settings[name] for name in QUALITIES["best"]} == QUALITIES["best"]
    loaded = load(model)
    assert len(loaded.rankers_) == 5
    assert loaded.predict(["blue sky"], k=1)[0][0][0] == "blue"


def test_every_member_of_an_ensemble_is_asked_about_first(trained, tmp_path):
    """Before the data is read: there is none."""
    run = tmp_path / "m.run" / "member-1"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"treetop": 1, "data": "x"}')
    options = ["--model", "xr-transformer", "--member", "seed=0", "--member", "seed=1"]
    done = treetop("train", tmp_path / "absent", "-o", tmp_path / "m", *options)
    assert done.returncode == 2
    assert b"m.run/member-1: holds an earlier run" in done.stderr
    assert os.listdir(run.parent) == ["member-1"]


def test_the_old_name_of_a_setting_is_noted_in_one_line(trained, tmp_path):
    preset = tmp_path / "mine.json"
    preset.write_text(json.dumps({"model": "xr-linear", "settings": {"threshold": 0.3, "threads": 1}}))
    note = "treetop: threshold is now called prune_below"
    for options in (["--set", "threshold=0.3"], ["--preset", preset]):
        done = treetop("train", trained, "-o", tmp_path / "m", *options)
        assert done.returncode == 0
        assert done.stderr.decode().splitlines().count(note) == 1
        settings = json.loads((tmp_path / "m" / "config.json").read_text())["settings"]
        assert settings["prune_below"] == 0.3
        assert "threshold" not in settings
        assert "threads" not in settings


def test_a_linear_model_is_retrained_with_and_without_overwrite(trained, tmp_path):
    for options in ([], [], ["--overwrite"]):
        done = treetop("train", trained, "-o", tmp_path / "m", *options)
        assert done.returncode == 0, done.stderr.decode()
    assert os.listdir(tmp_path) == ["m"]
    (tmp_path / "m" / "notes.txt").write_text("mine")
    for options in ([], ["--overwrite"]):
        done = treetop("train", trained, "-o", tmp_path / "m", *options)
        assert done.returncode == 2
        assert done.stdout == b""
        assert b"m: holds notes.txt, which treetop did not write" in done.stderr
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("command", ["train", "ensemble", "compress", "export-onnx", "import-pecos"])
def test_an_encoder_given_as_output_survives(trained, tmp_path, command):
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "bert"}')
    (encoder / "model.safetensors").write_bytes(b"weights")
    given = trained if command == "train" else trained / "model"
    done = treetop(command, given, "-o", encoder)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"encoder: exists and is not a treetop model: choose another folder" in done.stderr
    assert (encoder / "config.json").read_text() == '{"model_type": "bert"}'
    assert (encoder / "model.safetensors").read_bytes() == b"weights"
    assert sorted(os.listdir(encoder)) == ["config.json", "model.safetensors"]


def test_an_ensemble_in_one_command_and_from_models(trained, encoder, tmp_path):
    members = ["--member", f"encoder={encoder},seed=0", "--member", f"encoder={encoder},seed=1"]
    done = treetop(
        "train",
        trained,
        "-o",
        tmp_path / "two",
        "--model",
        "xr-transformer",
        *BRIEF,
        *members,
        "--combine",
        "rank",
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"member 2 of 2" in done.stderr
    assert json.loads((tmp_path / "two" / "config.json").read_text())["combine"] == "rank"
    joined = treetop("ensemble", tmp_path / "two" / "member-0", trained / "model", "-o", tmp_path / "j")
    assert joined.returncode == 0, joined.stderr.decode()
    piped = treetop("predict", tmp_path / "j", "-", "-k", 1, stdin=b"blue sky\n")
    assert json.loads(piped.stdout)["labels"][0]["label"] == "blue"


def test_features_are_chosen_on_the_dev_split_by_the_metric_that_is_asked_for(tmp_path):
    words = [f"word{number}" for number in range(6)]
    for split, documents in (("train", 520), ("dev", 60)):
        rows = [number % 6 for number in range(documents)]
        texts = [f"{words[row]} {words[(row + 1) % 6]} text {n}" for n, row in enumerate(rows)]
        (tmp_path / f"{split}.txt").write_text("\n".join(texts) + "\n")
        (tmp_path / f"{split}.labels").write_text("".join(f"label {row}\n" for row in rows))
    done = treetop("train", tmp_path, "-o", tmp_path / "model", "--optimise", "P@1")
    assert done.returncode == 0, done.stderr.decode()
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["settings"]["optimize"] == "P@1"
    assert "P@1 1.000, words alone 1.000" in config["competition"]
    held = treetop("train", tmp_path, "-o", tmp_path / "m", "--validation", "x")
    assert held.returncode == 2
    assert b"no split 'x' with labels to validate on: leave out --validation" in held.stderr


def test_the_metric_of_the_competition_must_be_known(trained, tmp_path):
    done = treetop("train", trained, "-o", tmp_path / "m", "--optimize", "P@3")
    assert done.returncode == 2
    assert b"choose one of nDCG@5, P@1, PSP@5, macro-F1" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_validation_split_must_exist(trained, encoder, tmp_path):
    options = ["--model", "xr-transformer", "--encoder", encoder, "--validation", "x"]
    done = treetop("train", trained, "-o", tmp_path / "m", *options)
    assert done.returncode == 2
    assert b"no split 'x' with labels to validate on: leave out --validation" in done.stderr
    assert list(tmp_path.iterdir()) == []
