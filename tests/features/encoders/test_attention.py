"""Our attention and masks against those of the transformers library."""

import pytest

torch = pytest.importorskip("torch")

from transformers import AutoModel  # noqa: E402

from tests.tiny import FAMILIES, save_encoder  # noqa: E402
from treetop.features.encoders.attention import NAME, never_wait  # noqa: E402
from treetop.features.encoders.pretrained import use_fused_attention  # noqa: E402

IDS = torch.tensor([[1, 5, 6, 7, 8, 2], [1, 7, 2, 0, 0, 0]])


def outputs(model, mask):
    model.zero_grad()
    vectors = model(input_ids=IDS if mask is not None else IDS[:1], attention_mask=mask)[0]
    if mask is not None:
        vectors = vectors * mask[..., None]
    vectors.square().sum().backward()
    gradients = {name: w.grad for name, w in model.named_parameters() if w.grad is not None}
    return vectors.detach(), gradients


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "mpnet", "modernbert"])
def test_vectors_and_gradients_equal_those_of_the_library(tmp_path, family, padded):
    model = AutoModel.from_pretrained(save_encoder(tmp_path, family)).eval()
    mask = (IDS != 0).long() if padded else None
    expected, gradients = outputs(model, mask)
    use_fused_attention(model)
    never_wait(model)
    assert model.config._attn_implementation == NAME
    vectors, own_gradients = outputs(model, mask)
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=1e-4)
    assert own_gradients.keys() == {name for name in gradients if "relative_attention_bias" not in name}
    for name, gradient in own_gradients.items():
        torch.testing.assert_close(gradient, gradients[name], atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("gpt2", "bart")])
def test_a_saved_folder_does_not_name_our_attention(tmp_path, family):
    model = AutoModel.from_pretrained(save_encoder(tmp_path / "a", family))
    never_wait(use_fused_attention(model))
    model.save_pretrained(tmp_path / "b")
    assert NAME not in (tmp_path / "b" / "config.json").read_text()
