"""What corruptions made on the fly add to the forward passes of an evaluation.

    python benchmarks/evaluation.py [--images 100] [--model resnet18] [--threads 2]

Evaluates an untrained model on CIFAR-sized random images under all nineteen corruptions at five severities, and times
beside it the same number of bare forward passes over the same batches. The two take turns, corruption by corruption, so
that whatever else the machine does hits both alike. Prints the ratio of the sums; the aim is at most 1.10.
"""

import argparse
import time

import torch

from dign.core.freezing import freeze_temporarily
from dign.core.pixels import to_float
from dign.corruptions import NAMES
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions
from dign.evaluation.evaluate import evaluate
from dign.models import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(0)
    shape = (options.images, 3, 32, 32)
    split = Split(
        torch.randint(256, shape, dtype=torch.uint8, generator=generator),
        torch.randint(10, (options.images,), generator=generator),
    )
    model = build(options.model, classes=10, image_size=(32, 32)).to(memory_format=torch.channels_last)
    seconds = {"passes": 0.0, "evaluation": 0.0}
    bare_passes(model, split, 1)  # first passes allocate
    for name in NAMES:
        conditions = Conditions(corruptions=(name,))
        count = 1 + len(conditions.severities)  # evaluate() measures the clean images too
        seconds["passes"] += timed(bare_passes, model, split, count)
        seconds["evaluation"] += timed(evaluate, model, split, conditions, batch_size=options.images)
    passes = len(NAMES) * 6 * options.images
    print(f"{options.model}, {passes} predictions, {options.threads} threads")
    print(f"forward passes alone: {seconds['passes']:.1f} s ({passes / seconds['passes']:.0f} images/s)")
    print(f"evaluation with corruptions made on the fly: {seconds['evaluation']:.1f} s")
    print(f"ratio: {seconds['evaluation'] / seconds['passes']:.3f}")


@torch.no_grad()
def bare_passes(model: torch.nn.Module, split: Split, count: int) -> None:
    x = to_float(split.images)
    with freeze_temporarily(model):
        for _ in range(count):
            model(x)


def timed(function, *args, **settings) -> float:
    started = time.perf_counter()
    function(*args, **settings)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
