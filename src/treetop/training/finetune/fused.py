"""Layers with faster gradients on an NVIDIA GPU (Triton).

PyTorch sums the gradients of a layer norm's weights, and of a linear layer's bias, over the tokens of a
batch in kernels that leave most of the GPU idle and took a quarter of a step. Here, each program of a
norm sums its own rows in registers, and the partial sums are added afterwards (65,536 rows of 384 on an
H200: 67 instead of 353 µs). The gradient of a bias is a product with ones (18 instead of 60 µs).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.nn import functional as F

# Number of programs of the backward kernel (several per multiprocessor), and rows per iteration.
PROGRAMS = 2112
ROWS = 4


@triton.jit
def norm_forward(
    x, weight, bias, y, means, scales, rows, columns, epsilon, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """Y = (x - mean) · scale · weight + bias, for ROWS rows per program."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    at = row[:, None].to(tl.int64) * columns + column[None, :]
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=1) / columns
    centered = tl.where(inside, values - mean[:, None], 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, axis=1) / columns + epsilon)
    w = tl.load(weight + column, mask=column < columns, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)
    normed = centered * scale[:, None] * w[None, :] + b[None, :]
    tl.store(y + at, normed.to(y.dtype.element_ty), mask=inside)
    tl.store(means + row, mean, mask=row < rows)
    tl.store(scales + row, scale, mask=row < rows)


@triton.jit
def norm_backward(
    x,
    weight,
    dy,
    means,
    scales,
    dx,
    partial_weight,
    partial_bias,
    rows,
    columns,
    blocks,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Gradients of the input, and this program's share of those of weight and bias."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, WIDTH)
    w = tl.load(weight + column, mask=column < columns, other=0.0).to(tl.float32)
    weight_sum = tl.zeros([WIDTH], tl.float32)
    bias_sum = tl.zeros([WIDTH], tl.float32)
    for block in range(program, blocks, programs):
        row = block * ROWS + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None].to(tl.int64) * columns + column[None, :]
        mean = tl.load(means + row, mask=row < rows, other=0.0)
        scale = tl.load(scales + row, mask=row < rows, other=0.0)
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        normed = tl.where(inside, (values - mean[:, None]) * scale[:, None], 0.0)
        weighted = gradient * w[None, :]
        along = tl.sum(weighted * normed, axis=1) / columns
        middle = tl.sum(weighted, axis=1) / columns
        input_gradient = (weighted - along[:, None] * normed - middle[:, None]) * scale[:, None]
        tl.store(dx + at, input_gradient.to(dx.dtype.element_ty), mask=inside)
        weight_sum += tl.sum(gradient * normed, axis=0)
        bias_sum += tl.sum(gradient, axis=0)
    place = program * columns + column
    tl.store(partial_weight + place, weight_sum, mask=column < columns)
    tl.store(partial_bias + place, bias_sum, mask=column < columns)


class NormFunction(torch.autograd.Function):
    """Layer norm over the last dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:  # noqa: D102
        flat = x.contiguous().view(-1, x.shape[-1])
        rows, columns = flat.shape
        y = torch.empty_like(flat)
        means, scales = (torch.empty(rows, device=x.device) for _ in range(2))
        width = triton.next_power_of_2(columns)
        norm_forward[(rows,)](
            flat,
            weight,
            bias,
            y,
            means,
            scales,
            rows,
            columns,
            epsilon,
            ROWS=1,
            WIDTH=width,
            num_warps=max(1, width // 1024),
        )
        ctx.save_for_backward(flat, weight, means, scales)
        return y.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        x, weight, means, scales = ctx.saved_tensors
        rows, columns = x.shape
        dy = gradient.contiguous().view(rows, columns)
        dx = torch.empty_like(x)
        blocks, width = triton.cdiv(rows, ROWS), triton.next_power_of_2(columns)
        programs = min(PROGRAMS, blocks)
        partial = torch.empty(2, programs, columns, device=x.device)
        norm_backward[(programs,)](
            x,
            weight,
            dy,
            means,
            scales,
            dx,
            partial[0],
            partial[1],
            rows,
            columns,
            blocks,
            ROWS=ROWS,
            WIDTH=width,
            num_warps=max(1, min(8, width // 256)),
        )
        sums = partial.sum(1).to(weight.dtype)
        return dx.view_as(gradient), sums[0], sums[1], None


class LinearFunction(torch.autograd.Function):
    """A linear layer whose bias gradient is computed as a matrix product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: D102
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        x, weight = ctx.saved_tensors
        flat = gradient.contiguous().view(-1, gradient.shape[-1])
        dx = flat @ weight
        dw = flat.t() @ x.reshape(-1, x.shape[-1])
        return dx.view_as(x), dw, (flat.new_ones(1, len(flat)) @ flat)[0]


class FastNorm(nn.LayerNorm):
    """A layer norm that uses `NormFunction` in training."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension of `x`."""
        if not torch.is_grad_enabled():
            return super().forward(x)
        normed: Tensor = NormFunction.apply(x, self.weight, self.bias, self.eps)
        return normed


class FastLinear(nn.Linear):
    """A linear layer that uses `LinearFunction` in training."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute ``x @ weight.T + bias``."""
        if not torch.is_grad_enabled():
            return super().forward(x)
        projected: Tensor = LinearFunction.apply(x, self.weight, self.bias)
        return projected


def speed_up(model: nn.Module) -> None:
    """Make the layer norms and linear layers of a model use the functions above; weights are kept."""
    for module in model.modules():
        if (
            type(module) is nn.LayerNorm
            and module.bias is not None
            and len(module.normalized_shape) == 1
        ):
            module.__class__ = FastNorm
        elif type(module) is nn.Linear and module.bias is not None:
            module.__class__ = FastLinear
