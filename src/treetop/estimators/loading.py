"""Estimators from folders, from the Hugging Face Hub and from presets."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from treetop.estimators.ensemble import KINDS, Ensemble, estimator_of
from treetop.estimators.linear import XRLinear
from treetop.estimators.transformer import XRTransformer
from treetop.model.folder import read_model
from treetop.model.hub import DownloadOptions, fetch
from treetop.runtime import Runtime
from treetop.runtime.tables import html_table
from treetop.settings import presets as preset_files


def load(
    folder: str | Path, verify: bool | None = None, runtime: Runtime | None = None
) -> XRLinear | XRTransformer | Ensemble:
    """Load a model from a folder that `save` or ``treetop train`` wrote.

    Weights stay on disk until they are used, so that large models load at once.

    Parameters
    ----------
    folder : str or Path
        The model folder.
    verify : bool, optional
        Verify checksums; by default only those of small models. Sizes are always checked.
    runtime : Runtime, optional
        Threads, device and precision of all further calls.

    Returns
    -------
    XRLinear, XRTransformer or Ensemble
        The fitted estimator.

    Examples
    --------
    >>> import treetop
    >>> texts, labels = ["red apple", "green grass"] * 5, [["red"], ["green"]] * 5
    >>> treetop.XRLinear().fit(texts, labels).save("my-model")
    >>> treetop.load("my-model").predict(["red"], k=1)[0][0][0]
    'red'
    """
    return estimator_of(read_model(Path(folder), verify, runtime), runtime)


def from_pretrained(
    name: str | Path,
    verify: bool | None = None,
    runtime: Runtime | None = None,
    **options: Unpack[DownloadOptions],
) -> XRLinear | XRTransformer | Ensemble:
    """Load a model from the Hugging Face Hub or from a folder.

    Downloads require the extra ``hub``: ``pip install 'treetop-xmc[hub]'``.

    Parameters
    ----------
    name : str or Path
        Name on the Hub, such as ``"user/model"``, or a model folder.
    verify, runtime
        As for `load`.
    **options
        Options of huggingface_hub: ``revision``, ``cache_dir``, ``force_download``,
        ``local_files_only``, ``token``.

    Returns
    -------
    XRLinear, XRTransformer or Ensemble
        The fitted estimator.

    Examples
    --------
    >>> model = treetop.from_pretrained("user/model", revision="main")  # doctest: +SKIP
    """
    return load(fetch(name, **options), verify, runtime)


def from_preset(name: str, **settings: object) -> XRLinear | XRTransformer:
    """Make an estimator with the settings of a preset, of the class that the preset is for.

    Parameters
    ----------
    name : str
        Name of a preset (`treetop.presets` lists them) or path of a JSON file.
    **settings
        Settings that replace those of the preset.

    Returns
    -------
    XRLinear or XRTransformer
        An estimator that is not fitted yet.

    Examples
    --------
    >>> import treetop
    >>> treetop.from_preset("fast")
    XRLinear(ngrams='word:1', trees=1, passes=5, tolerance=1.0)
    >>> treetop.from_preset("frozen", seed=1)
    XRTransformer(seed=1, dense_weight=0.5, fine_tune=False)
    """
    return KINDS[preset_files.kind_of(name)].from_preset(name, **settings)


class PresetList(dict[str, str]):
    """Names of presets with a sentence about each: a dict that prints as a list."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {about}" for name, about in self.items())

    def _repr_html_(self) -> str:
        return html_table(self.items(), ("preset", "what it is"), numbers=False)


def presets() -> PresetList:
    """List the presets that `from_preset` takes, general ones first.

    Returns
    -------
    PresetList
        A dict from the name of each preset to a sentence about it, which prints as a list.

    Examples
    --------
    >>> import treetop
    >>> treetop.presets()["bonsai"]
    'Shallow, unbalanced trees, as in Bonsai'
    >>> print(treetop.presets())  # doctest: +ELLIPSIS
    xr-linear              The defaults of XRLinear
    ...
    """
    names = preset_files.names()
    return PresetList({name: preset_files.read_preset(name)["about"] for name in names})
