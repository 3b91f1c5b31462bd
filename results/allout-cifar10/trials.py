"""What the all-out run's settings were chosen by: runs on validation images, clean and under noises that no test uses.

python results/allout-cifar10/trials.py RUN [RUN ...]

Uniform noise stands for noise on every value, random values for noise on few.
"""

import math
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from dign.runs.folder import load_run


def uniform_noise(x: Tensor, spread: float) -> Tensor:
    """Additive uniform noise of standard deviation `spread`, clipped."""
    drawn = torch.rand(x.shape, generator=torch.Generator().manual_seed(0))
    return (x + spread * math.sqrt(12) * (drawn - 0.5)).clamp(0, 1)


def random_values(x: Tensor, share: float) -> Tensor:
    """A share of all values replaced by others that are uniform in [0,1]."""
    where, what = torch.rand((2, *x.shape), generator=torch.Generator().manual_seed(0))
    return torch.where(where < share, what, x)


IMAGES = 5000

CONDITIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "clean": lambda x: x,
    "uniform 0.05": lambda x: uniform_noise(x, 0.05),
    "uniform 0.1": lambda x: uniform_noise(x, 0.1),
    "random 3 %": lambda x: random_values(x, 0.03),
    "random 7 %": lambda x: random_values(x, 0.07),
}


@torch.no_grad()
def main(paths: list[str]) -> None:
    torch.set_num_threads(1)
    print(f"| run | {' | '.join(CONDITIONS)} | mean of noises |")
    print("|---|" + "---|" * (len(CONDITIONS) + 1))
    for path in paths:
        run = load_run(path)
        split, model = run.data().validation, run.model()
        x, y = split.images[:IMAGES].float() / 255, split.labels[:IMAGES]
        found = []
        for spoil in CONDITIONS.values():
            answers = torch.cat([model(spoil(part)).argmax(1) for part in x.split(500)])
            found.append(100 * (answers == y).double().mean().item())
        cells = [f"{value:.1f}" for value in (*found, sum(found[1:]) / len(found[1:]))]
        print(f"| {run.path.name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
