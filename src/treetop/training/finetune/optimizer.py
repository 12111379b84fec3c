"""Adam on float32 weights, whatever the precision of the network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from treetop.runtime.arrays import part, prefixed
from treetop.settings.schema import TransformerSettings
from treetop.training.finetune.head import Head
from treetop.training.finetune.state import State


class MasterWeights:
    """Float32 copies of a network's weights, which Adam updates and checkpoints contain.

    In bfloat16, small updates would be lost to rounding. If the network is in float32, its own weights
    are used.
    """

    def __init__(self, network: nn.Module, precision: torch.dtype) -> None:
        """Convert the network to the type `precision`."""
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
        """Copy the float32 weights to the network."""
        if self.network is not self.float32:
            with torch.no_grad():
                torch._foreach_copy_(self.network, self.float32)

    def state_dict(self) -> State:
        """Return the float32 weights by name; tensors are not copied."""
        return {name: w.detach() for name, w in zip(self.names, self.float32, strict=True)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the weights, also those of the network."""
        with torch.no_grad():
            for name, weight in zip(self.names, self.float32, strict=True):
                weight.copy_(state[name])
        self.update_network()


class LevelOptimizer:
    """The trainable weights of one level, encoder and head, with their Adam optimizer.

    `state_dict` contains all three: ``encoder.*``, ``head.*``, and the state of Adam as ``adam.*``, by
    the number of the weight.
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
        """`rate` and `head_rate` are the peak learning rates."""
        self.encoder, self.head, self.clip = encoder, head, settings.clip
        matrices = [weight for weight in encoder.float32 if weight.ndim > 1]
        vectors = [weight for weight in encoder.float32 if weight.ndim <= 1]
        self.parameters = [*matrices, *vectors, *head.parameters()]
        self.clipped_together = [self.parameters]
        if settings.clip_separately:
            self.clipped_together = [[*matrices, *vectors], list(head.parameters())]
        # On a GPU the learning rate is a tensor, so that a recorded step can be replayed with another.
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
        """Set the learning rates to `factor` times their peaks."""
        for group in self.adam.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(factor * group["base"])
            else:
                group["lr"] = factor * group["base"]

    def step(self) -> None:
        """Update the weights by the gradients of a whole batch, which are then cleared."""
        self.encoder.take_gradients()
        # Gradients are complete: processes that share a batch have added up theirs.
        for parameters in self.clipped_together:
            nn.utils.clip_grad_norm_(parameters, self.clip, foreach=True)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.encoder.update_network()

    @property
    def learned(self) -> list[Tensor]:
        """The weights that get gradients: those of the network, in its precision, and the head's."""
        return [*self.encoder.network, *self.head.parameters()]

    def forget_gradients(self) -> None:
        """Clear all gradients, such as those that a failed step has left."""
        for weight in (*self.parameters, *self.encoder.network):
            weight.grad = None

    def weights(self) -> State:
        """Return the weights of encoder and head, without the state of Adam."""
        return {
            **prefixed("encoder", self.encoder.state_dict()),
            **prefixed("head", self.head.state_dict()),
        }

    def load_weights(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `weights` returned."""
        self.encoder.load_state_dict(part(state, "encoder"))
        self.head.load_state_dict(part(state, "head"))

    def state_dict(self) -> State:
        """Return everything that the next step depends on; tensors are not copied."""
        memory = {
            f"{number}.{name}": value
            for number, weight in enumerate(self.parameters)
            for name, value in self.adam.state[weight].items()
        }
        return {**self.weights(), **prefixed("adam", memory)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state_dict` returned."""
        self.load_weights(state)
        memory = part(state, "adam")
        for number, weight in enumerate(self.parameters):
            self.adam.state[weight] = {
                name: value.to(weight.device, copy=True)
                for name, value in part(memory, str(number)).items()
            }


def rate_at(step: int, steps: int, rising: int) -> float:
    """Return the factor of a linear schedule: it rises from 0 for `rising` steps, then falls to 0."""
    if step < rising:
        return (step + 1) / (rising + 1)
    return (steps - step) / max(1, steps - rising + 1)
