"""Mutated model folders: changed arrays, headers, JSON, label files and encoders, sealed again.

A mutant is a copy of a model folder with one to three changes, and with checksums that fit, as a
stranger can make them. Everything follows from a `random.Random`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from treetop.runtime.arrays import DTYPES, read_arrays, write_arrays

EXTREMES = (
    0,
    1,
    -1,
    2,
    3,
    7,
    16,
    127,
    255,
    256,
    65_535,
    2**31 - 1,
    -(2**31),
    2**32,
    2**53,
    2**62,
    -(2**63),
)
FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-45, 3e38, -3e38, 1e300, 0.5, -1.5)
OBJECTS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        "",
        "x",
        "../..",
        "/etc/passwd",
        "https://example.org/x",
        "a\nb",
        "\x00",
        "é" * 300,
    ),
    *(
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"a": {"b": [1]}},
        [0] * 1000,
        "9" * 30,
        "float16",
        "int8",
        "auto",
    ),
)
LINES = (
    b"",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b" ",
    "\u2028".encode(),
    b"NaN",
    b"x" * 10_000,
)


def mutant(source: Path, target: Path, chance: Random) -> list[str]:
    """Write a mutant of the model folder `source` to `target`; return what was changed."""
    copy_by_links(source, target)
    changes = []
    for _ in range(chance.choices((1, 2, 3), (6, 2, 1))[0]):
        files = [
            path for path in sorted(target.rglob("*")) if is_plain(path) and path.name != "README.md"
        ]
        path = chance.choices(files, [weight_of(path) for path in files])[0]
        kind, change = chance.choice(changes_for(path))
        own_copy(path)
        try:
            change(path, chance)
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            OverflowError,
            OSError,
            RecursionError,
        ):
            # A file that an earlier change has damaged.
            kind += " (without effect)"
        changes.append(f"{path.relative_to(target)}: {kind}")
    seal(target, chance)
    return changes


def copy_by_links(source: Path, target: Path) -> None:
    """Copy a folder by hard links, which takes no time."""
    shutil.copytree(source, target, copy_function=os.link)


def own_copy(path: Path) -> None:
    """Replace a hard link by a file of its own."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def weight_of(path: Path) -> int:
    """How often a file is chosen: weights and settings most often."""
    if path.name in ("ranker.safetensors", "config.json", "tfidf.safetensors"):
        return 4
    return 2 if path.suffix == ".safetensors" else 1


def changes_for(path: Path) -> list[tuple[str, Callable[[Path, Random], object]]]:
    """The changes that make sense for a file, by name."""
    anything = [("bytes", change_bytes), ("file", change_file)]
    if path.suffix == ".safetensors":
        return [("array", change_array)] * 6 + [("header", change_header)] * 3 + anything
    if path.suffix == ".json":
        return [("value", change_json)] * 6 + anything
    if path.suffix in (".txt", ".jsonl"):
        return [("lines", change_lines)] * 4 + anything
    return anything


def change_array(path: Path, chance: Random) -> None:
    """Change values, type, shape or presence of an array; the header fits it."""
    arrays = {name: values.copy() for name, values in read_arrays(path).items()}
    name = chance.choice(sorted(arrays))
    change = chance.choice(ARRAY_CHANGES)
    with np.errstate(all="ignore"):
        change(arrays, name, chance)
    write_arrays(path, {key: np.asarray(values) for key, values in arrays.items()})


def extreme(values: np.ndarray, chance: Random) -> Any:
    """A value that is unusual for an array: at the end of its type, near another one, or infinite."""
    kind = values.dtype.kind
    if kind == "f":
        return values.dtype.type(chance.choice(FLOATS))
    if values.size and chance.random() < 0.5:
        number = int(chance.choice(values.reshape(-1)[:64].tolist())) + chance.choice((-1, 1, 2, 100))
    else:
        number = chance.choice(EXTREMES)
    bits = 8 * values.dtype.itemsize
    return np.array(number % 2**bits, f"u{values.dtype.itemsize}").view(values.dtype)


def set_values(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    values = arrays[name].reshape(-1)
    for _ in range(chance.choice((1, 1, 2, 8))):
        if values.size:
            values[chance.choice((0, -1, chance.randrange(values.size)))] = extreme(values, chance)


def set_all(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    arrays[name][...] = extreme(arrays[name], chance)


def add_to_all(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    values = arrays[name].reshape(-1)
    start = chance.randrange(values.size + 1)
    values[start:] += values.dtype.type(1)


def shuffle(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    np.random.default_rng(chance.getrandbits(32)).shuffle(arrays[name])


def noise(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    content = chance.randbytes(arrays[name].nbytes)
    arrays[name] = np.frombuffer(content, arrays[name].dtype).reshape(arrays[name].shape)


def resize(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    values, change = arrays[name], chance.choice((-1, 1, 2, -5, 1000))
    if chance.random() < 0.2:
        arrays[name] = values[:0]
    elif change < 0:
        arrays[name] = values[:change]
    else:
        arrays[name] = np.concatenate([values, np.resize(values[-1:], (change, *values.shape[1:]))])


def reshape(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    values = arrays[name]
    shapes = [values.shape[::-1], (-1,), (-1, 1), (1, -1), (1, *values.shape)]
    arrays[name] = values.reshape(chance.choice(shapes))


def retype(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    dtype = np.dtype(DTYPES[chance.choice(sorted(DTYPES))])
    if chance.random() < 0.5 and arrays[name].nbytes % dtype.itemsize == 0:
        arrays[name] = arrays[name].reshape(-1).view(dtype)
    else:
        arrays[name] = arrays[name].astype(dtype)


def exchange(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    other = chance.choice(sorted(arrays))
    arrays[name], arrays[other] = arrays[other], arrays[name]


def leave_out(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    del arrays[name]


def rename(arrays: dict[str, np.ndarray], name: str, chance: Random) -> None:
    arrays[chance.choice(("", "1", "x.y", name + ".0", "__metadata__"))] = arrays.pop(name)


ARRAY_CHANGES = (
    *(set_values, set_values, set_values, set_values, set_all, add_to_all, shuffle, noise),
    *(resize, resize, reshape, retype, exchange, leave_out, rename),
)


def change_header(path: Path, chance: Random) -> None:
    """Change the header of a safetensors file, or the number that says how long it is."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:start]), content[start:]
    way = chance.randrange(6)
    if way == 0:
        length = chance.choice((0, 1, 7, start - 9, start, len(content), 2**32, 2**63, 2**64 - 1))
        path.write_bytes(length.to_bytes(8, "little") + content[8:])
        return
    text = None
    if way == 1:
        one, other = (json.dumps(chance.choice(sorted(header.items()))) for _ in range(2))
        text = "{" + ", ".join(f"{e[1:-1].replace(',', ':', 1)}" for e in (one, other, one)) + "}"
    elif way == 2:
        text = chance.choice(("[" * 100_000, '{"a":' * 50_000, "null", "[]", "1e999", '"x"', "{}", ""))
    else:
        header = changed(header, chance)
    encoded = (json.dumps(header) if text is None else text).encode()
    if chance.random() < 0.8:
        encoded += b" " * (-(len(encoded) + 8) % 64)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)


def change_json(path: Path, chance: Random) -> None:
    """Change a JSON file: values, keys, or what the whole is."""
    text = json.dumps(changed(json.loads(path.read_text("utf-8")), chance))
    if chance.random() < 0.05:
        at = chance.randrange(len(text))
        other = chance.choice(('"', "[", "]", "{", "}", ",", ":", "[" * 5000, '{"a":' * 5000, "1e400"))
        text = text[:at] + other + text[at + 1 :]
    path.write_text(text, "utf-8")


def changed(value: Any, chance: Random) -> Any:
    """Return a JSON value with something changed, anywhere within."""
    inner = (
        list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    if len(inner) and chance.random() < 0.9:
        key = chance.choice(list(inner))
        copied = dict(value) if isinstance(value, dict) else list(value)
        way = chance.random()
        if way < 0.08:
            del copied[key]
        elif way < 0.14 and isinstance(copied, dict):
            copied[chance.choice(("", "extra", key + "x", "auto_map", "quantization_config"))] = copied[
                key
            ]
        elif way < 0.16 and isinstance(copied, list):
            copied = copied * chance.choice((2, 50))
        else:
            copied[key] = changed(value[key], chance)
        return copied
    return replaced(value, chance)


def replaced(value: Any, chance: Random) -> Any:
    """Return another JSON value: near this one, of its type, or of any."""
    way = chance.random()
    if isinstance(value, bool) and way < 0.5:
        return not value
    if isinstance(value, int | float) and way < 0.7:
        near = (value + 1, value - 1, -value, value * 2, value + 0.5)
        return chance.choice((*near, *EXTREMES, *FLOATS, 2**64, 10**400))
    if isinstance(value, str) and way < 0.4:
        return chance.choice((value + "x", value[:-1], value.upper(), value * 100, value[::-1]))
    if way < 0.45:
        return chance.choice(([value], [[value]], {"a": value}, [value, value]))
    return chance.choice((*OBJECTS, *EXTREMES, *FLOATS))


def change_lines(path: Path, chance: Random) -> None:
    """Change the lines of a text file."""
    lines = path.read_bytes().split(b"\n")
    at = chance.randrange(len(lines))
    way = chance.randrange(5)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines[at] = chance.choice(lines)
    elif way == 2:
        lines[at] = chance.choice(LINES)
    elif way == 3:
        lines.insert(at, chance.choice(LINES))
    else:
        chance.shuffle(lines)
    path.write_bytes(b"\n".join(lines))


def change_bytes(path: Path, chance: Random) -> None:
    """Change, insert or delete bytes anywhere in a file."""
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 4, 64))):
        at = chance.randrange(len(content) + 1)
        way = chance.randrange(4)
        if way < 2 and at < len(content):
            content[at] = chance.choice(
                (0, 255, content[at] ^ 1 << chance.randrange(8), chance.getrandbits(8))
            )
        elif way == 2:
            content[at:at] = chance.randbytes(chance.choice((1, 4, 8)))
        else:
            del content[at : at + chance.choice((1, 4, 8))]
    path.write_bytes(content)


def change_file(path: Path, chance: Random) -> None:
    """Truncate, empty, remove or replace a whole file."""
    content = path.read_bytes()
    way = chance.randrange(8)
    path.unlink()
    if way == 0:
        path.write_bytes(content[: chance.randrange(len(content) + 1)])
    elif way == 1:
        path.write_bytes(content + chance.randbytes(chance.choice((1, 8, 4096))))
    elif way == 2:
        path.touch()
    elif way == 3:
        path.mkdir()
    elif way == 4:
        others = [other for other in sorted(path.parent.iterdir()) if is_plain(other)]
        if others:
            path.write_bytes(chance.choice(others).read_bytes())
    elif way == 5:
        os.mkfifo(path)
    elif way == 6:
        path.symlink_to(chance.choice(("/dev/zero", "/dev/null", "/proc/self/mem", path.name, "/")))


def seal(folder: Path, chance: Random) -> None:
    """Enter sizes and checksums in config.json, in those of the members of an ensemble too."""
    configs = [folder / "config.json", *sorted(folder.glob("member-*/config.json"))]
    for path in filter(is_plain, reversed(configs)):
        try:
            config = json.loads(path.read_text("utf-8"))
            files = config["files"]
            if chance.random() < 0.05:
                continue  # checksums that do not fit are tested too
            names = list(files)
            config["files"] = {
                name: entry_of(path.parent / name) for name in names if is_plain(path.parent / name)
            }
            path.unlink()
            path.write_text(json.dumps(config), "utf-8")
        except (OSError, ValueError, KeyError, TypeError, RecursionError, AttributeError):
            continue


def entry_of(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
