"""Models on the Hugging Face Hub, through `huggingface_hub.ModelHubMixin`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict, Unpack

from treetop.errors import TreetopError
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
    """Create the class through which huggingface_hub uploads and downloads model folders."""
    require("Hugging Face Hub methods", "hub")
    from huggingface_hub import ModelHubMixin, snapshot_download

    class HubModel(ModelHubMixin, library_name="treetop", pipeline_tag="text-classification"):
        """A model to upload (`save`), or the `folder` it was downloaded to."""

        def __init__(self, save: Callable[[Path], None] | None, folder: Path | None = None) -> None:
            self.save_to, self.folder = save, folder

        def _save_pretrained(self, save_directory: Path) -> None:
            assert self.save_to is not None
            self.save_to(save_directory)

        @classmethod
        def _from_pretrained(
            cls,
            *,
            model_id: str,
            revision: str | None,
            cache_dir: Any,
            force_download: bool,
            local_files_only: bool,
            token: Any,
            **_: Any,
        ) -> HubModel:
            folder = snapshot_download(
                model_id,
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                allow_patterns=PATTERNS,
            )
            return cls(None, Path(folder))

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
    """Download a model from the Hub, unless `name` is a folder, and return its folder."""
    if Path(name).is_dir():
        return Path(name)
    with model_errors(str(name)):
        folder: Path = hub_model().from_pretrained(str(name), **options).folder
        return folder


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
