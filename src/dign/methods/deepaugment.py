"""DeepAugment (Hendrycks et al., 2021) by its Noise2Net, as the paper compares with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from dign.augment.autoencoder import save_autoencoder, train_weights
from dign.augment.edited_networks import edited_networks
from dign.augment.noise2net import noise2net
from dign.core.checks import check_at_least, check_fraction, check_integer
from dign.core.errors import UserError, unknown_name
from dign.core.image_rng import draw_shared, global_batch_size, local_count
from dign.core.progress import TerminalBar
from dign.data.dataset import Split
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost

NETWORKS = ("noise2net", "autoencoder")
AUTOENCODER_FILE = "autoencoder.safetensors"


@dataclass(frozen=True, kw_only=True)
class DeepAugment(Method):
    """Cross-entropy on a batch most of which has been through random image-to-image networks.

    Loss: L(f(x'), y), where x' = noise2net(x) for the first `share` of the batch (batches are shuffled) and x for the
    rest. The networks' weights are drawn for each image and batch, their residual strength for each batch.

    Deviation: the kernels' sizes and dilations are redrawn with every batch; published, with every epoch.

    With `networks="autoencoder"` the images go through edited autoencoders instead, as in the first form of the
    publication (`dign.augment.edited_networks`). The networks that it edits are not to be had; a small one is trained
    on the training images, in minutes: `dign.train` does it and keeps it with the run. In a loop of your own, store one
    with `dign.augment.autoencoder.save_autoencoder(path, train_weights(images.__getitem__, len(images)))`, and name it.

    Args:
        share: Fraction of the batch that is distorted.
        weakest: Least residual strength, drawn from U(weakest, strongest).
        strongest: Largest residual strength.
        hidden: Planes in each branch of a block.
        scale: Branches of a block.
        networks: "noise2net", random networks; or "autoencoder", edited ones.
        redraw: Edited autoencoders for each image: 0.05 is one for twenty.
        autoencoder: File of the autoencoder; a run has its own.

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
    networks: str = "noise2net"
    redraw: float = 0.05
    autoencoder: str = ""

    def __post_init__(self) -> None:
        if self.networks not in NETWORKS:
            raise unknown_name("networks", self.networks, NETWORKS)
        check_fraction(redraw=self.redraw)
        check_at_least(0, share=self.share, weakest=self.weakest)
        check_at_least(self.weakest, strongest=self.strongest)
        check_integer(1, hidden=self.hidden)
        check_integer(2, scale=self.scale)
        if self.share > 1:
            raise UserError(f"share must be a fraction of the batch, 0 to 1, not {self.share}.")
        object.__setattr__(self, "moves_pixels", self.networks == "autoencoder")  # some of its edits flip features

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        count = int(self.share * global_batch_size(len(x), generator))
        if count == 0:
            return [x]
        if self.networks == "autoencoder":
            here = local_count(count, generator)
            edited = edited_networks(x[:here], self._file, redraw=self.redraw, generator=generator, batch=count)
            return [torch.cat((edited, x[here:]))]
        drawn = draw_shared(x, generator)
        strength = self.weakest + (self.strongest - self.weakest) * drawn
        here = local_count(count, generator)
        distorted = noise2net(
            x[:here], strength, hidden=self.hidden, scale=self.scale, generator=generator, batch=count
        )
        return [torch.cat((distorted, x[here:]))]

    @property
    def _file(self) -> str:
        if not self.autoencoder:
            raise UserError(
                "networks='autoencoder' needs an autoencoder of the training images: `dign.train` makes one; in a loop "
                "of your own, make one with dign.augment.autoencoder.train_weights and name its file, `autoencoder`."
            )
        return self.autoencoder

    def settle(self, folder: Path, train: Split, *, seed: int, device: torch.device) -> Method:
        if self.networks != "autoencoder" or self.autoencoder:
            return self
        path = folder / AUTOENCODER_FILE
        if not path.exists():
            with TerminalBar(delay=2.0) as bar:
                show = partial(bar, "Training the autoencoder of deepaugment")
                weights = train_weights(train.take, len(train), seed=seed, device=device, progress=show)
            save_autoencoder(path, weights)
        return replace(self, autoencoder=str(path))

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"augmented_cross_entropy": self.cross_entropy(views[0], y)}
