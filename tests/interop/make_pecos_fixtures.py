"""Makes tests/interop/pecos: small models of the real libpecos, and what it predicts with them.

Run in an environment of its own:

    pip install libpecos==1.2.8 "transformers==4.36.2" "torch==2.13.0" "numpy<2" "scipy<1.14"
    python tests/interop/make_pecos_fixtures.py tests/interop/pecos
"""

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
from transformers import BertConfig, BertModel, BertTokenizerFast

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


def tiny_bert(folder):
    folder.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text(
        "\n".join([*special, *sorted({w.lower() for w in WORDS}), "##?", "?"]) + "\n"
    )
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)


def main(target):
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
    kinds = {"linear": {}, "no-bias": {"bias": -1.0}, "flat": {"C": None}}
    for name, change in kinds.items():
        model = XLinearModel.train(X, Y, **{"C": C, "threshold": 0.1, **change})
        model.save(str(target / name))
        sp.save_npz(target / f"{name}.npz", model.predict(Xt))
    tiny_bert(target / "bert")
    matcher = {
        "model_shortcut": str(target / "bert"),
        "max_steps": 5,
        "num_train_epochs": 1,
        "batch_size": 8,
        "save_steps": 5,
        "logging_steps": 5,
        "batch_gen_workers": 1,
    }
    tree = {"nr_splits": 3, "max_leaf_size": 5}
    params = {
        "matcher_params_chain": matcher,
        "preliminary_indexer_params": tree,
        "refined_indexer_params": tree,
    }
    model = XTransformer.train(
        MLProblemWithText(texts, Y, X_feat=X),
        train_params=XTransformer.TrainParams.from_dict(params, recursive=True),
        pred_params=XTransformer.PredParams.from_dict(
            {"matcher_params_chain": {"truncate_length": 12}}, recursive=True
        ),
        use_gpu=False,
    )
    model.save(str(target / "transformer"))
    sp.save_npz(
        target / "transformer.npz", model.predict(test, X_feat=Xt, use_gpu=False, batch_gen_workers=1)
    )
    (target / "transformer" / "text_encoder" / "text_model").write_bytes(b"never read")
    shutil.rmtree(target / "bert")
    for path in target.rglob("*.json"):  # no path of this machine
        path.write_text(re.sub(r'"[^"]*/[^"]*"', '"x"', path.read_text("utf-8")), "utf-8")
    for kind in ("xlinear", "xtransformer"):
        command = [sys.executable, "-m", f"pecos.xmc.{kind}.train", "--generate-params-skeleton"]
        done = subprocess.run(command, capture_output=True, check=True)
        (target / f"{kind}-params.json").write_bytes(done.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
