"""A model of any library as a module from images in [0,1] to logits, with what is known about it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dign.core.outputs import logits_of
from dign.models.normalize import Normalize
from dign.models.preprocessing import Preprocessing


class ForeignModel(nn.Module):
    """A network of any library, from images (N,3,H,W) in [0,1] to logits (N,C).

    Args:
        network: From normalized images to logits, in any form that `logits_of` understands.
        name: What tables and errors call it.
        preprocessing: What it expects of images; mean and std are applied here.
        classes: The names of its classes, where they are known.
        normalizes: Whether the network is known to normalize by itself.
        gives_probabilities: Whether the network ends in a softmax; its logarithm is then taken for the logits.

    >>> model = ForeignModel(nn.Flatten(), "flat", Preprocessing(mean=(0.5,) * 3, std=(0.25,) * 3))
    >>> model(torch.full((1, 3, 1, 1), 0.75))
    tensor([[1., 1., 1.]])
    """

    order: Tensor | None

    def __init__(
        self,
        network: nn.Module,
        name: str,
        preprocessing: Preprocessing | None = None,
        classes: Sequence[str] | None = None,
        *,
        normalizes: bool = False,
        gives_probabilities: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.name = name
        self.preprocessing = preprocessing or Preprocessing()
        self.classes = list(classes) if classes else None
        self.normalizes = normalizes
        self.gives_probabilities = gives_probabilities
        mean, std = self.preprocessing.mean, self.preprocessing.std
        self.normalize = Normalize(mean or (0.0,) * 3, std or (1.0,) * 3) if mean or std else None
        self.register_buffer("order", None)

    def forward(self, images: Tensor) -> Tensor:
        """The logits (N,C) of images (N,3,H,W) in [0,1]."""
        output = logits_of(self.network(images if self.normalize is None else self.normalize(images)))
        if self.gives_probabilities:
            output = output.clamp(min=torch.finfo(output.dtype).tiny).log()
        return output if self.order is None else output[:, self.order]

    def reorder(self, classes: Sequence[str]) -> bool:
        """Give the logits in the order of `classes`, if these are the names of the model's classes in another order.

        Returns:
            Whether the model's classes are these. Capitals, spaces, dashes and underscores do not matter.
        """
        if self.classes is None:
            return False
        known = {_simplify(name): index for index, name in enumerate(self.classes)}
        wanted = [_simplify(name) for name in classes]
        if len(known) != len(self.classes) or known.keys() != set(wanted):
            return False
        self.order = torch.tensor([known[name] for name in wanted])
        self.classes = list(classes)
        return True


def _simplify(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())
