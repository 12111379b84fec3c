"""Encoders on the Hugging Face Hub: those in its cache on disk, and downloads with a time limit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import urlsplit

Result = TypeVar("Result")
# Seconds that the Hub may take to answer. The library's own variable raises it on slow networks.
TIME_LIMIT_VARIABLE, TIME_LIMIT = "HF_HUB_ETAG_TIMEOUT", 5.0
POOLING = "1_Pooling/config.json"
# Weights as the transformers library looks for them, in order of preference.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLED_WEIGHTS = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENIZERS = ("tokenizer*.json", "vocab.txt", "vocab.json", "*.model")
NETWORK_LIBRARIES = ("huggingface_hub", "httpx", "requests", "urllib3")
TEXT_FILES = (".json", ".txt", ".model", ".codes")


class HubError(Exception):
    """Why something cannot be fetched from the Hub, in words that complete an error message."""


class PickledError(HubError):
    """There are no weights but pickled ones."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "it has pickled weights only (pytorch_model.bin), which are never opened, because they may "
            f"run code: if you trust them, convert them (AutoModel.from_pretrained({name!r})"
            ".save_pretrained('encoder'), and AutoTokenizer likewise, in the library transformers), "
            "and give the folder 'encoder'"
        )


class HubUnreachableError(HubError):
    """There is no network, or no answer in time."""


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a configuration, weights and a tokenizer."""
    if not json_object(folder / "config.json"):
        return False
    weights = next((name for name in WEIGHTS if (folder / name).is_file()), None)
    if weights is None or not any(any(folder.glob(pattern)) for pattern in TOKENIZERS):
        return False
    if not weights.endswith(".index.json"):
        return True
    shards = json_object(folder / weights).get("weight_map", {}).values()
    return all((folder / shard).is_file() for shard in shards)


def is_pickled(folder: Path) -> bool:
    """Whether a folder has no weights but pickled ones."""
    return not any((folder / name).is_file() for name in WEIGHTS) and any(
        (folder / name).is_file() for name in PICKLED_WEIGHTS
    )


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file is damaged."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def cached_folder(name: str) -> Path | None:
    """The folder of an encoder in the Hub's cache, if all its files are there. Uses no network.

    Raises `PickledError` if its weights are pickled.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        path = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        return None
    if not isinstance(path, str):
        return None
    folder = Path(path).parent
    if is_pickled(folder):
        raise PickledError(name)
    return folder if is_complete(folder) else None


def pooling_is_known(folder: Path) -> bool:
    """Whether the cache holds the pooling of an encoder, or has recorded that it states none.

    Libraries other than sentence-transformers and treetop do not fetch that file.
    """
    absent = folder.parents[1] / ".no_exist" / folder.name / POOLING
    return (folder / POOLING).is_file() or absent.is_file()


def cached_names() -> list[str]:
    """Names of the encoders in the Hub's cache, in alphabetical order."""
    from huggingface_hub import constants

    names = [
        folder.name.removeprefix("models--").replace("--", "/")
        for folder in Path(constants.HF_HUB_CACHE).glob("models--*")
    ]
    folders = {}
    for name in names:
        with suppress(PickledError):
            folders[name] = cached_folder(name)
    return sorted(name for name, folder in folders.items() if folder and not generates(folder))


def generates(folder: Path) -> bool:
    """Whether a folder holds a decoder, such as GPT-2, by the architectures it names."""
    architectures = json_object(folder / "config.json").get("architectures") or []
    return any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)


def download_encoder(name: str, note: Callable[[str], None]) -> Path:
    """Fetch an encoder into the Hub's cache and return its folder. Raises `HubError`."""
    from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError

    seconds = time_limit()
    host = urlsplit(constants.ENDPOINT).netloc
    if constants.HF_HUB_OFFLINE:
        raise HubError("not in the Hub cache, and HF_HUB_OFFLINE forbids downloads")
    with hub_errors(f"not in the Hub cache, and {host}", seconds):
        info = with_time_limit(
            seconds, lambda: HfApi().model_info(name, timeout=seconds, files_metadata=True)
        )
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    files = needed_files(list(sizes), name)
    size = sum(sizes[file] for file in files)
    note(f"downloading the encoder {name} from {host}" + (f" ({size / 1e6:,.0f} MB)" if size else ""))
    with hub_errors(f"the download stopped (run again to resume it): {host}", seconds), no_bars():
        folder = snapshot_download(name, allow_patterns=files)
        if POOLING not in files:
            with suppress(EntryNotFoundError):  # the cache remembers that there is no such file
                hf_hub_download(name, POOLING)
    return Path(folder)


def needed_files(files: list[str], name: str) -> list[str]:
    """The files of a repository that an encoder consists of, with the weights as safetensors only."""
    top = [file for file in files if "/" not in file]
    single, index = WEIGHTS
    prefix, suffix = os.path.splitext(single)
    shards = [file for file in top if file.startswith(f"{prefix}-") and file.endswith(suffix)]
    weights = [single] if single in top else shards if index in top else []
    if not weights and "config.json" in top and not set(top).isdisjoint(PICKLED_WEIGHTS):
        raise PickledError(name)
    if not weights or "config.json" not in top:
        raise HubError("its repository on the Hub holds no encoder that the transformers library reads")
    pooling = [POOLING] if POOLING in files else []
    return [file for file in top if file.endswith(TEXT_FILES)] + weights + pooling


def time_limit() -> float:
    """Seconds to wait for an answer from the Hub."""
    try:
        return float(os.environ[TIME_LIMIT_VARIABLE])
    except (KeyError, ValueError):
        return TIME_LIMIT


def with_time_limit(seconds: float, work: Callable[[], Result]) -> Result:
    """Return the result of `work`, or raise a `TimeoutError` after this many seconds.

    The timeouts of HTTP libraries limit single reads, but neither DNS look-ups nor responses that
    arrive byte by byte.
    """
    outcome: Queue[tuple[Result | None, BaseException | None]] = Queue()

    def run() -> None:
        try:
            outcome.put((work(), None))
        except BaseException as error:
            outcome.put((None, error))

    Thread(target=run, daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


@contextmanager
def hub_errors(subject: str, seconds: float) -> Iterator[None]:
    """Turn errors of the network and of the Hub into a `HubError` about `subject`."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        yield
    except GatedRepoError:
        raise HubError(
            "access is restricted: accept the terms on its page on the Hub, then run hf auth login"
        ) from None
    except RepositoryNotFoundError:
        raise HubError(
            "no such file or folder, and no such model on the Hub (private ones require hf auth login)"
        ) from None
    except HfHubHTTPError as error:
        raise HubError(f"{subject} answered: {short_reason(error)}") from None
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith(NETWORK_LIBRARIES):
            raise
        if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            reason = f"did not answer within {seconds:g} s ({TIME_LIMIT_VARIABLE} sets the limit)"
        else:
            reason = f"cannot be reached ({short_reason(error)})"
        raise HubUnreachableError(f"{subject} {reason}") from None


def short_reason(error: BaseException) -> str:
    """The message of an error, on one line and not too long."""
    return " ".join(str(error).split())[:200] or type(error).__name__


@contextmanager
def no_bars() -> Iterator[None]:
    """Without the progress bars of the Hub's library, which would garble those of treetop."""
    import huggingface_hub.utils

    utils: Any = huggingface_hub.utils
    if utils.are_progress_bars_disabled():
        yield
        return
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.enable_progress_bars()
