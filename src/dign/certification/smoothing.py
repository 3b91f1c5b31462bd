"""Randomized smoothing: the class that a model gives most often under Gaussian noise, and how far that is certain.

g(x) = argmax_c P(f(x + e) = c), e ~ N(0, sigma^2 I), with noise in [0,1] pixel units, before normalization, unclipped.
Counts depend on the seed and on an image's number alone: not on batch size, device memory or number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.certification.bounds import (
    certified_radius,
    check_alpha,
    largest_radius,
    lower_confidence_bound,
    majority_p_value,
)
from dign.core.checks import check_integer
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.seeds import make_generator

ABSTAIN = -1
BLOCK = 100
"""Noisy copies whose noise comes from one generator. Changing it changes every result."""
GROWTH = 1.25
"""How much larger each total of draws is after which early stopping looks whether to stop."""
GIVE_UP = 0.05
"""Early stopping gives up a radius that the draws so far contradict at this level."""


@dataclass(frozen=True)
class Certificates:
    """What was certified of each image.

    Attributes:
        classes: (N,) int64, -1 where the procedure abstains.
        radii: (N,) float64, l2 radii in [0,1] pixel units; 0 where it abstains.
        draws: (N,) int64, the noisy copies that were classified for the certificate.

    >>> found = Certificates(torch.tensor([1, -1]), torch.tensor([0.5, 0.0]), torch.tensor([1000, 1000]))
    >>> found.certified_accuracy(torch.tensor([1, 0]), radius=0.25), found.average_radius(torch.tensor([1, 0]))
    (50.0, 0.25)
    """

    classes: Tensor
    radii: Tensor
    draws: Tensor

    def __len__(self) -> int:
        return len(self.classes)

    def certified_accuracy(self, labels: Tensor, radius: float) -> float:
        """Percent of images that are certified right up to `radius`.

        Args:
            labels: (N,) true classes.
            radius: In [0,1] pixel units.
        """
        right = self.classes == labels.to(self.classes.device)
        return 100 * (right & (self.radii >= radius)).double().mean().item()

    def average_radius(self, labels: Tensor) -> float:
        """The average certified radius (ACR): wrong and abstained images count 0."""
        return (self.radii * (self.classes == labels.to(self.classes.device))).mean().item()


def certify(
    model: nn.Module,
    images: Tensor,
    *,
    sigma: float,
    n0: int = 100,
    n: int = 1000,
    alpha: float = 0.001,
    radii: Sequence[float] | None = None,
    generator: torch.Generator | None = None,
    first: int = 0,
    batch_size: int = 1000,
) -> Certificates:
    """Classes that provably do not change within a radius, with probability 1 - alpha for each image.

    The class is chosen by `n0` noisy copies; `n` fresh ones bound its probability from below (Clopper-Pearson), and the
    radius is sigma * Phi^-1 of that bound. Where the bound is not above one half, the procedure abstains.

    Args:
        model: From images in [0,1] to logits; it is left as it was found.
        images: (N,3,H,W), uint8 or float in [0,1], on the model's device.
        sigma: Standard deviation of the noise, in [0,1] pixel units.
        n0: Noisy copies that choose the class.
        n: Noisy copies that certify it.
        alpha: Probability of a wrong certificate, for each image.
        radii: Stop early: draw in rounds, at a corrected alpha, until the largest of these radii that is within reach
            is certified. The certificates hold as they do without; the radius of an image is what its draws certify.
        generator: Where the noise comes from; None: the same noise every time.
        first: The number of the first image in a larger set of which these are a part.
        batch_size: Noisy copies that pass through the model at once.

    Returns:
        Classes, radii and draws of every image.

    Raises:
        UserError: A setting makes no sense, or `n` cannot certify the largest of `radii`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2))
    >>> found = certify(model, torch.zeros(4, 3, 1, 1), sigma=0.25)
    >>> found.classes.shape, bool((found.radii <= 2.47 * 0.25).all())
    (torch.Size([4]), True)
    """
    check_settings(sigma, n0, n, alpha, images)
    if radii is not None:
        check_radii(radii, n, sigma, alpha, early=True)
    counter = _Counter(model, images, sigma, _seed(generator), first, batch_size)
    with freeze_temporarily(model), torch.no_grad():
        everyone = torch.arange(len(images))
        chosen = counter.count("select", everyone, 0, n0).argmax(1)
        if radii is None:
            hits = counter.count("certify", everyone, 0, n)[everyone, chosen]
            found = [certified_radius(count, n, sigma, alpha) for count in hits.tolist()]
            return _conclude(chosen, torch.tensor(found, dtype=torch.float64), torch.full_like(hits, n))
        return _certify_in_rounds(counter, chosen, sigma, n, alpha, sorted(radii))


def _certify_in_rounds(
    counter: _Counter, chosen: Tensor, sigma: float, n: int, alpha: float, radii: Sequence[float]
) -> Certificates:
    """The rounds share alpha: with probability 1 - alpha the bounds of all of them hold, and so does the best of them.

    So an image may stop after any of them, whatever the reason.
    """
    hits, drawn = torch.zeros_like(chosen), torch.zeros_like(chosen)
    reached = [0.0] * len(chosen)
    rounds = _rounds(n, alpha)
    active, before = list(range(len(chosen))), 0
    for total, share in rounds.items():
        counts = counter.count("certify", torch.tensor(active), before, total)
        hits[active] += counts[torch.arange(len(active)), chosen[active]]
        drawn[active], before = total, total
        for image in active:
            reached[image] = max(reached[image], certified_radius(int(hits[image]), total, sigma, share))
        active = [
            image
            for image in active
            if total < n and _is_open(reached[image], _outlook(int(hits[image]), total, n, sigma, rounds[n]), radii)
        ]
        if not active:
            break
    return _conclude(chosen, torch.tensor(reached, dtype=torch.float64), drawn)


def _is_open(reached: float, outlook: float, radii: Sequence[float]) -> bool:
    """Whether more draws may certify another of the radii, or give an image an answer that has none yet.

    >>> _is_open(0.12, 0.19, (0.1, 0.2)), _is_open(0.12, 0.21, (0.1, 0.2)), _is_open(0.0, 0.01, (0.1, 0.2))
    (False, True, True)
    """
    return reached < outlook and (reached == 0 or any(reached < radius <= outlook for radius in radii))


def _outlook(hits: int, drawn: int, n: int, sigma: float, alpha: float) -> float:
    """The radius that all `n` draws would certify if the class were as likely as the draws so far allow for.

    That is the upper end of its Clopper-Pearson interval at GIVE_UP. It decides how long to go on, and nothing else.
    """
    least_misses = max(drawn - hits, n * lower_confidence_bound(drawn - hits, drawn, GIVE_UP)[0])
    return certified_radius(n - math.ceil(least_misses), n, sigma, alpha)


def _rounds(n: int, alpha: float) -> dict[int, float]:
    """Draws after which to look whether to stop, each about a quarter more than the last, and the alpha of each.

    The last round spends half of alpha, so that an image that needs all draws loses little by the looks before.

    >>> _rounds(500, 0.001)
    {200: 0.00016666666666666666, 300: 0.00016666666666666666, 400: 0.00016666666666666666, 500: 0.0005}
    """
    early, total = [], 2 * BLOCK
    while total * GROWTH**0.5 < n:
        early.append(total)
        total = max(total + BLOCK, round(total * GROWTH / BLOCK) * BLOCK)
    return {**{total: alpha / 2 / len(early) for total in early}, n: alpha / 2 if early else alpha}


def _conclude(chosen: Tensor, radii: Tensor, drawn: Tensor) -> Certificates:
    return Certificates(torch.where(radii > 0, chosen, ABSTAIN), radii, drawn)


class Smoothed(nn.Module):
    """A model smoothed by Gaussian noise: `predict` by majority, or the shares of the votes as probabilities.

    Args:
        model: From images in [0,1] to logits.
        sigma: Standard deviation of the noise, in [0,1] pixel units.
        n: Noisy copies of each image.

    >>> model = Smoothed(nn.Sequential(nn.Flatten(), nn.Linear(3, 2)), sigma=0.25, n=100)
    >>> model.votes(torch.zeros(4, 3, 1, 1)).sum(1)
    tensor([100, 100, 100, 100])
    """

    def __init__(self, model: nn.Module, sigma: float, n: int = 1000) -> None:
        super().__init__()
        check_settings(sigma, 1, n, 0.5, None)
        self.model, self.sigma, self.n = model, sigma, n

    def votes(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """How many of the `n` noisy copies of each image got each class: (N,C)."""
        counter = _Counter(self.model, images, self.sigma, _seed(generator), 0, 1000)
        with freeze_temporarily(self.model), torch.no_grad():
            return counter.count("predict", torch.arange(len(images)), 0, self.n)

    def predict(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The shares of the votes, as class probabilities (N,C)."""
        return self.votes(images, generator).float().to(images.device) / self.n

    def classify(self, images: Tensor, alpha: float = 0.001, generator: torch.Generator | None = None) -> Tensor:
        """The class with most votes, -1 where an exact binomial test cannot tell the first two apart: (N,).

        The answer is another than that of infinitely many copies with probability at most `alpha`.
        """
        check_settings(self.sigma, 1, self.n, alpha, images)
        counts, classes = self.votes(images, generator).topk(2, dim=1)
        sure = [majority_p_value(first, second) <= alpha for first, second in counts.tolist()]
        return torch.where(torch.tensor(sure, dtype=torch.bool), classes[:, 0], ABSTAIN)


def smoothed(model: nn.Module, sigma: float, n: int = 1000) -> Smoothed:
    """The model smoothed by noise of standard deviation `sigma`, by votes of `n` noisy copies.

    Args:
        model: A module from images (N,C,H,W) in [0,1] to logits.
        sigma: Standard deviation of the noise, in pixel units of [0,1].
        n: Noisy copies of each image.

    Returns:
        A classifier whose `predict` gives the shares of the votes.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2))
    >>> smoothed(model, sigma=0.25, n=100).predict(torch.zeros(1, 3, 1, 1)).sum()
    tensor(1.)
    """
    return Smoothed(model, sigma, n)


@dataclass(frozen=True)
class _Counter:
    """Counts the classes of noisy copies."""

    model: nn.Module
    images: Tensor
    sigma: float
    seed: int
    first: int
    batch_size: int

    def count(self, purpose: str, chosen: Tensor, start: int, stop: int) -> Tensor:
        """Classes of copies start..stop-1 of the `chosen` images: counts (len(chosen), C) on the CPU.

        `start` is a multiple of BLOCK.
        """
        pieces = [(row, block) for row in range(len(chosen)) for block in range(start // BLOCK, -(-stop // BLOCK))]
        counts: Tensor | None = None
        at_once = max(1, self.batch_size // BLOCK)
        for index in range(0, len(pieces), at_once):
            part = pieces[index : index + at_once]
            noisy = [self._copies(purpose, int(chosen[row]), block, stop) for row, block in part]
            logits = logits_of(self.model(torch.cat(noisy)))
            if logits.dim() != 2 or logits.shape[1] < 2:
                raise UserError(f"model must give logits (N,C) of two or more classes, not {tuple(logits.shape)}.")
            if counts is None:
                counts = torch.zeros(len(chosen), logits.shape[1], dtype=torch.int64, device=logits.device)
            rows = torch.cat([torch.full((len(copies),), row) for (row, _), copies in zip(part, noisy, strict=True)])
            cells = rows.to(logits.device) * logits.shape[1] + logits.argmax(1)
            counts.view(-1).scatter_add_(0, cells, torch.ones_like(cells))
        return torch.zeros(len(chosen), 2, dtype=torch.int64) if counts is None else counts.cpu()

    def _copies(self, purpose: str, image: int, block: int, stop: int) -> Tensor:
        x = to_float(self.images[image])
        generator = make_generator(self.seed, f"{purpose}/{self.first + image}", block, x.device)
        noise = torch.randn((BLOCK, *x.shape), generator=generator, device=x.device, dtype=x.dtype)
        return x + self.sigma * noise[: min(BLOCK, stop - block * BLOCK)]


def _seed(generator: torch.Generator | None) -> int:
    if generator is None:
        return 0
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def check_settings(sigma: float, n0: int, n: int, alpha: float, images: Tensor | None) -> None:
    """Raise a `UserError` unless the settings of a certificate make sense."""
    if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0 < sigma < float("inf"):
        raise UserError(f"`sigma` must be a number above 0, not {sigma!r}: without noise nothing is certified.")
    check_integer(1, n0=n0, n=n)
    if n < n0:
        raise UserError(
            f"`n` must be at least `n0`: {n} draws to certify are fewer than the {n0} that choose the class."
        )
    check_alpha(alpha)
    if images is not None and images.dim() != 4:
        raise UserError(f"images must be (N,3,H,W), not {tuple(images.shape)}.")


def check_radii(radii: Sequence[float], n: int, sigma: float, alpha: float, *, early: bool) -> None:
    """Raise a `UserError` if `n` draws, with or without early stopping, cannot certify the largest of the radii."""
    largest = largest_radius(n, sigma, _rounds(n, alpha)[n] if early else alpha)
    if max(radii, default=0) > largest:
        most = math.floor(largest * 1000) / 1000
        raise UserError(
            f"`radii`: {n} draws at sigma {sigma:g} certify at most {most:g}, not {max(radii):g}: raise `n`."
        )
