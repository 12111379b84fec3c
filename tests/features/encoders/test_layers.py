"""Lower and upper layers, one after the other, compute what the whole encoder does."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.tiny import documents, save_encoder  # noqa: E402
from treetop.errors import TreetopError  # noqa: E402
from treetop.features.encoders.layers import (  # noqa: E402
    STACKS,
    LowerLayers,
    UpperLayers,
    check_tuned_layers,
)
from treetop.features.encoders.transformer import Encoder  # noqa: E402

TEXTS = [*documents(20)[0], "red apple", "a", "the green sea of fire and the sky"]


def opened(folder, family, **options):
    changes = {"n_layers" if family == "distilbert" else "num_hidden_layers": 3}
    return Encoder(save_encoder(folder, family, **changes), max_length=16, **options).eval()


@pytest.mark.parametrize("tuned", [1, 2, 3])
@pytest.mark.parametrize("family", [family for family in STACKS if family != "camembert"])
def test_both_parts_together_are_the_encoder(family, tuned, tmp_path):
    encoder = opened(tmp_path / family, family)
    tokens = encoder.tokens(TEXTS)
    given = LowerLayers.of(encoder, tuned).activations(tokens)
    upper = UpperLayers.of(encoder, tuned)
    assert np.abs(upper.embed(given) - encoder.embed(tokens)).max() < 2e-6
    assert upper.layers == tuned
    assert {name for name, _ in upper.named_parameters()} < {n for n, _ in encoder.named_parameters()}


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
def test_with_pooling_of_the_first_token(pooling, tmp_path):
    encoder = opened(tmp_path / "bert", "bert", pooling=pooling)
    tokens = encoder.tokens(TEXTS)
    given = LowerLayers.of(encoder, 1).activations(tokens)
    upper = UpperLayers.of(encoder, 1)
    assert np.abs(upper.embed(given) - encoder.embed(tokens)).max() < 2e-6
    assert any("pooler" in name for name, _ in upper.named_parameters())


def test_in_sixteen_bits_nothing_is_rounded_again(tmp_path):
    encoder = opened(tmp_path / "bert", "bert")
    encoder.compute = torch.bfloat16
    tokens = encoder.tokens(TEXTS)
    given = LowerLayers.of(encoder, 1).activations(tokens)
    assert given.of(0).dtype == torch.bfloat16
    upper = UpperLayers.of(encoder, 1)
    assert np.array_equal(upper.embed(given), encoder.embed(tokens))


def test_stored_vectors_are_those_of_the_layer_below(tmp_path):
    encoder = opened(tmp_path / "bert", "bert")
    tokens = encoder.tokens(TEXTS)
    given = LowerLayers.of(encoder, 1).activations(tokens)
    for row in (0, 20, 21):
        ids = torch.tensor(tokens.ids[tokens.ptr[row] : tokens.ptr[row + 1]])[None].long()
        with torch.no_grad():
            states = encoder.model(input_ids=ids, output_hidden_states=True).hidden_states
        assert torch.allclose(given.of(row), states[2][0], atol=2e-6)
    rows = torch.tensor([20, 0])
    padded, mask = given.padded(rows, 6, full=False)
    assert padded.shape == (2, 6, 16)
    assert mask.sum(1).tolist() == given.lengths[[20, 0]].tolist()
    assert not padded[mask == 0].any()


def test_families_and_numbers_of_layers_that_cannot_be_tuned_apart(tmp_path):
    with pytest.raises(TreetopError, match="tuned_layers=1: the layers of albert encoders cannot be"):
        check_tuned_layers(opened(tmp_path / "albert", "albert"), 1)
    with pytest.raises(
        TreetopError, match="tuned_layers=4, but the encoder has 3 layers: leave it out"
    ):
        check_tuned_layers(opened(tmp_path / "bert", "bert"), 4)
