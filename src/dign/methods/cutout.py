"""Cutout (DeVries and Taylor, 2017): a square of every image is covered."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.boxes import box_masks, draw_centers
from dign.core.checks import check_fraction
from dign.core.image_rng import uniform
from dign.methods.base import Augmentation
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class Cutout(Augmentation):
    """Cross-entropy on images of which a square is covered: L(f(x'), y).

    Its center is any pixel of the image, so that part of it may be outside.

    Deviation: the publication covers it with the mean color of the data, which is gray within 0.05 for CIFAR-10.

    Args:
        side: Side of the square as a fraction of the image's shorter side. Published, of 32 pixels: 16 for CIFAR-10, 8
            for CIFAR-100, 20 for SVHN.
        fill: The gray level that it is covered with.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> Cutout(side=0.25)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "cutout"
    title = "Cutout"
    published = {"cifar100": {"side": 0.25}}

    side: float = 0.5
    fill: float = 0.5

    def __post_init__(self) -> None:
        check_fraction(side=self.side, fill=self.fill)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        return torch.where(draw_squares(x, self.side, generator), self.fill, x), y


def draw_squares(x: Tensor, side: float, generator: torch.Generator | None) -> Tensor:
    """A square of each image around any of its pixels, `side` of the image's shorter side long, as bools (N,1,H,W).

    >>> draw_squares(torch.zeros(5, 3, 8, 8), 0.0, None).any()
    tensor(False)
    """
    pixels = round(side * min(x.shape[-2:]))
    draw = uniform(len(x), 2, generator=generator, device=x.device, dtype=torch.float32)
    first = draw_centers(draw, x.shape[-2:]) - pixels // 2
    return box_masks(first, first + pixels, x.shape[-2:])
