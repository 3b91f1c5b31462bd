import math

import pytest
import torch
from torch import Tensor, nn

torch.set_num_threads(1)  # images are tiny here: threads would only wait for each other


class Recorder(nn.Module):
    """A small smooth net that remembers every batch it was shown and in which mode."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        middle = nn.BatchNorm2d(4) if norm else nn.Identity()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), middle, nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 5))
        self.seen: list[Tensor] = []
        self.modes: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach().clone())
        self.modes.append(self.training)
        return self.body(x)

    @property
    def trained_on(self) -> list[Tensor]:
        return [batch for batch, training in zip(self.seen, self.modes, strict=True) if training]


class Oracle:
    """Slow and obvious formulas: what the model was shown is recorded, and the loss worked out from it."""

    @staticmethod
    def probabilities(model, batch):
        """Softmax in float64 as lists, so that the formulas below are plain arithmetic."""
        with torch.no_grad():
            return torch.softmax(model.body(batch).double(), 1).tolist()

    @staticmethod
    def cross_entropy(p, y):
        return -sum(math.log(row[label]) for row, label in zip(p, y.tolist(), strict=True)) / len(p)

    @staticmethod
    def kl(p, q):
        rows = zip(p, q, strict=True)
        return sum(sum(a * math.log(a / b) for a, b in zip(r, s, strict=True)) for r, s in rows) / len(p)

    @classmethod
    def jensen_shannon(cls, *ps):
        mixture = [[sum(values) / len(ps) for values in zip(*rows, strict=True)] for rows in zip(*ps, strict=True)]
        return sum(cls.kl(p, mixture) for p in ps) / len(ps)

    @classmethod
    def run(cls, method, recorder, x, y):
        """The outcome, and the batches of the training pass, which were one tensor, with their probabilities."""
        outcome = method(recorder, x, y, generator=torch.Generator().manual_seed(0))
        (batch,) = recorder.trained_on
        return outcome, [cls.probabilities(recorder, part) for part in batch.split(len(x))], batch.split(len(x))

    @staticmethod
    def plain_attack(recorder, x, objective, radius, steps, step_size, start):
        """PGD in l_inf, image by image, with the simplest code that could work."""
        attacked = []
        for i, image in enumerate(x):
            delta = start[i].clone()
            for _ in range(steps):
                delta.requires_grad_()
                (gradient,) = torch.autograd.grad(objective(recorder.body((image + delta)[None])[0], i), delta)
                delta = (delta.detach() + step_size * gradient.sign()).clamp(-radius, radius)
                delta = (image + delta).clamp(0, 1) - image
            attacked.append(image + delta)
        return torch.stack(attacked)


class Quadratic(nn.Module):
    """A model of two classes whose cross-entropy at label 0 is x^T A x / 2 + b x + 1, so that all is known on paper."""

    def __init__(self, a: Tensor, b: Tensor) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(a), nn.Parameter(b)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        loss = 0.5 * torch.einsum("ni,ij,nj->n", x, self.a, x) + x @ self.b + 1
        return torch.stack((-loss, torch.log(-torch.expm1(-loss))), dim=1)


@pytest.fixture
def make_quadratic() -> type[Quadratic]:
    return Quadratic


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def normed_recorder() -> Recorder:
    return Recorder(norm=True)


@pytest.fixture
def x() -> Tensor:
    return torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def y() -> Tensor:
    return torch.tensor([0, 1, 2, 3, 4, 0])


@pytest.fixture
def network():
    """Two convolutions and a linear layer, for images of 8 pixels."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, bias=False), nn.Flatten(), nn.Linear(4 * 16, 5)
    )
