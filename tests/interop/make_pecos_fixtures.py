"""Makes tests/interop/pecos: small models of the real libpecos, and what it predicts with them.

Run in an environment of its own:

    pip install libpecos==1.2.8 "transformers==4.36.2" "torch==2.13.0" "numpy<2" "scipy<1.14"
    python tests/interop/make_pecos_fixtures.py tests/interop/pecos
"""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from pecos.utils.featurization.text.vectorizers import Vectorizer
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear import XLinearModel
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText
from sklearn.preprocessing import normalize
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    BertTokenizerFast,
    DistilBertConfig,
    DistilBertModel,
    DistilBertTokenizerFast,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizerFast,
    XLNetConfig,
    XLNetModel,
    XLNetTokenizerFast,
)

WORDS = [
    f"{a}{b}"
    for a in ("Ka", "lo", "mi", "ru", "se", "to")
    for b in ("ban", "dir", "fen", "gul", "hop", "ä?")
]


def corpus(seed, count):
    chosen = random.Random(seed)
    texts, labels = [], []
    for _ in range(count):
        words = [chosen.choice(WORDS) for _ in range(chosen.randint(3, 9))]
        texts.append(" ".join(words) + chosen.choice(["", "  twice", " unseen\tword", " "]))
        labels.append(sorted({WORDS.index(word) % 30 for word in words[:3]}))
    return texts, labels


def matrix(lines, width=30):
    rows = [number for number, line in enumerate(lines) for _ in line]
    return sp.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, [one for line in lines for one in line])),
        shape=(len(lines), width),
    )


LIVELY = {"initializer_range": 0.5}  # vectors of texts that differ
SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}


def pieces():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return [*special, *sorted({w.lower() for w in WORDS}), "##?", "?"]


def tiny_bert(folder, tokenizer=BertTokenizerFast, model=BertModel, config=None):
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(pieces()) + "\n")
    tokenizer(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    model(config or BertConfig(**SMALL)).save_pretrained(folder)


def tiny_distilbert(folder):
    sizes = {"vocab_size": 60, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    config = DistilBertConfig(**sizes, max_position_embeddings=64, **LIVELY)
    tiny_bert(folder, DistilBertTokenizerFast, DistilBertModel, config)


def tiny_roberta(folder):
    folder.mkdir(parents=True)
    characters = sorted(set(pre_tokenizers.ByteLevel.alphabet()))
    merges = ["Ġ K", "Ġ l", "Ġ m", "a n", "g u", "i r", "e n", "o p", "ĠK a", "Ġl o", "gu l"]
    known = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *characters]
    known += [merge.replace(" ", "") for merge in merges]
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(known)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", "utf-8")
    RobertaTokenizerFast(
        vocab_file=str(folder / "vocab.json"), merges_file=str(folder / "merges.txt")
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {**SMALL, "vocab_size": len(known), "hidden_size": 8, "intermediate_size": 16}
    sizes |= {"num_hidden_layers": 1, "max_position_embeddings": 66, "pad_token_id": 1}
    RobertaModel(RobertaConfig(**sizes, **LIVELY)).save_pretrained(folder)


def tiny_xlnet(folder):
    """With a tokenizer that is built as transformers builds it from XLNet's sentence pieces."""
    folder.mkdir(parents=True)
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
    plain = [word.replace("ä", "a") for word in WORDS]
    known = ["▁", *sorted({f"▁{word[:2]}" for word in plain} | {word[2:] for word in plain})]
    scores = [(piece, 0.0) for piece in special] + [(p, -2.0 - n / 10) for n, p in enumerate(known)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    steps = [normalizers.NFKD(), normalizers.StripAccents(), spaces]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    numbers = [("<sep>", special.index("<sep>")), ("<cls>", special.index("<cls>"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=numbers,
    )
    XLNetTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"vocab_size": len(scores), "d_model": 8, "n_layer": 1, "n_head": 2, "d_inner": 16}
    XLNetModel(XLNetConfig(**sizes, **LIVELY)).save_pretrained(folder)


def by_level(transforms, beams):
    """PECOS's prediction parameters of each level."""
    return [
        {"post_processor": transform, "only_topk": beam}
        for transform, beam in zip(transforms, beams, strict=True)
    ]


HINGES, RAW_LAST = ["l3-hinge"] * 3, ["l3-hinge", "l3-hinge", "noop"]
TREE = {"nr_splits": 3, "max_leaf_size": 5}
LINEAR = {  # name: cost of the bias, prediction by level
    "raw-last": (0.5, by_level(RAW_LAST, [20, 20, 20])),
    "beams": (1.0, by_level(HINGES, [2, 3, 10])),
}
TRANSFORMERS = {  # name: encoder, bias, prediction by level
    "bert-by-level": (tiny_bert, 2.0, by_level(RAW_LAST, [2, 3, 10])),
    "roberta": (tiny_roberta, 1.0, by_level(HINGES, [20, 20, 20])),
    "xlnet": (tiny_xlnet, 1.0, by_level(RAW_LAST, [2, 4, 20])),
    "distilbert": (tiny_distilbert, -1.0, by_level(HINGES, [3, 5, 20])),
}


def train_linear(target, name, X, Xt, Y, *, pred_params=None, **params):
    model = XLinearModel.train(X, Y, pred_params=pred_params, **{"threshold": 0.1, **params})
    model.save(str(target / name))
    sp.save_npz(target / f"{name}.npz", model.predict(Xt))


def train_transformer(target, name, encoder, train, test, bias=1.0, levels=None):
    """Train on texts, labels and features; predict from texts and features."""
    texts, Y, X = train
    encoder(target / "encoder")
    np.random.seed(0)
    matcher = {
        "model_shortcut": str(target / "encoder"),
        "max_steps": 5,
        "num_train_epochs": 1,
        "batch_size": 8,
        "save_steps": 5,
        "logging_steps": 5,
        "batch_gen_workers": 1,
    }
    params = {
        "matcher_params_chain": matcher,
        "preliminary_indexer_params": TREE,
        "refined_indexer_params": TREE,
        "ranker_params": {"hlm_args": {"model_chain": {"bias": bias, "threshold": 0.1}}},
    }
    predicting = {"matcher_params_chain": {"truncate_length": 12}}
    if levels:
        predicting["ranker_params"] = {"hlm_args": {"model_chain": levels}}
    model = XTransformer.train(
        MLProblemWithText(texts, Y, X_feat=X),
        train_params=XTransformer.TrainParams.from_dict(params, recursive=True),
        pred_params=XTransformer.PredParams.from_dict(predicting, recursive=True),
        use_gpu=False,
    )
    model.save(str(target / name))
    again = XTransformer.load(str(target / name))  # as a user of the saved model sees it
    expected = again.predict(test[0], X_feat=test[1], use_gpu=False, batch_gen_workers=1)
    sp.save_npz(target / f"{name}.npz", expected)
    (target / name / "text_encoder" / "text_model").write_bytes(b"never read")
    shutil.rmtree(target / "encoder")


def main(target):
    target = target.resolve()
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    texts, labels = corpus(0, 200)
    test, _ = corpus(1, 20)
    Y = matrix(labels)
    config = {
        "type": "tfidf",
        "kwargs": {"base_vect_configs": [{"ngram_range": [1, 2], "analyzer": "word"}]},
    }
    words = Vectorizer.train(texts, config)
    words.save(str(target / "words"))
    X, Xt = (words.predict(some).tocsr().astype(np.float32) for some in (texts, test))
    sp.save_npz(target / "X.npz", Xt)
    (target / "test.txt").write_text("\n".join(test) + "\n", "utf-8")
    (target / "labels.txt").write_text("".join(f"label {number}\n" for number in range(30)))
    Z = LabelEmbeddingFactory.create(Y, X, method="pifa")
    C = Indexer.gen(Z, indexer_type="hierarchicalkmeans", nr_splits=3, max_leaf_size=5, seed=0)
    kinds = {"linear": {"C": C}, "no-bias": {"C": C, "bias": -1.0}, "flat": {"C": None}}
    for name, change in kinds.items():
        train_linear(target, name, X, Xt, Y, **change)
    train_transformer(target, "transformer", tiny_bert, (texts, Y, X), (test, Xt))
    # The others have the most frequent features only, so that their files are small.
    frequent = np.sort(np.argsort(-X.getnnz(0), kind="stable")[:40])
    X, Xt = normalize(X[:, frequent]), normalize(Xt[:, frequent])
    sp.save_npz(target / "X-frequent.npz", Xt)
    for name, (bias, levels) in LINEAR.items():
        predicting = XLinearModel.PredParams.from_dict(
            {"hlm_args": {"model_chain": levels}}, recursive=True
        )
        train_linear(target, name, X, Xt, Y, C=C, bias=bias, pred_params=predicting)
    for name, (encoder, bias, levels) in TRANSFORMERS.items():
        train_transformer(target, name, encoder, (texts, Y, X), (test, Xt), bias, levels)
    for path in target.rglob("*.json"):  # no path of this machine
        path.write_text(re.sub(r'"/[^"]{2,}"', '"x"', path.read_text("utf-8")), "utf-8")
    for kind in ("xlinear", "xtransformer"):
        command = [sys.executable, "-m", f"pecos.xmc.{kind}.train", "--generate-params-skeleton"]
        done = subprocess.run(command, capture_output=True, check=True)
        (target / f"{kind}-params.json").write_bytes(done.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
