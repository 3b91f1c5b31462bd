"""Models whose landscape is known in closed form or small enough to be worked out in full."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

DIMENSION, CLASSES, IMAGES = 12, 4, 5


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    """Images (5,3,2,2) in [0,1] and labels, in float64."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(IMAGES, 3, 2, 2, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, CLASSES, (IMAGES,), generator=generator)


@pytest.fixture
def softmax_regression() -> nn.Module:
    """Logits W x + b: every derivative is known on paper."""
    torch.manual_seed(1)
    linear = nn.Linear(DIMENSION, CLASSES).double()
    with torch.no_grad():
        linear.weight.mul_(4)
    return nn.Sequential(nn.Flatten(), linear)


def two_layers(activation: nn.Module) -> nn.Module:
    torch.manual_seed(2)
    layers = [nn.Flatten(), nn.Linear(DIMENSION, 20), activation, nn.Linear(20, CLASSES)]
    model = nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    return model


@pytest.fixture
def relu_network() -> nn.Module:
    return two_layers(nn.ReLU())


@pytest.fixture
def smooth_network() -> nn.Module:
    return two_layers(nn.Tanh())


@pytest.fixture
def full_hessians() -> Callable[..., Tensor]:
    return _full_hessians


@pytest.fixture
def full_fishers() -> Callable[..., Tensor]:
    return _full_fishers


def _full_hessians(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The Hessian of each image's cross-entropy (N,d,d), entry by entry by `torch.func`."""

    def loss(image: Tensor, label: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(image.view(1, *x.shape[1:])), label[None])

    return torch.stack(
        [torch.func.hessian(loss)(image.flatten(), label) for image, label in zip(x, y, strict=True)]
    ).detach()


def _full_fishers(model: nn.Module, x: Tensor) -> Tensor:
    """J^T (diag p - p p^T) J of each image (N,d,d), from the Jacobian of the logits."""

    def logits(image: Tensor) -> Tensor:
        return model(image.view(1, *x.shape[1:]))[0]

    matrices = []
    for image in x:
        jacobian = torch.func.jacrev(logits)(image.flatten()).detach()
        p = logits(image).softmax(0).detach()
        matrices.append(jacobian.T @ (p.diag() - p.outer(p)) @ jacobian)
    return torch.stack(matrices)
