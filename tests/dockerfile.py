"""Run the steps of a Dockerfile without a container engine, in an ordinary folder.

As in a container, every stage starts with an empty folder and the variables of ENV and ARG, and RUN and
COPY are executed in order; the final tree can be made read-only and served from by another user.
Unlike in a container, the base image is the Python of this machine, the absolute paths of the image are
rewritten to paths below the folder, and the other files of the machine stay visible.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

BUILDING = {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN"}
RUNNING = {"USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
# Folders of the image. Others, such as /bin and /usr, are those of this machine.
IMAGE_PATH = re.compile(r"(?<![\w./-])/(build|etc|models|opt|tmp)\b")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True)
class Step:
    """One instruction: its name, its options (``--name=value``) and the rest of it."""

    name: str
    options: dict[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The arguments: a JSON array, or words between spaces."""
        return json.loads(self.rest) if self.rest.startswith("[") else self.rest.split()


def parse(text: str) -> list[Step]:
    """The instructions of a Dockerfile; anything that this parser does not know is an error."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*#|\s*$", line)]
    steps = []
    for line in re.split(r"(?<!\\)\n", "\n".join(lines)):
        line = line.replace("\\\n", " ")
        name, rest = line.split(maxsplit=1)
        assert name in BUILDING | RUNNING, f"unknown instruction: {line}"
        options = {}
        while match := re.match(r"--([\w-]+)=(\S+)\s+", rest):
            options[match[1]], rest = match[2], rest[match.end() :]
        steps.append(Step(name, options, rest.strip()))
    return steps


@dataclass
class Stage:
    """The state of one stage: its files and what later steps and the container inherit."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "0"
    healthcheck: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


class Build:
    """Replays a Dockerfile: the stage being built is always in the same folder, `root`."""

    def __init__(self, context: Path, folder: Path, python: str, host: dict[str, str]) -> None:
        self.context, self.folder, self.python = context, folder, python
        self.host = host  # variables of this machine that commands need, such as those of pip
        self.root = folder / "root"
        self.stages: dict[str, Stage] = {}
        self.ran: list[str] = []

    def build(self, text: str, arguments: dict[str, str] | None = None) -> Stage:
        """Run all steps with the given build arguments; return the last stage."""
        given, defaults, name = dict(arguments or {}), {}, None
        for step in parse(text):
            if step.name == "ARG":
                key, _, default = step.rest.partition("=")
                value = given.get(key, default or defaults.get(key, ""))
                (defaults if name is None else self.stages[name].arguments)[key] = value
            elif step.name == "FROM":
                if name is not None:
                    self.root.rename(self.stages[name].folder)
                base, _, alias = expanded(step.rest, defaults).partition(" AS ")
                name = alias or f"stage {len(self.stages)}"
                self.start(name, base)
            else:
                getattr(self, f"do_{step.name.lower()}")(self.stages[name], step)
        return self.stages[name]

    def start(self, name: str, base: str) -> None:
        """Begin a stage from an earlier one, or from the image of Python."""
        folder = self.folder / name.replace(" ", "-")
        if base in self.stages:
            parent = self.stages[base]
            self.stages[name] = Stage(folder, dict(parent.env), dict(parent.arguments), parent.workdir)
            shutil.copytree(parent.folder, self.root, symlinks=True)
            return
        assert re.fullmatch(r"python:[\d.]+-slim", base), base
        binaries = self.root / "opt" / "python"
        binaries.mkdir(parents=True)
        (binaries / "python").write_text(f'#!/bin/sh\nexec {self.python} "$@"\n')
        (binaries / "python").chmod(0o755)
        for place in ("etc", "tmp"):
            (self.root / place).mkdir()
        (self.root / "tmp").chmod(0o1777)
        self.stages[name] = Stage(folder, {"PATH": "/opt/python:/usr/bin:/bin"})

    def path(self, place: str) -> Path:
        """The path of a file of the image on this machine."""
        return self.root / place.lstrip("/")

    def rewritten(self, text: str) -> str:
        """A text with the absolute paths of the image as paths on this machine."""
        return IMAGE_PATH.sub(lambda match: f"{self.root}/{match[1]}", text)

    def environment(self, stage: Stage) -> dict[str, str]:
        """The variables that a command sees."""
        own = {**stage.arguments, **stage.env}
        rewritten = {key: self.rewritten(value) for key, value in own.items()}
        return {**self.host, **rewritten, "TMPDIR": str(self.root / "tmp")}

    def do_env(self, stage: Stage, step: Step) -> None:
        for key, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|(\S*))', step.rest):
            stage.env[key] = expanded(quoted or plain, {**stage.arguments, **stage.env})

    def do_workdir(self, stage: Stage, step: Step) -> None:
        stage.workdir = step.rest
        self.path(step.rest).mkdir(parents=True, exist_ok=True)

    def do_copy(self, stage: Stage, step: Step) -> None:
        *sources, target = step.words
        origin = self.stages[step.options["from"]].folder if "from" in step.options else self.context
        place = self.path(os.path.join(stage.workdir, target))
        for name in sources:
            source = origin / name.lstrip("/")
            if source.is_dir():
                # The only pattern of .dockerignore that concerns folders that are copied.
                ignored = shutil.ignore_patterns("__pycache__") if origin == self.context else None
                shutil.copytree(source, place, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                shutil.copy(source, place / source.name if target.endswith("/") else place)

    def do_run(self, stage: Stage, step: Step) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", self.rewritten(step.rest)],
            cwd=self.path(stage.workdir),
            env=self.environment(stage),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"RUN {step.rest}\n{done.stdout}\n{done.stderr}"
        self.ran.append(step.rest)

    def do_user(self, stage: Stage, step: Step) -> None:
        stage.user = step.rest

    def do_expose(self, stage: Stage, step: Step) -> None:
        """A note for readers: publishes nothing."""

    def do_healthcheck(self, stage: Stage, step: Step) -> None:
        assert step.rest.startswith("CMD "), step.rest
        stage.healthcheck = json.loads(step.rest.removeprefix("CMD "))

    def do_entrypoint(self, stage: Stage, step: Step) -> None:
        stage.entrypoint = step.words

    def do_cmd(self, stage: Stage, step: Step) -> None:
        stage.command = step.words


def expanded(text: str, variables: dict[str, str]) -> str:
    """A text with ``$NAME`` and ``${NAME}`` replaced, as Docker does outside of RUN."""
    return VARIABLE.sub(lambda match: variables[match[1] or match[2]], text)
