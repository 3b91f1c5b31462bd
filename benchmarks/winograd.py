"""What Winograd's algorithm brings to the 3x3 convolutions of `dign train` on a CPU: ratios, in this one run.

    python benchmarks/winograd.py                                fastnet, wide_fastnet and ResNet-18, one thread
    python benchmarks/winograd.py wide_fastnet --threads 2       on two threads; the machine should be idle

Both contenders keep their memory and work in channels-last; each is a process of its own, and they take turns.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from memory import set_up
from turns import take_turns_in_processes

from dign.methods import Standard
from dign.models.winograd import use_winograd


def training(name: str, batch: int, *, winograd: bool) -> Callable[[], object]:
    model, x = set_up(name, batch, reuse=True)
    if winograd:
        use_winograd(model)
    y = torch.randint(10, (batch,))
    return lambda: Standard()(model, x, y).loss.backward()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["fastnet", "wide_fastnet", "resnet18"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"training, batches of {options.batch}, {options.threads} threads, torch {torch.__version__}")
    for name in options.models:
        ways = {"directly": False, "by Winograd": True}
        made = {way: partial(training, name, options.batch, winograd=winograd) for way, winograd in ways.items()}
        seconds = take_turns_in_processes(made, options.repeats)
        rates = ", ".join(f"{options.batch / value:.0f} images/s {way}" for way, value in seconds.items())
        print(f"{name}: {rates}, {seconds['directly'] / seconds['by Winograd']:.2f} times as fast")


if __name__ == "__main__":
    main()
