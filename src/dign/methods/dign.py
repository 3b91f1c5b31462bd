"""DiGN: diverse Gaussian noise consistency regularization, equation (6) and Algorithm 1."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dign.augment.noise import add_diverse_gaussian_noise, add_gaussian_noise
from dign.core.checks import check_at_least, check_fraction, check_integer
from dign.core.divergences import kl, log_probabilities
from dign.core.errors import UserError, unknown_name
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost

LEVELS = ("diverse", "fixed")
LEARNS_FROM = ("clean", "copies")


@dataclass(frozen=True, kw_only=True)
class DiGN(Method):
    """Cross-entropy on the clean batch, and predictions that agree under noise of diverse levels.

    Loss: L(f(x), y) + weight * mean_k D(p(x) ‖ p(x + d_k)), k = 1..samples, with d_k ~ N(0, s^2 I) and
    s ~ U(0, sigma_max) drawn for each image and each k. Gradients flow through p(x) as well.

    Args:
        sigma_max: Largest noise level, in [0,1] pixel units.
        weight: The paper's lambda. A weight of 0 needs no noisy branches, and has none.
        samples: Noisy branches, the paper's n.
        start: Fraction of training without noisy branches, at the cost of Standard. Not in the paper.
        ramp: Fraction of training over which the weight then grows from 0. Not in the paper.
        levels: "diverse", or "fixed": every copy has noise of level sigma_max. Not in the paper.
        learns_from: Where the cross-entropy is taken: on the "clean" batch, or on the noisy "copies", as their mean.
            With fixed levels and the copies this is the variant for certificates (`dign.certify`). Not in the paper.
        density: The probability of a value to be noisy. The authors' code also has masked noise, with density 0.2 and
            sigma_max 1.2. Not in the paper.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> DiGN(sigma_max=0.1)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "dign"
    title = "DiGN"
    published = {"tiny-imagenet": {"sigma_max": 0.6}}

    sigma_max: float = 0.2
    weight: float = 0.2
    samples: int = 3
    start: float = 0.0
    ramp: float = 0.0
    levels: str = "diverse"
    learns_from: str = "clean"
    density: float = 1.0

    def __post_init__(self) -> None:
        check_at_least(0, sigma_max=self.sigma_max, weight=self.weight, start=self.start, ramp=self.ramp)
        check_integer(1, samples=self.samples)
        check_fraction(density=self.density)
        if self.levels not in LEVELS:
            raise unknown_name("levels", self.levels, LEVELS)
        if self.learns_from not in LEARNS_FROM:
            raise unknown_name("learns_from", self.learns_from, LEARNS_FROM)
        if self.start >= 1:
            raise UserError(f"start is a fraction of training, below 1, not {self.start}: without noise use Standard.")

    @property
    def cost(self) -> Cost:
        """The mean over training."""
        passes = 1 + (1 - self.start) * self.samples if self._has_copies else 1
        return Cost(forward=passes, backward=passes)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        add_noise = add_diverse_gaussian_noise if self.levels == "diverse" else add_gaussian_noise
        copies = self.samples if self._has_copies else 0
        return [add_noise(x, self.sigma_max, generator, density=self.density) for _ in range(copies)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        log_p = log_probabilities(clean)
        divergences = [kl(log_p, log_probabilities(noisy)).mean() for noisy in views] or [log_p.new_zeros(())]
        consistency = self.weight * torch.stack(divergences).mean()
        if self.learns_from == "copies" and views:
            of_copies = torch.stack([self.cross_entropy(noisy, y) for noisy in views]).mean()
            return {"cross_entropy_of_noisy": of_copies, "consistency": consistency}
        return {"cross_entropy": self.cross_entropy(clean, y), "consistency": consistency}

    @property
    def _has_copies(self) -> bool:
        return self.weight > 0 or self.learns_from == "copies"

    def at(self, progress: float) -> Method:
        """The method with the weight it has when the fraction `progress` of training is done.

        >>> DiGN(weight=1.0, start=0.5, ramp=0.2).at(0.6).weight
        0.4999999999999999
        """
        if progress < self.start:
            return replace(self, weight=0.0, learns_from="clean")
        grown = min(1.0, (progress - self.start) / self.ramp) if self.ramp else 1.0
        return replace(self, start=0.0, ramp=0.0, weight=self.weight * grown)
