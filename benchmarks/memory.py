"""What it brings on a CPU that `dign train` and `dign evaluate` keep the memory they free: ratios, in this one run.

    python benchmarks/memory.py                                  fastnet, batches of 500, one thread: a minute
    python benchmarks/memory.py --model resnet18 --batch 64

Each contender is a process of its own, as the setting holds for a process; they take turns.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from turns import take_turns_in_processes

from dign.core.allocator import reuse_memory
from dign.methods import Standard
from dign.models import build


def set_up(name: str, batch: int, *, reuse: bool) -> tuple[nn.Module, Tensor]:
    """The process as `reuse` says, and in it a model and a batch in the layout of the training loop."""
    assert not reuse or reuse_memory(), "needs Linux with glibc"
    model = build(name, classes=10, image_size=(32, 32)).to(memory_format=torch.channels_last)
    return model, torch.rand(batch, 3, 32, 32).to(memory_format=torch.channels_last)


def training(name: str, batch: int, *, reuse: bool) -> Callable[[], object]:
    model, x = set_up(name, batch, reuse=reuse)
    y = torch.randint(10, (batch,))
    return lambda: Standard()(model, x, y).loss.backward()


def prediction(name: str, batch: int, *, reuse: bool) -> Callable[[], object]:
    model, x = set_up(name, batch, reuse=reuse)
    model.eval()
    return torch.no_grad()(lambda: model(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="fastnet")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{options.model}, batches of {options.batch}, {options.threads} threads, torch {torch.__version__}")
    for work in (training, prediction):
        ways = {how: partial(work, options.model, options.batch, reuse=how == "kept") for how in ("given back", "kept")}
        seconds = take_turns_in_processes(ways, options.repeats)
        rates = ", ".join(f"{options.batch / value:.0f} images/s with memory {how}" for how, value in seconds.items())
        print(f"{work.__name__}: {rates}, {seconds['given back'] / seconds['kept']:.2f} times as fast")


if __name__ == "__main__":
    main()
