"""Restricted views of settings, so that a stage cannot depend on settings it does not declare."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from treetop.settings.schema import LinearSettings

Kind = TypeVar("Kind", bound=LinearSettings)


class UndeclaredSettingError(RuntimeError):
    """Raised when a stage reads a setting that is not part of its fingerprint."""


class DeclaredSettings:
    """Settings restricted to `names`; their methods work, but are restricted in the same way."""

    def __init__(self, settings: LinearSettings, names: Iterable[str], stage: str) -> None:
        self._settings, self._names, self._stage = settings, frozenset(names), stage

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kind = type(self._settings)
        if name not in kind.__dataclass_fields__:
            method = getattr(kind, name)
            return method.__get__(self, kind)
        if name not in self._names:
            raise UndeclaredSettingError(f"the stage {self._stage} reads {name} without declaring it")
        return getattr(self._settings, name)


def declared(settings: Kind, names: Iterable[str], stage: str) -> Kind:
    """Restrict `settings` so that reading any setting but `names` raises an error."""
    return cast(Kind, DeclaredSettings(settings, names, stage))
