"""What the hybrid run's settings were chosen by: runs on validation images, under corruptions that the test does not use.

python results/hybrid-cifar10/trials.py RUN [RUN ...]

Uniform noise and random values stand for the noises, averages over squares for the blurs, a gamma curve and a veil of
white for weather and light; C-bar at severities 1, 3 and 5 for whatever else may come.
"""

import math
import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from dign.corruptions import SETS, corrupt
from dign.runs.folder import load_run

IMAGES = 2500


def uniform_noise(x: Tensor, spread: float) -> Tensor:
    """Additive uniform noise of standard deviation `spread`, clipped."""
    drawn = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    return (x + spread * math.sqrt(12) * (drawn - 0.5)).clamp(0, 1)


def random_values(x: Tensor, share: float) -> Tensor:
    """A share of all values replaced by others that are uniform in [0,1]."""
    where, what = torch.rand((2, *x.shape), generator=torch.Generator().manual_seed(0))
    return torch.where(where < share, what, x)


def average(x: Tensor, side: int) -> Tensor:
    """The mean over squares of that side around each pixel."""
    return functional.avg_pool2d(functional.pad(x, [side // 2] * 4, mode="reflect"), side, stride=1)


GROUPS: dict[str, list[Callable[[Tensor], Tensor]]] = {
    "clean": [lambda x: x],
    "noise": [
        lambda x: uniform_noise(x, 0.05),
        lambda x: uniform_noise(x, 0.1),
        lambda x: random_values(x, 0.03),
        lambda x: random_values(x, 0.07),
    ],
    "blur": [lambda x: average(x, 3), lambda x: average(x, 5)],
    "light": [lambda x: x**0.4, lambda x: x**2.5, lambda x: 0.5 + 0.5 * x, lambda x: 0.7 + 0.3 * x],
    "C-bar": [
        lambda x, name=name, severity=severity: corrupt(x, name, severity, seed=0)
        for name in SETS["c-bar"]
        for severity in (1, 3, 5)
    ],
}


@torch.no_grad()
def main(paths: list[str]) -> None:
    torch.set_num_threads(1)
    print(f"| run | {' | '.join(GROUPS)} | mean of the four |")
    print("|---|" + "---|" * (len(GROUPS) + 1))
    for path in paths:
        run = load_run(path)
        split, model = run.data().validation, run.model()
        x, y = split.images[:IMAGES].float() / 255, split.labels[:IMAGES]

        def accuracy(spoil, model=model, x=x, y=y):
            answers = [model(part).argmax(1) for part in spoil(x).split(500)]
            return 100 * (torch.cat(answers) == y).double().mean().item()

        found = [sum(accuracy(each) for each in group) / len(group) for group in GROUPS.values()]
        cells = [f"{value:.1f}" for value in (*found, sum(found[1:]) / len(found[1:]))]
        print(f"| {run.path.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
