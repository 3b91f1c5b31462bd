"""NoisyMix (Erichson et al., 2022): AugMix with features mixed, and noisy, at a random depth of the network."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dign.augment.chains import SMALLEST_SHAPE, dirichlet
from dign.augment.pairs import partners
from dign.core.checks import check_at_least, check_fraction
from dign.core.derivatives import per_image
from dign.core.divergences import jensen_shannon, log_probabilities
from dign.core.image_rng import draw_shared, normal_like, uniform
from dign.methods.augmix import ChainSettings
from dign.methods.base import Method
from dign.methods.batch_checks import warn_of_no_layers
from dign.methods.labels import Labels, MixedLabels, mix_with_partners
from dign.methods.passes import Cost
from dign.methods.reach import Edit, Pass, as_names, check_rows, find_layers


@dataclass(frozen=True, kw_only=True)
class NoisyMix(ChainSettings, Method):
    """AugMix's loss, where features of pairs of images are mixed, and noisy, at a depth that is drawn for each step.

    Loss: L(f(x), y') + weight * JS(p(x); p(x_1); p(x_2)), x_1 and x_2 mixtures of chains as AugMix makes them, and y'
    the labels mixed as the features are: at one of the `layers`, h <- m h + (1 - m) h_j with m ~ Beta(mixing, mixing)
    and h_j the partner's features, alike for x, x_1 and x_2; then h <- (1 + M) h + A with M = multiplicative * b *
    U(-1,1) and A = i * additive * b' * N(0,1), i = 1, 2, 3 for x, x_1, x_2, and b, b' ~ Beta(2, 5); each entry of M and
    of A is zero with probability `sparsity`.

    In a sum all views are mixed alike, so that DiGN's noisy copies are compared with the mixture they belong to, and
    views of other methods get the noise of x.
    NoisyMix is written last where another method mixes too.

    Args:
        weight: Weight of the divergence. Settings of the chains are those of `ChainSettings`.
        mixing: Shape of the Beta distribution of the shares; 1 is uniform.
        additive: Level of the additive noise.
        multiplicative: Level of the multiplicative noise.
        sparsity: Fraction of the entries without noise.
        layers: Names of the layers whose input may be mixed, beside the images themselves; by default the second and
            third stage of the network, which is after its first and its second.

    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 10))
    >>> NoisyMix(layers=("2",))(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "noisymix"
    title = "NoisyMix"
    moves_pixels = True
    mixes_inside = True
    cost = Cost(forward=3, backward=3)

    severity: float | None = 3.0
    weight: float = 12.0
    mixing: float = 1.0
    additive: float = 0.5
    multiplicative: float = 0.5
    sparsity: float = 0.65
    layers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, weight=self.weight, additive=self.additive, multiplicative=self.multiplicative)
        check_at_least(SMALLEST_SHAPE, mixing=self.mixing)
        check_fraction(sparsity=self.sparsity)
        object.__setattr__(self, "layers", as_names(self.layers))

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        """The labels alone are mixed here; the images are on their way through the network."""
        share = dirichlet(len(x), 2, self.mixing, x.device, generator)[:, 0]
        return x, mix_with_partners(y, share)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [self.mix(x, chained, generator) for chained in self.chains(x, 2, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        divergence = jensen_shannon(*map(log_probabilities, (clean, *views))).mean()
        return {"cross_entropy": self.cross_entropy(clean, y), "noisymix_consistency": self.weight * divergence}

    def reach(self, model: nn.Module) -> list[tuple[nn.Module, Edit]]:
        inner = find_layers(model, self.layers) if self.layers else find_stages(model)[2:4]
        if not inner:
            warn_of_no_layers("noisymix finds no stages in the network: it mixes the images alone")
        places = [model, *inner]
        return [(layer, partial(self._edit, number, len(places))) for number, layer in enumerate(places)]

    def draw_inside(self, x: Tensor, generator: torch.Generator | None) -> Tensor | None:
        return draw_shared(x, generator)

    def _edit(self, number: int, places: int, features: Tensor, passing: Pass) -> Tensor:
        """Features that are mixed and noisy if this is the place that was drawn: no host waits to learn which it is."""
        check_rows(features, passing)
        drawn = passing.drawn[self.key]
        assert drawn is not None and isinstance(passing.labels, MixedLabels)
        here = (drawn * places).floor() == number
        share = per_image(own_share(passing.labels), features).to(features.dtype)
        level = 0.5 if number == 0 else 1.0  # the publication's images are in [-1,1]
        made = []
        each = zip(features.split(passing.images), passing.owners, passing.numbers, strict=True)
        for rows, owner, view in each:
            mixed = torch.lerp(partners(rows), rows, share)
            times = 2 + view if owner == self.key else 1
            made.append(self._add_noise(mixed, times * level, passing.generator))
        return torch.where(here, torch.cat(made) if len(made) > 1 else made[0], features)

    def _add_noise(self, features: Tensor, level: float, generator: torch.Generator | None) -> Tensor:
        draw = partial(uniform, generator=generator, device=features.device, dtype=features.dtype)
        size = features.shape
        strengths = draw_beta_2_5(len(features), 2, generator, features)
        signs = 2 * draw(*size) - 1
        factors = torch.where(draw(*size) < self.sparsity, 0, signs) * per_image(strengths[:, 0], features)
        noise = torch.where(draw(*size) < self.sparsity, 0, normal_like(features, generator))
        noise = noise * per_image(strengths[:, 1], features)
        return features * (1 + self.multiplicative * factors) + self.additive * level * noise


def own_share(labels: MixedLabels) -> Tensor:
    """How much of each image (N,) is itself and what it was mixed with before, after the last mixing of all."""
    return labels.shares[:, : labels.shares.shape[1] // 2].sum(1)


def draw_beta_2_5(count: int, width: int, generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Numbers (count,width) from the Beta(2, 5) distribution, of the type and device of `like`.

    >>> round(draw_beta_2_5(20000, 1, torch.Generator().manual_seed(0), torch.zeros(1)).mean().item(), 1)  # 2 / 7
    0.3
    """
    draws = uniform(count, width, 7, generator=generator, device=like.device, dtype=torch.float32)
    exponentials = -torch.log1p(-draws)
    first, second = exponentials[..., :2].sum(-1), exponentials[..., 2:].sum(-1)
    return (first / (first + second).clamp(min=1e-20)).to(like.dtype)


def find_stages(model: nn.Module) -> list[nn.Module]:
    """The parts that a convolutional network consists of, in order: its stem and its stages, or its convolutions.

    Wrappers around a network are passed through, and where one part alone has several convolutions, its parts take its
    place. A network without convolutions has none.

    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3)))
    >>> len(find_stages(model))
    3
    """
    parts: list[nn.Module] = []
    for part in model.children():  # a wrapper may hold a network twice, as Fabric's does where processes share it
        if set(_convolutions(part)) - {layer for other in parts for layer in _convolutions(other)}:
            parts.append(part)
    if len(parts) == 1 and not isinstance(parts[0], nn.Conv2d):
        return find_stages(parts[0])
    large = [part for part in parts if len(_convolutions(part)) > 1]
    if len(large) == 1:
        at = parts.index(large[0])
        parts[at : at + 1] = [part for part in large[0].children() if _convolutions(part)]
    return parts


def _convolutions(model: nn.Module) -> list[nn.Module]:
    return [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
