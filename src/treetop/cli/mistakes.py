"""Answers to mistakes on the command line: one line that says what is wrong and what to do next."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from treetop.cli.usage import placeholder, usage_pieces

# What people type for a command of another name.
SYNONYMS = {
    "train": "fit learn finetune fine-tune",
    "evaluate": "eval test score metrics measure validate",
    "predict": "classify infer inference tag suggest label",
    "serve": "server web ui api run start",
    "compress": "prune shrink quantize",
    "export-onnx": "export onnx",
    "import-pecos": "import pecos migrate",
    "data get": "download fetch get",
    "data inspect": "inspect describe stats info",
    "data convert": "convert",
    "data split": "split divide partition",
    "data formats": "formats",
    "data list": "datasets list",
    "presets": "preset",
    "settings": "setting config options params",
    "--help": "help",
    "--version": "version",
}
# What people type for an option of another name.
OPTION_SYNONYMS = {
    "-k": "--k --topk --top-k --top_k --num-labels --limit",
    "-o MODEL": "--out --out-dir --output-dir --output_dir --save --model-dir --to",
    "--text-column": "--text --text-col --text_column --input-column",
    "--labels-column": "--label --label-col --label_column --target --target-column",
    "--encoder": "--model-name --model-name-or-path --model_name_or_path --backbone",
    "--model xr-transformer": "--transformer --xr-transformer",
    "--json": "--format",
    "--threshold": "--min-score --cutoff --min-probability",
    "--hold-out": "--test-size --validation-split --holdout",
    "-q": "--silent",
    "-v": "--debug",
}
# What a message about a value that is no number says, by a word in typer's.
NUMBERS = {"integer": "give a whole number", "number": "give a number", "float": "give a number"}
MEANT = {typed: command for command, words in SYNONYMS.items() for typed in words.split()}
MEANT_OPTION = {typed: flag for flag, words in OPTION_SYNONYMS.items() for typed in words.split()}


class InterruptedRunError(Exception):
    """Ctrl-C during work that can be resumed; the message says how."""


def explain_usage_error(error: Any) -> str:
    """One line for an error that typer raised about arguments: ``treetop train: missing DATA …``."""
    if error.ctx is None:
        return f"treetop: {lowered(error.message)}: see treetop --help"
    path, command = error.ctx.command_path, error.ctx.command
    usage = f"usage: {' '.join([path, *usage_pieces(command.params)])}"
    kind, message = type(error).__name__, lowered(error.message)
    parameter = getattr(error, "param", None)
    if kind == "NoSuchOption":
        hint = meant_option(error.option_name, path, command.params)
        return f"{path}: no such option {error.option_name}: {hint}"
    if kind == "MissingParameter" and parameter is not None:
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        return f"{path}: missing {' '.join([*flag, placeholder(parameter)])}: {usage}"
    if kind == "BadParameter" and parameter is not None:
        named = placeholder(parameter) if parameter.param_type_name == "argument" else parameter.opts[0]
        needed = next((text for word, text in NUMBERS.items() if word in message), message)
        return f"{path}: {named}: {needed}: see {path} --help"
    if message.startswith("no such command"):
        typed = message.split("'")[1]
        return f"{path}: no such command {typed!r}: {meant_command(typed, path, command.commands)}"
    if message.startswith("got unexpected extra"):
        extra = message.rpartition("(")[2].rstrip(")")
        return f"{path}: too many arguments ({extra}): quote a value with spaces; {usage}"
    return f"{path}: {message}: see {path} --help"


def lowered(message: str) -> str:
    """A message on one line, without its full stop and its capital letter."""
    line = " ".join(str(message).split()).rstrip(".")
    return line[:1].lower() + line[1:] if line[1:2].islower() else line


def meant_command(typed: str, path: str, commands: Iterable[str]) -> str:
    """What to do about an unknown command: the one that was probably meant, or the list."""
    names = list(commands)
    near = difflib.get_close_matches(typed, names, 1, 0.6)
    if near:
        return f"did you mean {path} {near[0]}?"
    meant = MEANT.get(typed)
    if meant is not None:
        program = path.removesuffix(" data")
        return f"did you mean {program} {meant}?"
    return f"choose one of {', '.join(names)}"


def meant_option(typed: str, path: str, parameters: Sequence[Any]) -> str:
    """What to do about an unknown option: the one that was probably meant, or the setting."""
    known = [flag for parameter in parameters for flag in parameter.opts if flag.startswith("--")]
    setting = setting_meant(typed.lstrip("-").replace("-", "_")) if "--set" in known else None
    if setting is not None and f"--{setting}" not in known:
        return f"{setting} is a setting: did you mean --set {setting}=VALUE?"
    flags = {flag for parameter in parameters for flag in parameter.opts}
    meant = MEANT_OPTION.get(typed)
    if meant is not None and meant.split()[0] in flags:
        return f"did you mean {meant}?"
    near = difflib.get_close_matches(typed, known, 1, 0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"see {path} --help"


def setting_meant(name: str) -> str | None:
    """The setting of this name, or the one that other libraries call so; None if there is none."""
    from treetop.settings.making import TRANSFORMER
    from treetop.settings.names import ELSEWHERE, RENAMED

    if name in TRANSFORMER.defaults:
        return name
    return RENAMED.get(name, ELSEWHERE.get(name))


def print_error(message: object) -> None:
    """Print a message on stderr, on one line whatever line breaks it has."""
    print(f"treetop: {' '.join(str(message).split())}", file=sys.stderr, flush=True)
