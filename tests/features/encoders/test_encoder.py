"""Transformers of every family as one encoder: vectors, pooling, tokens, devices."""

import copy
import json
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.tiny import FAMILIES, WORDS, save_encoder, tokenizer  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.features.encoders import subwords  # noqa: E402
from treetop.features.encoders.devices import (  # noqa: E402
    DeviceRagged,
    in_fitting_parts,
    pick_device,
    pick_precision,
)
from treetop.features.encoders.transformer import Encoder  # noqa: E402

TEXTS = ["red apple", "", "the sky is blue and the sea is green " * 20, "nonsense words only", "fire"]
# Weights that do not affect the mean of the tokens, or that are not trained.
UNUSED = ("pooler", "mask_emb", "seg_embed", "r_s_bias", "relative_attention_bias")
ENCODERS = [family for family in FAMILIES if family not in ("gpt2", "bart")]


@pytest.mark.parametrize("family", ENCODERS)
def test_every_family_embeds_texts_and_learns(tmp_path, family):
    encoder = Encoder(save_encoder(tmp_path, family), max_length=32)
    vectors = encoder.embed_texts(TEXTS)
    assert vectors.shape == (5, encoder.width)
    assert np.isfinite(vectors).all()
    # neither the neighbours in a batch nor padding change a text's vector
    alone = np.concatenate([encoder.embed_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=2e-5)
    # and it learns: every weight that is used gets a gradient
    encoder.train()
    ids = torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]])
    encoder(ids, (ids != 0).long()).square().sum().backward()
    idle = {name for name, weight in encoder.model.named_parameters() if weight.grad is None}
    assert idle == {name for name in idle if any(part in name for part in UNUSED)}


@pytest.mark.parametrize("family", ["bert", "t5", "xlnet", "mpnet"])
def test_a_saved_encoder_gives_the_same_vectors(tmp_path, family):
    encoder = Encoder(save_encoder(tmp_path / "a", family))
    encoder.save(tmp_path / "b")
    restored = Encoder(str(tmp_path / "b"))
    assert restored.pooling == encoder.pooling
    np.testing.assert_array_equal(restored.embed_texts(TEXTS), encoder.embed_texts(TEXTS))


def test_poolings_by_hand(tmp_path):
    folder = save_encoder(tmp_path)
    ids = torch.tensor([[1, 5, 2, 0, 0], [1, 6, 7, 8, 2]])
    mask = (ids != 0).long()
    pooled = {}
    for pooling in ("mean", "cls", "last", "pooler", "summary"):
        encoder = Encoder(folder, pooling).eval()
        with torch.inference_mode():
            output = encoder.model(input_ids=ids, attention_mask=mask)
            pooled[pooling] = encoder(ids, mask), encoder(ids[1:], None)
    tokens = output.last_hidden_state
    torch.testing.assert_close(pooled["cls"][0], tokens[:, 0])
    torch.testing.assert_close(pooled["summary"][0], torch.tanh(pooled["last"][0]))
    torch.testing.assert_close(pooled["last"][0], torch.stack([tokens[0, 2], tokens[1, 4]]))
    torch.testing.assert_close(
        pooled["mean"][0], torch.stack([tokens[0, :3].mean(0), tokens[1].mean(0)])
    )
    torch.testing.assert_close(pooled["pooler"][0], output.pooler_output)
    for with_mask, without in pooled.values():
        torch.testing.assert_close(with_mask[1:], without, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_the_last_layer_computes_the_first_token_only(tmp_path, family, pooling):
    if (family, pooling) == ("electra", "pooler"):
        pytest.skip("ELECTRA has no pooler")
    encoder = Encoder(save_encoder(tmp_path, family), pooling).eval()
    library = copy.deepcopy(encoder)
    del library.model.encoder.layer[-1].attention.forward
    ids = torch.tensor([[1, 5, 2, 0, 0], [1, 6, 7, 8, 2]])
    mask = (ids != 0).long()
    with torch.inference_mode():
        assert encoder.model(input_ids=ids, attention_mask=mask)[0].shape[1] == 1
        for pair in ((ids, mask), (ids[1:], None)):
            torch.testing.assert_close(encoder(*pair), library(*pair), atol=1e-6, rtol=1e-5)
    # in training, the vectors and their dropout are those of the library, bit for bit
    outputs = []
    for one in (encoder, library):
        torch.manual_seed(3)
        outputs.append(one.train().model(input_ids=ids, attention_mask=mask)[0])
    assert outputs[0].shape == (2, 5, 16)
    assert torch.equal(*outputs)


def test_the_last_layer_computes_the_first_token_in_copies_too(tmp_path):
    encoder = Encoder(save_encoder(tmp_path), "cls").eval()
    for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        with torch.no_grad():
            other.model.embeddings.word_embeddings.weight.zero_()
        assert not np.allclose(other.embed_texts(TEXTS), encoder.embed_texts(TEXTS), atol=1e-3)
        assert other.model(input_ids=torch.tensor([[1, 5, 2]]))[0].shape == (1, 1, 16)
        assert other.model.encoder.layer[-1].attention.forward.args[0] is not (
            encoder.model.encoder.layer[-1].attention
        )


def test_the_summary_pooling_is_that_of_xlnets_sequence_summary(tmp_path):
    """PECOS pads on the left, has segments (<cls> is 2, padding 3), then tanh of the last."""
    encoder = Encoder(save_encoder(tmp_path, "xlnet"), "summary").eval()
    ids = torch.tensor([[5, 6, 2, 0, 0], [6, 7, 8, 9, 2]])
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    left = torch.tensor([[0, 0, 5, 6, 2], [6, 7, 8, 9, 2]])
    segments = torch.tensor([[3, 3, 0, 0, 2], [0, 0, 0, 0, 2]])
    with torch.inference_mode():
        output = encoder.model(left, attention_mask=mask.flip(1), token_type_ids=segments)
        expected = torch.tanh(output.last_hidden_state[:, -1])
        torch.testing.assert_close(encoder(ids, mask), expected, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(encoder(ids[1:], None), expected[1:], atol=1e-6, rtol=1e-5)


def test_default_poolings(tmp_path):
    assert Encoder(save_encoder(tmp_path / "bert")).pooling == "mean"
    assert Encoder(save_encoder(tmp_path / "xlnet", "xlnet")).pooling == "last"
    folder = tmp_path / "bert"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert Encoder(str(folder)).pooling == "cls"


@pytest.mark.parametrize(("family", "limit"), [("bert", 64), ("roberta", 64), ("t5", 64)])
def test_texts_longer_than_the_model_allows_are_truncated(tmp_path, family, limit):
    encoder = Encoder(save_encoder(tmp_path, family), max_length=1000)
    assert encoder.max_length == limit
    assert np.isfinite(encoder.embed_texts(["red " * 5000])).all()


def test_token_ids_equal_those_of_the_tokenizer(rng, monkeypatch):
    monkeypatch.setattr(subwords, "TEXTS_PER_BLOCK", 3)
    # every text is cut too short and tokenized again
    monkeypatch.setattr(subwords, "CHARACTERS_PER_TOKEN", 2)
    texts = [" ".join(rng.choice(WORDS, int(size))) for size in rng.integers(0, 30, 20)]
    known = tokenizer()
    ragged = subwords.token_ids_of(known, texts, 12)
    for number, text in enumerate(texts):
        expected = known(text, truncation=True, max_length=12)["input_ids"]
        assert ragged.ids[ragged.ptr[number] : ragged.ptr[number + 1]].tolist() == expected


def test_many_tokens_are_mapped_from_disk(monkeypatch):
    texts = ["red apple", "green", "blue sky and sea"] * 50
    small = subwords.token_ids_of(tokenizer(), texts, 8)
    monkeypatch.setattr(subwords, "SPOOL_BYTES", 100)
    monkeypatch.setattr(subwords, "TEXTS_PER_BLOCK", 7)
    large = subwords.token_ids_of(tokenizer(), texts, 8)
    assert isinstance(large.ids, np.memmap)
    np.testing.assert_array_equal(large.ids, small.ids)
    np.testing.assert_array_equal(large.ptr, small.ptr)


def test_rows_are_padded_on_the_device(rng):
    rows = [rng.integers(1, 9, size).astype(np.int32) for size in (3, 1, 5)]
    ragged = subwords.Ragged(np.concatenate(rows), np.array([0, 3, 4, 9]))
    ids, mask = DeviceRagged(ragged, torch.device("cpu"), 0).padded(torch.tensor([2, 0]), 5, False)
    np.testing.assert_array_equal(ids[0], rows[2])
    np.testing.assert_array_equal(ids[1], [*rows[0], 0, 0])
    np.testing.assert_array_equal(mask, [[1] * 5, [1, 1, 1, 0, 0]])


def test_batches_by_length_contain_every_row_once(rng):
    lengths = rng.integers(1, 50, 200)
    batches = list(subwords.by_length(lengths, 300))
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    assert all(lengths[rows[0]] * rows.size <= 300 for rows in batches)


def test_out_of_memory_halves_the_batch_and_continues():
    done = []

    def work(part):
        if part.stop - part.start > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        done.extend(range(part.start, part.stop))

    assert in_fitting_parts(work, 10, 10) == 3
    assert done == list(range(10))
    with pytest.raises(RuntimeError, match="something else"):
        in_fitting_parts(lambda part: (_ for _ in ()).throw(RuntimeError("something else")), 10, 10)


def test_bfloat16_keeps_the_float32_weights(tmp_path):
    encoder_folder = save_encoder(tmp_path)
    encoder = Encoder(encoder_folder)
    exact = encoder.embed_texts(TEXTS)
    encoder.compute = torch.bfloat16
    near = encoder.embed_texts(TEXTS)
    np.testing.assert_allclose(near, exact, atol=0.05)
    converted = Encoder(encoder_folder).to(torch.bfloat16)
    converted.compute = torch.bfloat16
    np.testing.assert_array_equal(near, converted.embed_texts(TEXTS))
    assert not np.array_equal(near, exact)
    assert next(encoder.model.parameters()).dtype == torch.float32


@pytest.mark.parametrize(
    ("family", "pooling"), [*((family, "auto") for family in ENCODERS), ("bert", "pooler")]
)
def test_in_16_bits_a_text_gets_the_same_vector_alone_and_in_a_batch(tmp_path, family, pooling):
    encoder = Encoder(save_encoder(tmp_path, family), pooling, max_length=32)
    encoder.compute = torch.bfloat16
    texts = [*TEXTS, "red red red", "blue", "a b c d e f", "sky sea", "sea fire"]
    alone = np.concatenate([encoder.embed_texts([text]) for text in texts])
    np.testing.assert_array_equal(encoder.embed_texts(texts), alone)


def test_choice_of_device_and_precision():
    assert pick_device("cpu").type == "cpu"
    assert pick_precision("fp32", torch.device("cpu")) == torch.float32
    assert pick_precision("bf16", torch.device("cpu")) == torch.bfloat16
    with pytest.raises(TreetopError, match="device 'warp' cannot be used"):
        pick_device("warp")
    if not torch.cuda.is_available():
        with pytest.raises(TreetopError, match=r"device 'cuda' cannot be used .* try device=cpu"):
            pick_device("cuda")


def test_folders_without_a_usable_encoder_are_refused_in_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    save_encoder(tmp_path / "decoder", "gpt2")
    save_encoder(tmp_path / "both", "bart")
    save_encoder(tmp_path / "bert")
    (remote := tmp_path / "remote").mkdir()
    config = {"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}
    (remote / "config.json").write_text(json.dumps(config))
    cases = [
        (str(remote), "requires code from its repository, which treetop never runs: choose one"),
        (str(tmp_path / "empty"), "cannot be read from this folder"),
        (str(tmp_path / "both"), "is an encoder-decoder (bart)"),
        (str(tmp_path / "decoder"), "is a decoder (gpt2): choose an encoder"),
    ]
    for name, message in cases:
        with pytest.raises(TreetopError) as error:
            Encoder(name)
        assert message in str(error.value), str(error.value)
        assert "\n" not in str(error.value)
    for file in (tmp_path / "bert").glob("tokenizer*"):
        file.unlink()
    with pytest.raises(TreetopError, match=r"tokenizer|cannot be read"):
        Encoder(str(tmp_path / "bert"))
    with pytest.raises(TreetopError, match="has no pooler"):
        Encoder(save_encoder(tmp_path / "t5", "t5"), "pooler")
