"""An exponential moving average of the weights, which is often better than the last weights of a noisy run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """average <- decay * average + (1 - decay) * weights, after every step, of all parameters and float buffers.

    In the first steps the decay is smaller, (1 + step) / (10 + step), so that random first weights are soon forgotten.
    It depends on the step alone: the average is all there is to save.

    Args:
        model: The model whose weights are averaged; its present weights are the first average.
        decay: 0 to 1; about 1 / (1 - decay) steps count.

    >>> model = nn.Linear(1, 1)
    >>> average = WeightAverage(model, decay=0.5)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> average.tensors["weight"] = torch.zeros(1, 1)
    >>> average.update(step=100)
    >>> average.tensors["weight"]
    tensor([[0.5000]])
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model, self._decay = model, decay
        self.tensors = {name: tensor.detach().clone() for name, tensor in self._weights().items()}

    def _weights(self) -> dict[str, Tensor]:
        state = self._model.state_dict()
        return {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after step 0, 1, ..."""
        decay = min(self._decay, (1 + step) / (10 + step))
        weights = self._weights()
        torch._foreach_lerp_([self.tensors[name] for name in weights], list(weights.values()), 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the model the averaged weights until the block ends."""
        before = {name: tensor.clone() for name, tensor in self._weights().items()}
        self._set(self.tensors)
        try:
            yield
        finally:
            self._set(before)

    def apply(self) -> None:
        """Give the model the averaged weights for good."""
        self._set(self.tensors)

    @torch.no_grad()
    def _set(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self._weights().items():
            tensor.copy_(tensors[name])

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Continue with a saved average.

        Raises:
            ValueError: It is of another model, or not finite.
        """
        for name, tensor in self.tensors.items():
            if name not in tensors or tensors[name].shape != tensor.shape or not bool(tensors[name].isfinite().all()):
                raise ValueError(f"the average of '{name}' is missing or damaged")
            tensor.copy_(tensors[name])
