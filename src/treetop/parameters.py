"""Settings by scikit-learn's conventions: in the constructor, read and changed by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, TypeVar

from treetop.settings import presets
from treetop.settings.schema import LinearSettings, unknown_setting

Own = TypeVar("Own", bound="Parameters")


class Parameters:
    """Settings as attributes."""

    kind: ClassVar[str]
    settings_type: ClassVar[type[LinearSettings]]

    def __init__(self, **settings: Any) -> None:
        known = {one.name: one.default for one in fields(self.settings_type)}
        for name in settings:
            if name not in known:
                raise unknown_setting(name, known)
        for name, default in known.items():
            setattr(self, name, settings.get(name, default))

    @classmethod
    def from_preset(cls: type[Own], name: str, **settings: Any) -> Own:
        """An estimator with a preset's settings, some of them changed."""
        return cls(**{**presets.settings_of(name, cls.kind), **settings})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name, as scikit-learn wants them."""
        return {one.name: getattr(self, one.name) for one in fields(self.settings_type)}

    def set_params(self: Own, **settings: Any) -> Own:
        """Change settings."""
        for name, value in settings.items():
            if name not in self.get_params():
                raise unknown_setting(name, self.get_params())
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            one.name: getattr(self, one.name)
            for one in fields(self.settings_type)
            if getattr(self, one.name) != one.default
        }
        listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({listed})"

    def __sklearn_tags__(self) -> Any:
        from treetop.sklearn_tags import text_tags

        return text_tags()
