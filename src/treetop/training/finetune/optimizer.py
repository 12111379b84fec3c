"""Adam on float32 weights, whatever type the network computes in."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from treetop.runtime.arrays import part, prefixed
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.head import Head
from treetop.training.finetune.state import State


class MasterWeights:
    """Float32 copies of a network's weights: those Adam moves and checkpoints hold.

    In bfloat16 a small step would be lost in rounding. Where the network is in float32 its own
    weights serve.
    """

    def __init__(self, network: nn.Module, precision: torch.dtype) -> None:
        """Brings the network into the type `precision`."""
        learning = {name: w for name, w in network.named_parameters() if w.requires_grad}
        self.names = list(learning)
        self.float32: list[Tensor] = list(learning.values())
        self.network = self.float32
        if precision != torch.float32:
            self.float32 = [nn.Parameter(w.detach().float().clone()) for w in learning.values()]
            network.to(precision)
            parameters = dict(network.named_parameters())
            self.network = [parameters[name] for name in self.names]

    def take_gradients(self) -> None:
        """Move the network's gradients to the float32 copies."""
        if self.network is self.float32:
            return
        for weight, master in zip(self.network, self.float32, strict=True):
            master.grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None

    def update_network(self) -> None:
        """Bring the network up to the float32 copies."""
        if self.network is not self.float32:
            with torch.no_grad():
                torch._foreach_copy_(self.network, self.float32)

    def state_dict(self) -> State:
        """The float32 weights by name; not copied, as ever in torch."""
        return {name: w.detach() for name, w in zip(self.names, self.float32, strict=True)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state_dict`; the network follows."""
        with torch.no_grad():
            for name, weight in zip(self.names, self.float32, strict=True):
                weight.copy_(state[name])
        self.update_network()


class LevelOptimizer:
    """What learns at one level, encoder and head, and the Adam that moves it.

    `state_dict` holds all three: ``encoder.*``, ``head.*``, and Adam's memory as ``adam.*``, by the
    number of the weight.
    """

    def __init__(
        self,
        encoder: MasterWeights,
        head: Head,
        settings: TransformerSettings,
        *,
        rate: float,
        head_rate: float,
    ) -> None:
        """`rate`, `head_rate`: the largest learning rates."""
        self.encoder, self.head, self.clip = encoder, head, settings.clip
        matrices = [weight for weight in encoder.float32 if weight.ndim > 1]
        vectors = [weight for weight in encoder.float32 if weight.ndim <= 1]
        self.parameters = [*matrices, *vectors, *head.parameters()]
        # On a GPU the rate is a tensor, so that a recorded step can be replayed with another one.
        device = self.parameters[0].device
        on_gpu = device.type == "cuda"
        self.adam = torch.optim.AdamW(
            [
                {
                    "params": parameters,
                    "base": base,
                    "lr": torch.tensor(rate, device=device) if on_gpu else rate,
                    "weight_decay": decay,
                }
                for parameters, base, decay in (
                    (matrices, rate, settings.weight_decay),
                    (vectors, rate, 0.0),
                    (list(head.parameters()), head_rate, 0.0),
                )
            ],
            fused=True,
            capturable=on_gpu,
        )

    def set_rate(self, factor: float) -> None:
        """Step at `factor` of the largest learning rates from here on."""
        for group in self.adam.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(factor * group["base"])
            else:
                group["lr"] = factor * group["base"]

    def step(self) -> None:
        """One step by the gradients of a whole batch, which are gone afterwards."""
        self.encoder.take_gradients()
        # Gradients are complete: processes that share a batch would add up theirs here.
        nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.encoder.update_network()

    def forget_gradients(self) -> None:
        """Drop what a step that failed has left."""
        for weight in (*self.parameters, *self.encoder.network):
            weight.grad = None

    def weights(self) -> State:
        """Encoder and head, without Adam's memory."""
        return {
            **prefixed("encoder", self.encoder.state_dict()),
            **prefixed("head", self.head.state_dict()),
        }

    def load_weights(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `weights`."""
        self.encoder.load_state_dict(part(state, "encoder"))
        self.head.load_state_dict(part(state, "head"))

    def state_dict(self) -> State:
        """All that the next step depends on; not copied, as ever in torch."""
        memory = {
            f"{number}.{name}": value
            for number, weight in enumerate(self.parameters)
            for name, value in self.adam.state[weight].items()
        }
        return {**self.weights(), **prefixed("adam", memory)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state_dict`."""
        self.load_weights(state)
        memory = part(state, "adam")
        for number, weight in enumerate(self.parameters):
            self.adam.state[weight] = {
                name: value.to(weight.device, copy=True)
                for name, value in part(memory, str(number)).items()
            }


def rate_at(step: int, steps: int, warmup: float) -> float:
    """The linear schedule: up from 0 during the warm-up, then down to 0 at the end."""
    rising = max(1, round(warmup * steps))
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / max(1, steps - rising + 1)
