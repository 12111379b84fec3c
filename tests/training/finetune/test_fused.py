"""Triton kernels, compared with PyTorch's layers; without a GPU in Triton's interpreter."""

import os

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")

from treetop.training.finetune import fused  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def gradients(layer, x, out):
    x = x.clone().requires_grad_(True)
    layer.zero_grad()
    made = layer(x)
    made.backward(out)
    return made.detach(), x.grad, layer.weight.grad.clone(), layer.bias.grad.clone()


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (7, 16), (30, 24), (300, 129)])
@pytest.mark.parametrize("kind", ["norm", "linear"])
def test_fused_layers_agree_with_pytorch(rows, columns, kind, monkeypatch):
    monkeypatch.setattr(fused, "PROGRAMS", 3)
    torch.manual_seed(0)
    layer = torch.nn.LayerNorm(columns) if kind == "norm" else torch.nn.Linear(columns, 11)
    layer = layer.to(DEVICE)
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2, rows, columns, device=DEVICE) * 3 + 1
    out = torch.randn(2, rows, columns if kind == "norm" else 11, device=DEVICE)
    expected = gradients(layer, x, out)
    fused.speed_up(layer)
    assert type(layer) in (fused.FastNorm, fused.FastLinear)
    for made, twin in zip(gradients(layer, x, out), expected, strict=True):
        torch.testing.assert_close(made, twin, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected[0], atol=1e-4, rtol=1e-4)


def test_only_plain_layers_are_replaced():
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 4, bias=False), torch.nn.LayerNorm((2, 4)), torch.nn.Embedding(3, 4)
    )
    before = [type(module) for module in model]
    fused.speed_up(model)
    assert [type(module) for module in model] == before
