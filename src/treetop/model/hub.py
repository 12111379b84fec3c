"""Models on the Hugging Face Hub, through the library's own mixin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from treetop.errors import TreetopError
from treetop.model import layout
from treetop.runtime.extras import require

# What a model folder holds: a repository may have other files, which need not be fetched.
PATTERNS = ["*.json", "*.safetensors", "*.txt", "*.md", "*.jsonl", "*.model", "*.onnx"]


def hub_model() -> Any:
    """The class that the library's mixin makes able to save, load and push."""
    require("Hugging Face Hub methods", "hub")
    from huggingface_hub import ModelHubMixin, snapshot_download

    class HubModel(ModelHubMixin, library_name="treetop", pipeline_tag="text-classification"):
        """A model as the mixin wants it: something to save, or the folder it was fetched to."""

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
            folder = model_id
            if not Path(model_id).is_dir():
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


class HubMixin:
    """What a model can do with the Hub."""

    def save(self, folder: str | Path, measured: dict[str, Any] | None = None) -> None:
        """Write the model folder."""
        raise NotImplementedError

    def save_pretrained(
        self,
        folder: str | Path,
        *,
        push_to_hub: bool = False,
        repo_id: str | None = None,
        **options: Any,
    ) -> Any:
        """Save to a folder, and push it if `push_to_hub=True`; options are those of `push_to_hub`.

        `repo_id` is the name on the Hub; that of the folder if it is not given.
        """
        if push_to_hub:
            hub_model()  # raises if the library is missing
        # Not the mixin's own method: it deletes the config.json of any folder before it saves.
        self.save(folder)
        if not push_to_hub:
            return None
        return self.push_to_hub(repo_id or Path(folder).name, **options)

    def push_to_hub(self, name: str, **options: Any) -> Any:
        """Upload to the Hub as `name`, in one commit; options are huggingface_hub's."""
        with explained(name):
            return hub_model()(self.save).push_to_hub(name, **options)


def fetch(name: str | Path, **options: Any) -> Path:
    """The folder of the model of this name on the Hub; a folder as it is."""
    if Path(name).is_dir():
        layout.read_config(Path(name), verify=False)
    with explained(str(name)):
        folder: Path = hub_model().from_pretrained(str(name), **options).folder
        return folder


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Errors of the Hub as one line."""
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
