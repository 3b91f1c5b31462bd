"""Random self-ensemble (Liu et al., 2018) with noise at every convolution, as its authors have it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.noise import add_gaussian_noise
from dign.core.checks import check_at_least, check_integer
from dign.methods.base import Method
from dign.methods.batch_checks import check_images, warn_of_no_layers
from dign.methods.labels import Labels
from dign.methods.passes import Cost
from dign.methods.reach import Edit, Pass, as_names, edit_rows, find_layers


@dataclass(frozen=True, kw_only=True)
class NoisyFeatures(Method):
    """Cross-entropy under noise on the images and on the input of every further convolution, and an ensemble over it.

    Loss: L(f(x; d_0, d_1, ...), y) with d_0 ~ N(0, sigma^2 I) on the images and d_l ~ N(0, inner_sigma^2 I) on what the
    l-th convolution is given. Prediction: the mean of the probabilities over `ensemble` draws of the same noise.

    `RSE` is the form with noise on the images alone, which the paper of DiGN compares with. The layers are reached by
    hooks that are gone after each step.

    Args:
        sigma: Noise level on the images, in [0,1] pixel units.
        inner_sigma: Noise level on the layers' inputs, in the unit that these have.
        layers: Names of the layers; by default every `nn.Conv2d` but the first, which the images' noise reaches.
        ensemble: Draws averaged in a prediction; 1 takes a single noisy pass.

    >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 10))
    >>> NoisyFeatures()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    >>> len(model[2]._forward_pre_hooks)
    0
    """

    key = "noisy-features"
    title = "RSE, all layers"
    sees_clean = False
    cost = Cost(forward=1, backward=1)

    sigma: float = 0.4
    inner_sigma: float = 0.1
    layers: tuple[str, ...] = ()
    ensemble: int = 10

    def __post_init__(self) -> None:
        check_at_least(0, sigma=self.sigma, inner_sigma=self.inner_sigma)
        check_integer(1, ensemble=self.ensemble)
        object.__setattr__(self, "layers", as_names(self.layers))

    def reach(self, model: nn.Module) -> list[tuple[nn.Module, Edit]]:
        convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
        chosen = find_layers(model, self.layers) if self.layers else convolutions[1:]
        if not chosen:
            warn_of_no_layers("noisy-features finds no convolution beside the first: its noise is on the images alone")
        return [(layer, self._add_noise) for layer in chosen]

    def _add_noise(self, features: Tensor, passing: Pass) -> Tensor:
        return edit_rows(
            features,
            passing,
            self.key,
            lambda rows: add_gaussian_noise(rows, self.inner_sigma, passing.generator),
        )

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [add_gaussian_noise(x, self.sigma, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"noisy_features_cross_entropy": self.cross_entropy(views[0], y)}

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images(x)
        with self.attach(model) as hooks:
            hooks.current = Pass(len(x), (self.key,), generator=generator)
            draws = (add_gaussian_noise(x, self.sigma, generator) for _ in range(self.ensemble))
            return torch.stack([super(NoisyFeatures, self).predict(model, noisy) for noisy in draws]).mean(0)
