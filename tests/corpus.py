"""The tests' corpus, which needs no download: docstrings of numpy.

A document is the docstring of a function or class without its list of parameters; its labels are the
names of these parameters. Files are parsed, not imported.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from treetop.data.dataset import Dataset, Split

SECTION = re.compile(r"^(\w[\w ]*)\n(-{3,}|={3,})[ \t]*$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, ?\*{0,2}\w+)*) ?(?::|$)")
SIGNATURE = re.compile(r"[-\s]*(?:[\w.]+\(|$)")
FOLDS = 5  # one of which is the test split
SHORTEST = 8  # words


def load_docstrings(packages: Sequence[str] = ("numpy",)) -> Dataset:
    """Docstrings of the packages as documents, split 80:20 by a hash of the text."""
    splits: dict[str, tuple[list[str], list[list[str]]]] = {"train": ([], []), "test": ([], [])}
    seen: set[str] = set()
    for docstring in all_docstrings(packages):
        text, labels = divide(docstring)
        key = " ".join(re.findall(r"\w+", text.lower()))
        # Aliases have the same docstring, which would be in both splits.
        if not labels or key in seen or key.count(" ") < SHORTEST:
            continue
        seen.add(key)
        number = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16)
        texts, lists = splits["test" if number % FOLDS == 0 else "train"]
        texts.append(text)
        lists.append(labels)
    return Dataset("docstrings", {name: Split(*pair) for name, pair in splits.items()})


def all_docstrings(packages: Sequence[str]) -> Iterator[str]:
    """Docstrings of functions, methods and classes, in a fixed order."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                if "tests" not in path.parts:
                    yield from docstrings_of(path)


def docstrings_of(path: Path) -> Iterator[str]:
    """Docstrings in one file, including those that are attached to C functions."""
    source = path.read_text(encoding="utf-8", errors="replace")
    if "Parameters\n" not in source:
        return
    try:
        module = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "add_newdoc":
            for argument in node.args:
                for part in ast.walk(argument):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield inspect.cleandoc(part.value)


def divide(docstring: str) -> tuple[str, list[str]]:
    """The docstring without its parameters, and the parameters' names."""
    # Docstrings of C functions begin with the signature, some twice, which gives the labels away.
    paragraphs = docstring.split("\n\n")
    while paragraphs and SIGNATURE.match(paragraphs[0]):
        paragraphs.pop(0)
    docstring = "\n\n".join(paragraphs)
    starts = list(SECTION.finditer(docstring))
    kept = [docstring[: starts[0].start()]] if starts else [docstring]
    names: dict[str, None] = {}
    for section, following in zip_longest(starts, starts[1:]):
        body = docstring[section.end() : following.start() if following else None]
        if section[1] in ("Parameters", "Other Parameters"):
            for line in body.splitlines():
                if match := ENTRY.match(line):
                    names.update({name.strip(" *"): None for name in match[1].split(",")})
        elif section[1] in ("Returns", "Notes", "Yields", "Raises", "Warnings"):
            kept.append(body)
    return " ".join(" ".join(kept).split()), [name for name in names if name]
