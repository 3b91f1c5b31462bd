"""AutoAugment (Cubuk et al., 2019) with the policy that was found for CIFAR-10."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.policies import auto_augment
from dign.methods.base import Augmentation
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class AutoAugment(Augmentation):
    """Cross-entropy on images after one of 25 published pairs of operations each: L(f(x'), y).

    Published in use with Cutout: `AutoAugment() + Cutout()`. Some of its operations (contrast, brightness, color) are
    near corruptions of the benchmark.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> AutoAugment()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "autoaugment"
    title = "AutoAugment"
    moves_pixels = True

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        return auto_augment(x, generator), y
