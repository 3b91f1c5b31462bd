"""How much `dign landscape` costs beyond the passes that its figure must make.

The figure needs, per image and model, 1 + 2 x draws gradient evaluations and draws x radii forward passes. The bare
loop below makes exactly these passes on noise that is at hand and throws the results away. Both are timed in turns
in the same process, on the same batches, and the ratio is printed. On a CPU the time is processor time, which other
programs on the machine do not lengthen.

    python benchmarks/landscape.py                     two ResNet-18 on 1 000 CIFAR-sized images
    python benchmarks/landscape.py --images 64         the same per image, in minutes on a CPU
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.freezing import freeze_temporarily
from dign.core.pixels import to_float
from dign.landscape.batch_size import find_batch_size
from dign.landscape.measure import Plan, default_radii, measure
from dign.models import build


def bare_passes(model: nn.Module, images: Tensor, labels: Tensor, plan: Plan, batch_size: int) -> dict[str, float]:
    """Seconds for the passes alone, by kind."""
    seconds = {"gradient": 0.0, "forward": 0.0}
    with freeze_temporarily(model):
        for first in range(0, len(images), batch_size):
            x, y = to_float(images[first : first + batch_size]), labels[first : first + batch_size]
            for _ in range(plan.gradient_evaluations):
                seconds["gradient"] += timed(lambda x=x, y=y: gradient(model, x, y))
            for _ in range(plan.forward_passes):
                seconds["forward"] += timed(lambda x=x: forward(model, x))
    return seconds


def gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    inputs = x.clone().requires_grad_()
    return torch.autograd.grad(functional.cross_entropy(model(inputs), y, reduction="sum"), inputs)[0]


@torch.no_grad()
def forward(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def timed(work: Callable[[], object]) -> float:
    """Seconds: of the wall clock around work on a GPU, of the processor on a CPU."""
    if not torch.cuda.is_available():
        started = time.process_time()
        work()
        return time.process_time() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    plan = Plan(radii=default_radii(3072), draws=options.draws)
    models = [build(options.model, classes=10, image_size=(32, 32), seed=seed).to(options.device) for seed in (0, 1)]
    generator = torch.Generator().manual_seed(0)
    shape = (options.images, 3, 32, 32)
    images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8).to(options.device)
    labels = torch.randint(0, 10, shape[:1], generator=generator).to(options.device)
    batch_size = find_batch_size(models[0], to_float(images[:1]))
    gradient(models[0], to_float(images[:batch_size]), labels[:batch_size])  # warm up

    rounds = []
    for _ in range(options.repeats):
        figure = sum(timed(lambda m=m: measure(m, images, labels, plan, device=options.device)) for m in models)
        bare = [bare_passes(model, images, labels, plan, batch_size) for model in models]
        rounds.append({"figure": figure, **{kind: sum(part[kind] for part in bare) for kind in bare[0]}})
    print(
        f"{options.model}, 2 models x {options.images} images of 32x32, "
        f"batch {batch_size}, {options.device}, torch {torch.__version__}"
    )
    report(rounds, plan)


def report(rounds: list[dict[str, float]], plan: Plan) -> None:
    figure, gradients, forwards = (statistics.median(r[kind] for r in rounds) for kind in rounds[0])
    forward_cost = (forwards / plan.forward_passes) / (gradients / plan.gradient_evaluations)
    equivalent = plan.gradient_evaluations + plan.forward_passes * forward_cost
    ratios = [r["figure"] / (r["gradient"] + r["forward"]) for r in rounds]
    print(f"per image: {plan.gradient_evaluations} gradient evaluations and {plan.forward_passes} forward passes,")
    print(f"  a forward pass costing {forward_cost:.2f} gradient evaluations: {equivalent:.1f} in all")
    print(f"figure {figure:.1f} s, its passes alone {gradients + forwards:.1f} s")
    print(f"ratio {statistics.median(ratios):.3f}, of {', '.join(f'{r:.3f}' for r in ratios)} (target: at most 1.15)")


if __name__ == "__main__":
    main()
