"""The stages of training and what they pass on."""

import numpy as np

import treetop
from tests.tiny import BRIEF, documents, same, save_encoder
from treetop.ranking.packing import cells_of
from treetop.runtime.arrays import read_arrays
from treetop.runtime.progress import Reporter


class Names(Reporter):
    def __init__(self):
        self.names = []

    def step(self, name, total=None):
        self.names.append(name)
        return super().step(name, total)


def test_no_nodes_are_predicted_when_training_on_all_nodes(encoder):
    steps = {}
    for which in ("all", "beam"):
        report = Names()
        model = treetop.XRTransformer(encoder=encoder, **BRIEF, tune_shortlist=which)
        model.fit(*documents(), report=report)
        steps[which] = report.names
    assert "matcher, level 1 of 2" in steps["beam"]
    assert not [name for name in steps["all"] if name.startswith("matcher")]
    # texts are tokenized while torch and the model are being loaded
    assert (
        steps["all"].index("tokenizer") < steps["all"].index("tokens") < steps["all"].index("encoder")
    )


def test_texts_are_truncated_to_the_positions_of_the_model(tmp_path):
    encoder = save_encoder(tmp_path / "short", max_position_embeddings=8)
    texts, labels = documents()
    texts = [" ".join([text] * 5) for text in texts]
    for choice in ({}, {"fine_tune": False}):
        run = tmp_path / f"run{len(choice)}"
        settings = {"encoder": encoder, **BRIEF, "max_length": 32, **choice}
        model = treetop.XRTransformer(**settings).fit(texts, labels, run=run)
        assert model.encoder_.max_length == 8
        assert np.diff(read_arrays(run / "shorter-tokens.safetensors")["ptr"]).max() == 8
        # the tokenizer adds the first and the last token
        seen = [" ".join(text.split()[:6]) for text in texts[:4]]
        vectors = model.encoder_.embed_texts(texts[:4])
        np.testing.assert_array_equal(vectors, model.encoder_.embed_texts(seen))
        written = [(path.name, path.stat().st_mtime_ns) for path in sorted(run.glob("*tokens*"))]
        model.fit(texts, labels, run=run, resume=True)
        again = [(path.name, path.stat().st_mtime_ns) for path in sorted(run.glob("*tokens*"))]
        assert again == written


def test_head_share_is_part_of_the_scores_of_the_labels(encoder, fitted):
    without = treetop.XRTransformer(encoder=encoder, **BRIEF, head_share=0.0).fit(*documents())
    texts = documents(20, seed=3)[0]
    assert not same(fitted.predict_scores(texts, 5), without.predict_scores(texts, 5))
    for ranker, plain in zip(fitted.rankers_, without.rankers_, strict=True):
        cells, own = (np.sort(np.abs(cells_of(one.weights).value)) for one in (ranker, plain))
        np.testing.assert_allclose(cells, np.float32(0.85) * own, rtol=1e-5)


def test_head_share_has_no_effect_if_labels_are_not_fine_tuned(encoder):
    coarse = {**BRIEF, "first_tree": "6", "budget": "8 steps"}
    with_share, without = (
        treetop.XRTransformer(encoder=encoder, **coarse, head_share=share).fit(*documents())
        for share in (0.15, 0.0)
    )
    texts = documents(20, seed=3)[0]
    assert same(with_share.predict_scores(texts, 5), without.predict_scores(texts, 5))
