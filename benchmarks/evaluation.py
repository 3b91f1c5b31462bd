"""What evaluation adds to the forward passes: corruptions made on the fly, counting, scores.

    python benchmarks/evaluation.py [--images 300] [--model resnet18] [--size 32] [--threads 2]
    python benchmarks/evaluation.py --size 224 --images 24

Evaluates an untrained model on random smooth pictures under all nineteen corruptions at five severities, as
`dign evaluate` does, and adds up the CPU time that is spent inside the model. Prints the whole CPU time over that; the
aim is at most 1.05. Tables, frost pictures and scores cost the same for few images as for many: with few
the ratio is higher.
"""

import argparse
import time

import torch
from torch import Tensor, nn

from dign.core.allocator import reuse_memory
from dign.corruptions import NAMES
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions
from dign.evaluation.evaluate import evaluate
from dign.models import build


class Timed(nn.Module):
    """A model that adds up the seconds of CPU time that it takes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.seconds, self.images = model, 0.0, 0

    def forward(self, images: Tensor) -> Tensor:
        started = time.process_time()
        logits = self.model(images)
        self.seconds += time.process_time() - started
        self.images += len(images)
        return logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--model", default="resnet18", help="one of `dign list models`")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    reuse_memory()  # as `dign evaluate` does
    split = smooth_pictures(options.images, options.size)
    shape = split.image_size
    model = Timed(build(options.model, classes=10, image_size=shape).to(memory_format=torch.channels_last))
    started = time.process_time()
    evaluate(model, split, Conditions(corruptions=NAMES), batch_size=options.batch_size)
    whole = time.process_time() - started
    print(f"{options.model}, {model.images} predictions at {options.size} pixels, {options.threads} threads")
    print(f"forward passes: {model.seconds:.1f} s of CPU time ({model.images / model.seconds:.0f} images/s)")
    print(f"evaluation with corruptions made on the fly: {whole:.1f} s of CPU time")
    print(f"ratio: {whole / model.seconds:.3f}")


def smooth_pictures(count: int, size: int) -> Split:
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand((count, 3, 6, 6), generator=generator)
    images = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").mul(255).to(torch.uint8)
    return Split(images, torch.randint(10, (count,), generator=generator))


if __name__ == "__main__":
    main()
