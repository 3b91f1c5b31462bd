"""CutMix (Yun et al., 2019): a box of one image pasted into another, and labels mixed by area."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.boxes import box_masks, draw_centers
from dign.augment.chains import SMALLEST_SHAPE, dirichlet
from dign.augment.pairs import partners
from dign.core.checks import check_at_least, check_fraction
from dign.core.image_rng import uniform
from dign.methods.base import Augmentation
from dign.methods.labels import Labels, mix_with_partners


@dataclass(frozen=True, kw_only=True)
class CutMix(Augmentation):
    """Cross-entropy on images into which a box of another was pasted; labels are mixed by the areas.

    Loss: m L(f(x'), y) + (1 - m) L(f(x'), y_j), where x' is x with a box of x_j, its partner in the batch. The box has
    the image's proportions, any center, and the area 1 - m, m ~ Beta(alpha, alpha); what lies outside the image is cut
    off, and m is then the share of x that is left.

    Deviation: the published code draws one box for a batch, and whether there is one.

    Args:
        probability: How many of the images get a box: 0.5 published for CIFAR, 1 for ImageNet.
        alpha: Shape of the Beta distribution.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> CutMix(probability=1.0)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "cutmix"
    title = "CutMix"
    moves_pixels = True

    probability: float = 0.5
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_fraction(probability=self.probability)
        check_at_least(SMALLEST_SHAPE, alpha=self.alpha)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        share = dirichlet(len(x), 2, self.alpha, x.device, generator)[:, 0]
        draw = uniform(len(x), 3, generator=generator, device=x.device, dtype=torch.float32)
        share = torch.where(draw[:, 0] < self.probability, share, 1.0)  # a share of one has an empty box
        mixed, share = cutmix(x, share, draw_centers(draw[:, 1:], x.shape[-2:]))
        return mixed, mix_with_partners(y, share)


def cutmix(x: Tensor, share: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """Each image with a box of its partner, and the share of itself that is left.

    Args:
        x: Images (N,C,H,W).
        share: The share of an image that a box with all of its area inside would leave (N,).
        centers: Row and column of the boxes' centers (N,2).

    >>> x = torch.arange(2.0).view(2, 1, 1, 1).expand(2, 1, 4, 4)
    >>> mixed, share = cutmix(x, torch.tensor([0.75, 1.0]), torch.tensor([[0, 2], [0, 0]]))
    >>> mixed[0, 0, 0].tolist(), share.tolist()
    ([0.0, 1.0, 1.0, 0.0], [0.875, 1.0])
    """
    sides = torch.stack([(0.5 * (1 - share).sqrt() * size).floor() for size in x.shape[-2:]], dim=1)
    inside = box_masks(centers - sides, centers + sides, x.shape[-2:])
    left = 1 - inside.float().mean((1, 2, 3))
    return torch.where(inside, partners(x), x), left
