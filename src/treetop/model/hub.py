"""Models on the Hugging Face Hub, through `huggingface_hub.ModelHubMixin`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import urlsplit

from treetop.errors import TreetopError
from treetop.features.encoders.hub import (
    HubError,
    HubUnreachableError,
    hub_errors,
    time_limit,
    with_time_limit,
)
from treetop.runtime.extras import require

# Files of a model folder: a repository may have others, which are not downloaded.
PATTERNS = ["*.json", "*.safetensors", "*.txt", "*.md", "*.jsonl", "*.model", "*.onnx"]


class DownloadOptions(TypedDict, total=False):
    """Options of huggingface_hub for downloads."""

    revision: str | None
    cache_dir: str | Path | None
    force_download: bool
    local_files_only: bool
    token: str | bool | None


class UploadOptions(TypedDict, total=False):
    """Options of huggingface_hub for uploads."""

    commit_message: str
    private: bool | None
    token: str | None
    branch: str | None
    create_pr: bool | None
    allow_patterns: list[str] | str | None
    ignore_patterns: list[str] | str | None
    delete_patterns: list[str] | str | None


def hub_model() -> Any:
    """Create the class through which huggingface_hub uploads model folders."""
    require("Hugging Face Hub methods", "hub")
    from huggingface_hub import ModelHubMixin

    class HubModel(ModelHubMixin, library_name="treetop", pipeline_tag="text-classification"):
        """A model to upload, which `save` writes to a folder."""

        def __init__(self, save: Callable[[Path], None]) -> None:
            self.save_to = save

        def _save_pretrained(self, save_directory: Path) -> None:
            self.save_to(save_directory)

    return HubModel


class HubMixin(ABC):
    """Methods that share a model on the Hugging Face Hub."""

    @abstractmethod
    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model folder."""

    def save_pretrained(
        self,
        folder: str | Path,
        *,
        push_to_hub: bool = False,
        repo_id: str | None = None,
        **options: Unpack[UploadOptions],
    ) -> Any:
        """Save the model to a folder and, if asked, upload it.

        Parameters
        ----------
        folder : str or Path
            The model folder, as for `save`.
        push_to_hub : bool, default=False
            Upload the model after saving it.
        repo_id : str, optional
            Name on the Hub, such as ``"user/model"``; by default the name of the folder.
        **options
            Options of `push_to_hub`.

        Returns
        -------
        str or None
            Address of the commit on the Hub, if the model was uploaded.

        Examples
        --------
        >>> import treetop
        >>> model = treetop.XRLinear().fit(["red apple", "green grass"] * 5, [["red"], ["green"]] * 5)
        >>> model.save_pretrained("saved-model")
        >>> treetop.from_pretrained("saved-model").predict(["red"], k=1)[0][0][0]
        'red'
        """
        if push_to_hub:
            hub_model()  # raises if the library is missing
        # Not the mixin's own method: it deletes the config.json of any folder before it saves.
        self.save(folder)
        if not push_to_hub:
            return None
        return self.push_to_hub(repo_id or Path(folder).name, **options)

    def push_to_hub(self, name: str, **options: Unpack[UploadOptions]) -> Any:
        """Upload the model to the Hugging Face Hub in one commit.

        Requires the extra ``hub``: ``pip install 'treetop-xmc[hub]'``.

        Parameters
        ----------
        name : str
            Name on the Hub, such as ``"user/model"``.
        **options
            Options of huggingface_hub: ``commit_message``, ``private``, ``token``, ``branch``,
            ``create_pr``, ``allow_patterns``, ``ignore_patterns``, ``delete_patterns``.

        Returns
        -------
        str
            Address of the commit.

        Examples
        --------
        >>> model.push_to_hub("user/model", private=True)  # doctest: +SKIP
        """
        with model_errors(name):
            return hub_model()(self.save).push_to_hub(name, **options)


def fetch(name: str | Path, **options: Unpack[DownloadOptions]) -> Path:
    """Return a folder, or that of a model on the Hub, which is downloaded unless it is in the cache.

    If the Hub cannot be reached, a model in the cache is used as it is.
    """
    if Path(name).is_dir():
        return Path(name)
    require("Hugging Face Hub methods", "hub")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    unreachable: HubUnreachableError | None = None
    try:
        check_answer(str(name), options)
    except HubUnreachableError as error:
        unreachable = error
        options["local_files_only"] = True
    except HubError as error:
        raise TreetopError(f"{name}: {error}") from None
    try:
        with model_errors(str(name)):
            return Path(snapshot_download(str(name), allow_patterns=PATTERNS, **options))
    except TreetopError as error:
        if unreachable is not None and isinstance(error.__context__, LocalEntryNotFoundError):
            raise TreetopError(f"{name}: {unreachable}") from None
        raise


def check_answer(name: str, options: DownloadOptions) -> None:
    """Raise a `HubError` within seconds if the Hub does not answer; its library retries for minutes."""
    from huggingface_hub import HfApi, constants

    if options.get("local_files_only") or constants.HF_HUB_OFFLINE:
        return
    seconds, host = time_limit(), urlsplit(constants.ENDPOINT).netloc
    revision, token = options.get("revision"), options.get("token")
    with hub_errors(f"not a folder, not in the Hub cache, and {host}", seconds):
        with_time_limit(
            seconds,
            lambda: HfApi().model_info(name, revision=revision, token=token, timeout=seconds),
        )


@contextmanager
def model_errors(name: str) -> Iterator[None]:
    """Turn errors of huggingface_hub into a `TreetopError` of one line."""
    try:
        yield
    except TreetopError:
        raise
    except Exception as error:
        kind = type(error)
        if (
            not kind.__module__.startswith(("huggingface_hub", "httpx", "requests"))
            and kind is not OSError
        ):
            raise
        reason = " ".join(str(error).split())[:200]
        raise TreetopError(f"{name}: not a folder, and the Hub says: {reason}") from None
