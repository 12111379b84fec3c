"""Conversion between settings and named values: constructors, presets, options, model folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from typing import Any, TypeVar

from treetop.errors import TreetopError
from treetop.fields import check_fields, documented_fields
from treetop.runtime import Runtime
from treetop.settings.names import RENAMED, renamed, unknown_name
from treetop.settings.notation import parse_budget
from treetop.settings.schema import LinearSettings, TransformerSettings

Kind = TypeVar("Kind", bound=LinearSettings)
# Fields of `Runtime` that the constructor of XRTransformer, presets and ``--set`` accept as well.
ENCODER_OPTIONS = (
    "device",
    "precision",
    "cuda_graphs",
    "fused_layers",
    "fallback",
    "checkpoint_minutes",
    "deterministic",
    "stall_minutes",
    "tensorboard",
)


@dataclass(frozen=True)
class Parameters:
    """Parameters of a constructor: settings of the method and options of the runtime."""

    settings_type: type[LinearSettings]
    runtime_options: tuple[str, ...]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The default of each parameter, in order."""
        runtime = documented_fields(Runtime)
        parameters = documented_fields(self.settings_type) | {
            n: runtime[n] for n in self.runtime_options
        }
        return {name: field.default for name, field in parameters.items()}

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return `values` by current names; an unknown name is an error."""
        named = renamed(values, stacklevel=4)
        for name in named:
            if name not in self.defaults:
                raise unknown_name(name, self.defaults, TRANSFORMER.defaults)
        return named

    def settings(self, values: Mapping[str, Any]) -> LinearSettings:
        """Return the settings of the method among `values`, validated."""
        own = {name: value for name, value in values.items() if name not in self.runtime_options}
        settings = make_settings(own, self.settings_type)
        check_shares(settings)
        return settings

    def runtime(self, values: Mapping[str, Any]) -> Runtime:
        """Return the runtime with the options among `values`, validated."""
        options = {name: values[name] for name in self.runtime_options if name in values}
        try:  # cached, because every prediction asks for it
            return runtime_of(tuple((name, type(value), value) for name, value in options.items()))
        except TypeError:  # an unhashable value, which is invalid anyway
            return Runtime(**options)


@cache
def runtime_of(options: tuple[tuple[str, type, Any], ...]) -> Runtime:
    """Return a runtime with these options: name, type (since 1 equals True) and value of each."""
    return Runtime(**{name: value for name, _, value in options})


LINEAR = Parameters(LinearSettings, ("threads", "memory", "verbose"))
TRANSFORMER = Parameters(TransformerSettings, ("threads", "memory", "verbose", *ENCODER_OPTIONS))
PARAMETERS = {"xr-linear": LINEAR, "xr-transformer": TRANSFORMER}


def make_settings(values: Mapping[str, Any], kind: type[Kind] = LinearSettings) -> Kind:  # type: ignore[assignment]
    """Construct settings; an unknown name or an invalid value is an error."""
    known = documented_fields(kind)
    for name in values:
        if name not in known:
            raise unknown_name(name, known)
    settings = kind(**values)
    check_fields(settings)
    return settings


def check_shares(settings: LinearSettings) -> None:
    """Raise for fractions and totals that cannot be meant; older model folders may hold them."""
    for name in ("min_df", "max_df"):
        share = getattr(settings, name)
        if isinstance(share, float) and share > 1:
            raise TreetopError(
                f"{name} is {share}: a fraction of all documents is at most 1.0; for a number of "
                f"documents give an integer, such as {int(share)}"
            )
    if settings.max_df == 0:
        raise TreetopError("max_df is 0, which drops every n-gram: 1.0 keeps all")
    if not isinstance(settings, TransformerSettings) or not settings.fine_tune:
        return
    if sum(parse_budget(settings.budget).figures) == 0:
        raise TreetopError(
            f"budget is {settings.budget!r}: it must be above 0; "
            "fine_tune=false keeps the encoder frozen"
        )


def check_parameters(kind: str, values: Mapping[str, Any]) -> None:
    """Raise unless a model of `kind` can be constructed with these values."""
    parameters = PARAMETERS[kind]
    named = parameters.named(values)
    parameters.settings(named)
    parameters.runtime(named)


def to_json(settings: LinearSettings) -> dict[str, Any]:
    """Convert settings to values that JSON can represent."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(settings).items()
    }


def from_json(values: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """Construct the settings of a model folder; runtime options, saved by old versions, are ignored."""
    runtime = documented_fields(Runtime)
    own = {RENAMED.get(name, name): value for name, value in values.items() if name not in runtime}
    return make_settings(own, kind)


def to_parameters(
    settings: LinearSettings, asked: Mapping[str, Any], parameters: Parameters, runtime: Runtime | None
) -> dict[str, Any]:
    """Return the constructor arguments that give a model its settings, and a runtime its options.

    `asked` holds the original values of the settings that were resolved from the data.
    """
    options = {} if runtime is None else {n: getattr(runtime, n) for n in parameters.runtime_options}
    return {**vars(settings), **asked, **options}
