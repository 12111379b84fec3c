"""Settings from names and values, and back: constructors, presets, options and model folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from treetop.fields import check_fields, documented_fields
from treetop.runtime import Runtime
from treetop.settings.names import RENAMED, renamed, unknown_name
from treetop.settings.schema import LinearSettings, TransformerSettings

Kind = TypeVar("Kind", bound=LinearSettings)
# Options of the runtime that a constructor, a preset or ``--set`` may name as well.
ENCODER_OPTIONS = (
    "device",
    "precision",
    "cuda_graphs",
    "fused_layers",
    "fallback",
    "checkpoint_minutes",
    "tensorboard",
)


@dataclass(frozen=True)
class Parameters:
    """What a kind of model is constructed with: settings of its method, options of its runtime."""

    settings_type: type[LinearSettings]
    runtime_options: tuple[str, ...]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Every parameter with its default, in order."""
        own = documented_fields(self.settings_type)
        place = documented_fields(Runtime)
        listed = [*own.values(), *(place[name] for name in self.runtime_options)]
        return {one.name: one.default for one in listed}

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """`values` under today's names; an unknown name is an error."""
        named = renamed(values, stacklevel=4)
        for name in named:
            if name not in self.defaults:
                raise unknown_name(name, self.defaults)
        return named

    def settings(self, values: Mapping[str, Any]) -> LinearSettings:
        """The settings of the method among `values`, checked."""
        place = set(self.runtime_options)
        return make_settings({n: v for n, v in values.items() if n not in place}, self.settings_type)

    def runtime(self, values: Mapping[str, Any]) -> Runtime:
        """The runtime that `values` describe, checked."""
        given = {name: values[name] for name in self.runtime_options if name in values}
        try:  # every prediction asks for it: made once for the same options
            return runtime_of(tuple((name, type(value), value) for name, value in given.items()))
        except TypeError:  # a value that cannot be hashed, which is then no option either
            return Runtime(**given)


@cache
def runtime_of(options: tuple[tuple[str, type, Any], ...]) -> Runtime:
    """A runtime with these options; of what type they are, as 1 and True are equal."""
    return Runtime(**{name: value for name, _, value in options})


LINEAR = Parameters(LinearSettings, ("threads", "verbose"))
TRANSFORMER = Parameters(TransformerSettings, ("threads", "verbose", *ENCODER_OPTIONS))
PARAMETERS = {"xr-linear": LINEAR, "xr-transformer": TRANSFORMER}


def make_settings(values: Mapping[str, Any], kind: type[Kind] = LinearSettings) -> Kind:  # type: ignore[assignment]
    """Settings from names and values; an unknown name or an impossible value is an error."""
    known = documented_fields(kind)
    for name in values:
        if name not in known:
            raise unknown_name(name, known)
    settings = kind(**values)
    check_fields(settings)
    return settings


def check_parameters(kind: str, values: Mapping[str, Any]) -> None:
    """Raise unless a model of `kind` can be constructed with these values."""
    parameters = PARAMETERS[kind]
    named = parameters.named(values)
    parameters.settings(named)
    parameters.runtime(named)


def to_json(settings: LinearSettings) -> dict[str, Any]:
    """Settings as plain values."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
    }


def from_json(values: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """Settings of a model folder. Runtime options, which folders held once, are left out."""
    place = documented_fields(Runtime)
    return make_settings(
        {RENAMED.get(name, name): value for name, value in values.items() if name not in place}, kind
    )


def to_parameters(
    settings: LinearSettings, asked: Mapping[str, Any], parameters: Parameters, runtime: Runtime | None
) -> dict[str, Any]:
    """Constructor's arguments for settings of a model, and for the runtime it is used on.

    `asked`: those of the settings that the data decided, as they were given.
    """
    place = (
        {} if runtime is None else {name: getattr(runtime, name) for name in parameters.runtime_options}
    )
    return {
        **vars(settings),
        **asked,
        **place,
    }


def chosen_values(settings: LinearSettings, names: Iterable[str]) -> dict[str, Any]:
    """Some settings by name."""
    return {name: getattr(settings, name) for name in names}
