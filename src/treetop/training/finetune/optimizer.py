"""Adam on float32 weights, whatever type the network computes in."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class Masters:
    """Float32 copies of a network's weights: those Adam moves and checkpoints hold.

    In bfloat16 a small step would be lost in rounding. Where the network is in float32 its own
    weights serve.
    """

    def __init__(self, module: nn.Module, precision: torch.dtype) -> None:
        named = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
        self.names = [name for name, _ in named]
        if precision == torch.float32:
            self.own: list[Tensor] = [weight for _, weight in named]
            self.master = self.own
        else:
            self.master = [nn.Parameter(weight.detach().float().clone()) for _, weight in named]
            module.to(precision)
            parameters = dict(module.named_parameters())
            self.own = [parameters[name] for name in self.names]

    def take_gradients(self) -> None:
        """Move the network's gradients to the float32 copies."""
        if self.own is self.master:
            return
        for own, master in zip(self.own, self.master, strict=True):
            master.grad = None if own.grad is None else own.grad.float()
            own.grad = None

    def give_weights(self) -> None:
        """Bring the network up to the float32 copies."""
        if self.own is not self.master:
            with torch.no_grad():
                torch._foreach_copy_(self.own, self.master)

    def arrays(self) -> dict[str, np.ndarray]:
        """The float32 weights by name."""
        return {
            name: weight.detach().cpu().numpy()
            for name, weight in zip(self.names, self.master, strict=True)
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over weights that `arrays` gave."""
        with torch.no_grad():
            for name, weight in zip(self.names, self.master, strict=True):
                weight.copy_(torch.from_numpy(np.array(arrays[name])))
        self.give_weights()


def rate_at(step: int, steps: int, warmup: float) -> float:
    """The linear schedule: up from 0 during the warm-up, then down to 0 at the end."""
    rising = max(1, round(warmup * steps))
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / max(1, steps - rising + 1)


def rates(rate: float | None, head_rate: float | None, width: int) -> tuple[float, float]:
    """Largest learning rates of the encoder and of W.

    What suits an encoder of 384 columns ruins a wider one: the rate falls with the square of the width.
    W learns the same task whatever the encoder.
    """
    if rate is None:
        rate = 2e-4 * (384 / max(width, 384)) ** 2
    return rate, rate if head_rate is None else head_rate


class Adam:
    """The optimiser of one level: encoder and head, schedule, clipping."""

    def __init__(
        self,
        encoder: Masters,
        head: nn.Module,
        rate: float,
        head_rate: float,
        decay: float,
        clip: float,
    ) -> None:
        self.encoder, self.clip = encoder, clip
        matrices = [weight for weight in encoder.master if weight.ndim > 1]
        vectors = [weight for weight in encoder.master if weight.ndim <= 1]
        groups = [
            {"params": matrices, "base": rate, "weight_decay": decay},
            {"params": vectors, "base": rate, "weight_decay": 0.0},
            {"params": list(head.parameters()), "base": head_rate, "weight_decay": 0.0},
        ]
        self.weights = [weight for group in groups for weight in group["params"]]  # type: ignore[attr-defined]
        # On a GPU the rate is a tensor, so that a recorded step can be replayed with another one.
        device = self.weights[0].device
        on_gpu = device.type == "cuda"
        for group in groups:
            group["lr"] = torch.tensor(rate, device=device) if on_gpu else rate
        self.adam = torch.optim.AdamW(groups, fused=True, capturable=on_gpu)

    def set_rate(self, factor: float) -> None:
        """From here on go at `factor` of the learning rate."""
        for group in self.adam.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(factor * group["base"])
            else:
                group["lr"] = factor * group["base"]

    def step(self) -> None:
        """One step; gradients are gone afterwards."""
        self.encoder.take_gradients()
        nn.utils.clip_grad_norm_(self.weights, self.clip, foreach=True)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.encoder.give_weights()

    def forget_gradients(self) -> None:
        """Drop what a step that failed has left."""
        for weight in (*self.weights, *self.encoder.own):
            weight.grad = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Adam's memory, numbered like the weights."""
        return {
            f"{number}.{name}": value.detach().cpu().numpy()
            for number, weight in enumerate(self.weights)
            for name, value in self.adam.state[weight].items()
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over a memory that `arrays` gave."""
        for number, weight in enumerate(self.weights):
            state: dict[str, Tensor] = {}
            for name in ("step", "exp_avg", "exp_avg_sq"):
                if f"{number}.{name}" in arrays:
                    value = torch.from_numpy(np.array(arrays[f"{number}.{name}"]))
                    state[name] = value.to(weight.device)
            if state:
                self.adam.state[weight] = state
