"""Settings by scikit-learn's conventions: in the constructor, read and changed by name."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.making import PARAMETERS, Parameters
from treetop.settings.names import renamed
from treetop.settings.schema import LinearSettings


class ParametersMixin:
    """Settings of the method and options of the runtime as attributes, checked by `fit`."""

    kind: ClassVar[str]
    parameters: ClassVar[Parameters]

    def __init__(self, **settings: Any) -> None:
        given = self.parameters.named(settings)
        for name, default in self.parameters.defaults.items():
            setattr(self, name, given.get(name, default))

    def __init_subclass__(cls) -> None:
        cls.parameters = PARAMETERS[cls.kind]
        # scikit-learn, and `help`, read the settings from the constructor's signature.
        cls.__init__.__signature__ = signature_of(cls.parameters)  # type: ignore[attr-defined]

    @classmethod
    def from_preset(cls, name: str, **settings: Any) -> Self:
        """An estimator with a preset's settings, some of them changed."""
        return cls(**{**presets.settings_of(name, cls.kind), **renamed(settings)})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name, as scikit-learn wants them."""
        return {name: getattr(self, name) for name in self.parameters.defaults}

    def set_params(self, **settings: Any) -> Self:
        """Change settings."""
        for name, value in self.parameters.named(settings).items():
            setattr(self, name, value)
        return self

    def _method(self) -> LinearSettings:
        """The settings of the method, checked."""
        return self.parameters.settings(self.get_params())

    def _own_runtime(self) -> Runtime:
        """The runtime that the constructor's options describe, checked."""
        options = self.parameters.runtime_options
        return self.parameters.runtime({name: getattr(self, name) for name in options})

    def __repr__(self) -> str:
        changed = {
            name: getattr(self, name)
            for name, default in self.parameters.defaults.items()
            if getattr(self, name) != default
        }
        listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({listed})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator: texts or a matrix in, several labels out."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, multi_output=True, single_output=True),
            input_tags=InputTags(two_d_array=True, sparse=True, string=True),
        )


def signature_of(parameters: Parameters) -> inspect.Signature:
    """The constructor's signature with every parameter and its default."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    listed = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in parameters.defaults.items()
    ]
    return inspect.Signature([own, *listed])
