"""scikit-learn's conventions for settings: in the constructor, read and changed by name."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from treetop.fields import documented_fields, parameters_section, plain
from treetop.runtime import Runtime
from treetop.settings import presets
from treetop.settings.making import PARAMETERS, Parameters
from treetop.settings.names import renamed
from treetop.settings.notation import parse_time
from treetop.settings.quality import quality_settings
from treetop.settings.schema import LinearSettings

# The settings are inserted before this section of an estimator's docstring.
NEXT_SECTION = "    Attributes\n    ----------\n"


class ParametersMixin:
    """Settings of the method and options of the runtime as attributes, checked by `fit`."""

    kind: ClassVar[str]
    parameters: ClassVar[Parameters]

    def __init__(self, **settings: object) -> None:
        named = self.parameters.named(settings)
        for name, default in self.parameters.defaults.items():
            setattr(self, name, named.get(name, default))

    def __init_subclass__(cls) -> None:
        cls.parameters = PARAMETERS[cls.kind]
        # scikit-learn and `help` read the settings from the constructor's signature.
        cls.__init__.__signature__ = signature_of(cls.parameters)  # type: ignore[attr-defined]
        if cls.__doc__ and NEXT_SECTION in cls.__doc__:
            section = parameters_of(cls.parameters)
            cls.__doc__ = cls.__doc__.replace(NEXT_SECTION, section + NEXT_SECTION)

    @classmethod
    def from_preset(cls, name: str, **settings: object) -> Self:
        """Make an estimator with the settings of a preset.

        Parameters
        ----------
        name : str
            Name of a preset for this class (`treetop.presets` lists them), or path of a JSON file.
        **settings
            Settings that replace those of the preset.

        Returns
        -------
        estimator
            An estimator that is not fitted yet.

        Examples
        --------
        >>> import treetop
        >>> treetop.XRLinear.from_preset("fast", seed=1)
        XRLinear(ngrams='word:1', trees=1, passes=5, tolerance=1.0, seed=1)
        >>> treetop.XRTransformer.from_preset("frozen")
        XRTransformer(dense_weight=0.5, fine_tune=False)
        """
        return cls(**{**presets.settings_of(name, cls.kind), **renamed(settings)})

    @classmethod
    def of_quality(cls, quality: str, **settings: object) -> Self:
        """Make an estimator that spends little or much: one dial instead of many settings.

        Parameters
        ----------
        quality : {"quick", "balanced", "best"}
            ``"quick"`` trains one model without competition and calibration, ``"balanced"`` has the
            defaults, and ``"best"`` trains five models on different features.
        **settings
            Settings that replace those of the quality.

        Returns
        -------
        estimator
            An estimator that is not fitted yet.

        Examples
        --------
        >>> import treetop
        >>> treetop.XRLinear.of_quality("quick").trees
        1
        """
        return cls(**{**quality_settings(quality, cls.kind), **renamed(settings)})

    @classmethod
    def within(
        cls,
        time: str,
        X: Sequence[str],
        y: object,
        *,
        label_names: Sequence[object] | None = None,
        runtime: Runtime | None = None,
        **settings: object,
    ) -> Self:
        """Make an estimator of the highest quality that is estimated to train within a time.

        The plan consists of settings, which are saved with the model: they reproduce it on any
        machine, however fast.

        Parameters
        ----------
        time : str
            Such as ``"90s"``, ``"10m"`` or ``"2h"``.
        X, y, label_names
            Texts and labels, as for `fit`.
        runtime : Runtime, optional
            Threads and device that will be used.
        **settings
            Settings to keep.

        Returns
        -------
        estimator
            An estimator that is not fitted yet.

        Examples
        --------
        >>> import treetop
        >>> texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
        >>> treetop.XRLinear.within("10m", texts, labels).trees
        5
        """
        from treetop.training import read_labels  # prediction needs neither
        from treetop.training.advice.planning import plan_within

        Y, _ = read_labels(y, label_names)
        place, given = runtime or Runtime(), renamed(settings)
        plan = plan_within(parse_time(time), list(X), Y, cls.kind, given, place)
        return cls(**plan.settings)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name.

        Parameters
        ----------
        deep : bool, default=True
            Has no effect; part of scikit-learn's interface.

        Returns
        -------
        dict
            Every setting and its value.
        """
        return {name: getattr(self, name) for name in self.parameters.defaults}

    def set_params(self, **settings: object) -> Self:
        """Change settings; a fitted model keeps those it was trained with.

        Parameters
        ----------
        **settings
            Settings by name.

        Returns
        -------
        estimator
            The estimator itself.

        Examples
        --------
        >>> import treetop
        >>> treetop.XRLinear().set_params(trees=1)
        XRLinear(trees=1)
        """
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
        listed = ", ".join(f"{name}={plain(value)!r}" for name, value in changed.items())
        return f"{type(self).__name__}({listed})"

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: texts or a matrix in, several labels per document out."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, multi_output=True, single_output=True),
            input_tags=InputTags(two_d_array=True, sparse=True, string=True),
        )


def signature_of(parameters: Parameters) -> inspect.Signature:
    """Make the constructor's signature, with every parameter and its default."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    listed = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in parameters.defaults.items()
    ]
    return inspect.Signature([own, *listed])


def parameters_of(parameters: Parameters) -> str:
    """Write the Parameters section of an estimator's docstring from the help of its settings."""
    runtime_fields = documented_fields(Runtime)
    return parameters_section(
        *documented_fields(parameters.settings_type).values(),
        *(runtime_fields[name] for name in parameters.runtime_options),
    )
