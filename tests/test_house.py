"""What holds for the whole package: CONTRIBUTING.md maps it, and its rules are kept everywhere."""

import ast
import re
import tomllib
from collections import defaultdict
from dataclasses import fields
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from treetop.settings.schema import TransformerSettings
from treetop.training import stages
from treetop.training.run import Stage

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "treetop"
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
# Every format is a module with these functions, and every command of the shell has a `main`.
SHARED_NAMES = {"matches", "read", "write"}
ENTRY_POINT = "main"
MOST_ARGUMENTS = 12


def named(path):
    """A file as CONTRIBUTING.md names it."""
    return path.relative_to(PACKAGE).as_posix()


# The map and the walks of CONTRIBUTING.md


def mapped_rooms():
    """Room by room the modules in the map, in its order; none for a module at the top."""
    rows = re.findall(r"^\| `(\w+/[\w/]*|\w+\.py)` \| (.+) \|$", CONTRIBUTING, re.M)
    return {room: set(re.findall(r"`(\w+)`", cell)) - {"__init__"} for room, cell in rows}


def test_the_map_names_every_room_and_every_module():
    rooms = {named(path.parent) + "/" for path in TREES} - {"./"}
    top = {named(path) for path in TREES if path.parent == PACKAGE} - {"__init__.py"}
    mapped = mapped_rooms()
    assert set(mapped) == rooms | top
    for room in rooms:
        modules = {path.stem for path in (PACKAGE / room).glob("*.py")} - {"__init__"}
        assert mapped[room] == modules, room


def test_the_map_is_in_the_order_of_the_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    written = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    layers = [name.strip() for layer in written for name in layer.split(":")]
    rooms = [room.split("/")[0].removesuffix(".py") for room in mapped_rooms()]
    assert list(dict.fromkeys(rooms)) == layers


def test_the_walks_name_functions_that_exist():
    steps = re.findall(r"`([\w/]+\.py)`:\s+((?:`[\w.]+`(?:,\s+)?)+)", CONTRIBUTING)
    assert len(steps) > 40
    for path, names in steps:
        source = (PACKAGE / path).read_text("utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            for part in name.split("."):
                assert re.search(rf"\b(def|class) {part}\b", source), (path, name)


def test_the_list_of_files_to_touch_names_files_that_exist():
    section = CONTRIBUTING.split("## How to add")[1].split("\n## ")[0]
    now = [row.split(" | ")[2] for row in section.splitlines() if row.startswith("| a")]
    assert len(now) == 10
    for cell in now:
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", cell):
            assert (PACKAGE / path).exists(), path


# The rules


def test_no_module_imports_itself_by_way_of_others():
    """Not even a package by way of its own modules, inside of a function, or for types alone.

    Except the package itself, which has the version and names of all rooms.
    """
    graph = grimp.build_graph("treetop", exclude_type_checking_imports=False, cache_dir=None)
    modules = graph.modules - {"treetop"}
    imported = {name: graph.find_modules_directly_imported_by(name) & modules for name in modules}
    TopologicalSorter(imported).prepare()  # raises if there is a cycle


def test_few_modules_lie_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 8


def is_shared(path, name):
    """Whether several modules may have a function of this name."""
    return name in SHARED_NAMES if path.parent.name == "data" else name == ENTRY_POINT


def names_of(node):
    """The function, the class or the alias of a type that a statement defines; not type variables."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign) and "TypeVar" not in ast.unparse(node.value):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        return [name for name in names if not name.isupper() and not name.islower()]
    return []


def test_a_public_name_means_one_thing():
    homes = defaultdict(set)
    for path, tree in TREES.items():
        for name in (name for node in tree.body for name in names_of(node)):
            if not name.startswith("_") and not is_shared(path, name):
                homes[name].add(named(path))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_the_formatter_is_not_tricked():
    marked = [named(path) for path in TREES if "# fmt:" in path.read_text("utf-8")]
    literal = [
        f"{named(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple)
    ]
    assert marked + literal == []


def makes_kernel(node):
    """Whether an expression is ``kernel(signature)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "kernel"


def kernels_of(path):
    """Names in a module of kernels that are bound to a kernel, or to a table of kernels."""
    for node in TREES[path].body:
        if isinstance(node, ast.FunctionDef) and any(map(makes_kernel, node.decorator_list)):
            yield node.name
        elif isinstance(node, ast.Assign) and any(map(makes_kernel, ast.walk(node.value))):
            yield node.targets[0].id


def calls_outside_kernels():
    """Calls with their place and, where a kernel's module is asked for a function, its name."""
    for path, tree in TREES.items():
        if path.parent == PACKAGE / "kernels":
            continue
        nodes = list(ast.walk(tree))
        modules = {
            alias.asname or alias.name: alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module == "treetop.kernels"
            for alias in node.names
        }
        for node in nodes:
            if isinstance(node, ast.Call):
                function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
                owner, _, name = ast.unparse(function).rpartition(".")
                yield f"{named(path)}:{node.lineno}", node, f"{modules.get(owner)}.{name}"


KERNELS = [
    f"{path.stem}.{name}"
    for path in sorted((PACKAGE / "kernels").glob("*.py"))
    for name in kernels_of(path)
]
CALLS = list(calls_outside_kernels())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_called_from_one_place(kernel):
    places = [place for place, _, called in CALLS if called == kernel]
    assert len(places) == 1, places


def test_only_kernels_take_many_positional_arguments():
    long = [
        place
        for place, call, called in CALLS
        if len(call.args) > MOST_ARGUMENTS and called not in KERNELS
    ]
    assert long == []


def test_stages_declare_settings_that_exist():
    known = {field.name for field in fields(TransformerSettings)}
    declared = {name: value.reads for name, value in vars(stages).items() if isinstance(value, Stage)}
    declared |= {name: value for name, value in vars(stages).items() if isinstance(value, tuple)}
    for shortlist in ("all", "beam", "true"):
        settings = TransformerSettings(tune_shortlist=shortlist)
        declared[f"fine-tuning on {shortlist}"] = stages.tuning_settings(settings)
    assert {"TEXT_FEATURES", "RANKER", "TUNING", "REFINED_TREE"} <= set(declared)
    for stage, names in declared.items():
        assert set(names) <= known, stage
