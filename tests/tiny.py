"""Tiny random encoders of every family, with a tokenizer that knows the words of the tests."""

from pathlib import Path

import numpy as np

WORDS = (
    "red",
    "green",
    "blue",
    "apple",
    "pear",
    "cherry",
    "grass",
    "sky",
    "sea",
    "fire",
    "a",
    "the",
    "of",
    "is",
    "and",
    "tree",
    "car",
    "boat",
)


def tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    vocabulary = {token: number for number, token in enumerate([*special, *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_max_length=64,
    )


SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
FAMILIES = {
    "bert": SMALL,
    "roberta": {**SMALL, "max_position_embeddings": 66},
    "xlm-roberta": {**SMALL, "max_position_embeddings": 66},
    "distilbert": {
        "vocab_size": 40,
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 32,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    },
    "mpnet": {**SMALL, "max_position_embeddings": 66, "relative_attention_num_buckets": 32},
    "electra": {**SMALL, "embedding_size": 16},
    "albert": {**SMALL, "embedding_size": 8},
    "deberta-v2": {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "modernbert": {**SMALL, "global_attn_every_n_layers": 1, "local_attention": 8},
    "xlnet": {
        "vocab_size": 40,
        "d_model": 16,
        "n_layer": 2,
        "n_head": 2,
        "d_inner": 32,
        "pad_token_id": 0,
    },
    "t5": {
        "vocab_size": 40,
        "d_model": 16,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 2,
        "num_heads": 2,
        "pad_token_id": 0,
    },
    "bart": {
        "vocab_size": 40,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    },
    "gpt2": {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
}


def save_encoder(folder: Path, family: str = "bert", seed: int = 0, **changes) -> str:
    """A random model of a family, in a folder as the Hub would have it."""
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(seed)
    config = AutoConfig.for_model(family, **{**FAMILIES[family], **changes})
    AutoModel.from_config(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def documents(count: int = 64, seed: int = 0):
    """Texts whose labels are words they contain, and a label for each pair of neighbours."""
    import random

    chosen = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        words = chosen.sample(WORDS, 4)
        texts.append(" ".join(words))
        labels.append(sorted({words[0], words[1], f"{min(words[:2])}+{max(words[:2])}"}))
    return texts, labels


# Settings with which a training on `documents()` takes a second.
BRIEF = {"max_length": 16, "batch": 16, "budget": "8/12 steps", "first_tree": "6-L", "threads": 2}


def same(one, other) -> bool:
    """Whether two sparse matrices of scores are equal, bit by bit."""
    return one.shape == other.shape and (one != other).nnz == 0


def word_corpus():
    """400 texts of six numbered words, labelled by two of them."""
    rng = np.random.default_rng(0)
    words = [f"word{number}" for number in range(120)]
    rows = [rng.choice(120, 6, replace=False) for _ in range(400)]
    return [" ".join(words[n] for n in row) for row in rows], [
        [words[n] for n in row[:2]] for row in rows
    ]
