"""Which models ``treetop train`` trains: one, or the members of an ensemble, each with its settings."""

from __future__ import annotations

import difflib
from typing import Any

from treetop.cli.options import TrainOptions
from treetop.errors import TreetopError
from treetop.features.encoders.opening import needs_torch
from treetop.ranking.combining import check_combine
from treetop.settings import presets
from treetop.settings.making import PARAMETERS, check_parameters
from treetop.settings.names import ELSEWHERE, renamed
from treetop.settings.notation import parse_assignment
from treetop.settings.quality import quality_settings

LINEAR, TRANSFORMER = "xr-linear", "xr-transformer"
Settings = dict[str, Any]


def model_kind(options: TrainOptions) -> str:
    """The kind of model: ``--model``, else the preset's, else xr-linear."""
    kind = options.model or (presets.kind_of(options.preset) if options.preset else LINEAR)
    if options.model is None and options.preset is None and tries_encoder(options):
        return TRANSFORMER
    if kind not in PARAMETERS:
        near = difflib.get_close_matches(kind.lower().replace("_", "-"), PARAMETERS, 1, 0.7)
        if near:
            raise TreetopError(f"unknown model {kind!r}: did you mean {near[0]}?")
        raise TreetopError(
            f"unknown model {kind!r}: choose one of {', '.join(PARAMETERS)}; "
            "the name of an encoder goes to --encoder"
        )
    return kind


def tries_encoder(options: TrainOptions) -> bool:
    """Whether the dial may use the encoder that is given, if it pays."""
    return options.encoder is not None and (options.quality == "best" or options.time is not None)


def model_settings(options: TrainOptions, kind: str) -> Settings:
    """The settings of the quality, changed by the preset, by options and then by ``--set``."""
    chosen = {}
    if options.quality is not None and options.time is None:
        chosen = quality_settings(options.quality, kind)
    if options.preset:
        chosen |= presets.settings_of(options.preset, kind)
    if options.encoder is not None:
        if kind != TRANSFORMER:
            raise TreetopError(
                "--encoder is for --model xr-transformer or --quality best: add one, or leave it out"
            )
        chosen["encoder"] = options.encoder
    if options.optimize is not None:
        chosen["optimize"] = options.optimize
    return {**chosen, **parse_assignments(options.assignments)}


def parse_assignments(assignments: tuple[str, ...]) -> Settings:
    """Settings from ``NAME=VALUE`` strings, under the names that are current."""
    return renamed(dict(map(parse_assignment, assignments)))


def variants(options: TrainOptions, kind: str) -> tuple[list[Settings], str]:
    """The settings of each model to train, all checked, and how the models are combined."""
    common, combine = model_settings(options, kind), "average"
    changes: list[Settings] = [{}]
    if options.combine is not None:
        check_combine(options.combine, f"--combine {options.combine}")
    if options.ensemble and (options.member or options.encoder):
        raise TreetopError(
            "--ensemble takes the members from the preset: leave out --member, --encoder"
        )
    if options.ensemble:
        if options.preset is None:
            raise TreetopError("--ensemble takes the members from a preset: give --preset or --member")
        changes, combine = presets.ensemble_of(options.preset)
    elif options.member:
        changes = [parse_assignments(tuple(member.split(","))) for member in options.member]
    members = [{**common, **change} for change in changes]
    for settings in members:
        check_setting_names(kind, settings)
        check_parameters(kind, settings)
    return members, options.combine or combine


def check_setting_names(kind: str, settings: Settings) -> None:
    """Raise a `TreetopError` for a setting that only the other kind of model has."""
    own, other = PARAMETERS[kind].defaults, PARAMETERS[TRANSFORMER].defaults
    for name in settings:
        meant = name if name in other else ELSEWHERE.get(name)
        if name not in own and meant in other and meant not in own:
            raise TreetopError(
                f"unknown setting {name!r}: {meant!r} is a setting of xr-transformer: "
                "add --model xr-transformer, or leave it out"
            )


def encoders_for_torch(kind: str, members: list[Settings]) -> set[str]:
    """The names of the encoders that the members need torch for."""
    if kind != TRANSFORMER:
        return set()
    default = PARAMETERS[TRANSFORMER].defaults["encoder"]
    names = {str(settings.get("encoder", default)) for settings in members}
    return set(filter(needs_torch, names))
