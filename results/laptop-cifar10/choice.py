"""Accuracy of runs on validation images under corruptions that the test does not use: what settings were chosen by.

python results/laptop-cifar10/choice.py RUN [RUN ...]

Uniform noise stands for the noises, the others for the rest: gamma, occlusion, rotation, loss of color.
"""

import math
import sys

import torch
from torch import Tensor

from dign.augment.geometry import warp
from dign.runs.folder import load_run

IMAGES = 2000


def uniform_noise(x: Tensor, spread: float) -> Tensor:
    """Additive uniform noise of standard deviation `spread`, clipped."""
    drawn = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    return (x + spread * math.sqrt(12) * (drawn - 0.5)).clamp(0, 1)


def occluded(x: Tensor) -> Tensor:
    x = x.clone()
    x[..., 8:18, 12:22] = 0.5
    return x


def rotated(x: Tensor, degrees: float) -> Tensor:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return warp(x, torch.tensor([[cosine, -sine, 0.0], [sine, cosine, 0.0]]).repeat(len(x), 1, 1), mode="bilinear")


NOISES = {f"uniform {spread}": lambda x, spread=spread: uniform_noise(x, spread) for spread in (0.05, 0.1, 0.15, 0.2)}
OTHERS = {
    "gamma 0.4": lambda x: x**0.4,
    "gamma 2.5": lambda x: x**2.5,
    "occlusion": occluded,
    "rotation 20": lambda x: rotated(x, 20.0),
    "gray": lambda x: x.mean(1, keepdim=True).expand_as(x),
}


@torch.no_grad()
def main(paths: list[str]) -> None:
    torch.set_num_threads(1)
    print("| run | clean | uniform noise | others |")
    print("|---|---|---|---|")
    for path in paths:
        run = load_run(path)
        split, model = run.data().validation, run.model()
        x, y = split.images[:IMAGES].float() / 255, split.labels[:IMAGES]

        def accuracy(spoil, model=model, x=x, y=y):
            hits = [model(spoil(part)).argmax(1) for part in x.split(500)]
            return 100 * (torch.cat(hits) == y).double().mean().item()

        clean = accuracy(lambda x: x)
        noises, others = ([accuracy(spoil) for spoil in table.values()] for table in (NOISES, OTHERS))
        print(f"| {run.path.name} | {clean:.1f} | {sum(noises) / len(noises):.1f} | {sum(others) / len(others):.1f} |")


if __name__ == "__main__":
    main(sys.argv[1:])
