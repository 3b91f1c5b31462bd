"""DeepAugment (Hendrycks et al., 2021) by its Noise2Net, as the paper compares with it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.noise2net import noise2net
from dign.core.checks import check_at_least, check_integer
from dign.core.errors import UserError
from dign.core.image_rng import draw_shared, global_batch_size, local_count
from dign.methods.base import Cost, Method
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class DeepAugment(Method):
    """Cross-entropy on a batch most of which has been through random image-to-image networks.

    Loss: L(f(x'), y), where x' = noise2net(x) for the first `share` of the batch (batches are shuffled) and x for the
    rest. The networks' weights are drawn for each image and batch, their residual strength for each batch.

    Deviation: the kernels' sizes and dilations are redrawn with every batch; published, with every epoch.

    Args:
        share: Fraction of the batch that is distorted.
        weakest: Least residual strength, drawn from U(weakest, strongest).
        strongest: Largest residual strength.
        hidden: Planes in each branch of a block.
        scale: Branches of a block.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> DeepAugment(share=0.5)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "deepaugment"
    title = "DeepAugment"
    sees_clean = False
    cost = Cost(forward=1, backward=1)

    share: float = 0.75
    weakest: float = 0.2
    strongest: float = 0.4
    hidden: int = 2
    scale: int = 4

    def __post_init__(self) -> None:
        check_at_least(0, share=self.share, weakest=self.weakest)
        check_at_least(self.weakest, strongest=self.strongest)
        check_integer(1, hidden=self.hidden)
        check_integer(2, scale=self.scale)
        if self.share > 1:
            raise UserError(f"share must be a fraction of the batch, 0 to 1, not {self.share}.")

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        count = int(self.share * global_batch_size(len(x), generator))
        if count == 0:
            return [x]
        drawn = draw_shared(x, generator)
        strength = self.weakest + (self.strongest - self.weakest) * drawn
        here = local_count(count, generator)
        distorted = noise2net(
            x[:here], strength, hidden=self.hidden, scale=self.scale, generator=generator, batch=count
        )
        return [torch.cat((distorted, x[here:]))]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"augmented_cross_entropy": self.cross_entropy(views[0], y)}
