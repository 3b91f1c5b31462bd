"""TrivialAugment (Müller and Hutter, 2021), and with one noise drawn from thirty (Siedel et al., 2024)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.noise import add_one_of_thirty
from dign.augment.policies import trivial_augment
from dign.methods.base import Augmentation
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class TrivialAugment(Augmentation):
    """Cross-entropy on images after one random operation at a random strength each: L(f(x'), y).

    The wide form: fourteen operations at 31 strengths. Some of them (contrast, brightness, color) are near corruptions
    of the benchmark.

    Args:
        noise: Add noise afterwards, one of thirty kinds for each image: uniform, from a ball, or impulses, at ten
            strengths each.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> TrivialAugment(noise=True)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "trivialaugment"
    title = "TrivialAugment"
    moves_pixels = True

    noise: bool = False

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        x = trivial_augment(x, generator)
        return add_one_of_thirty(x, generator) if self.noise else x, y
