"""Images per second of a DiGN step on a CPU: the product's best way against plain PyTorch and torch.compile.

    python benchmarks/training.py                            wide_fastnet, batches of 250, one thread
    python benchmarks/training.py --threads 2 --batch 500    on two idle cores

plain      NCHW, eager, direct convolutions, a pass for each branch: what a loop of one's own does
compiled   the same net under torch.compile, all branches in one batch (needs a C++ compiler)
best       as `dign train` does it: channels-last, Winograd's convolutions, one batch, memory that is kept
bf16       as `dign train --precision bf16` does it; fast only on a CPU with bfloat16 instructions (AVX512-BF16, AMX)

All make the same step: DiGN with one noisy branch, backward pass, SGD. They take turns, each in a process of its own,
and medians are compared. On one thread the time is processor time, on several the clock's: the machine should be idle.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from turns import take_turns_in_processes

from dign.core.allocator import reuse_memory
from dign.methods import DiGN
from dign.models import build
from dign.models.winograd import use_winograd


def make_step(model_name: str, batch: int, way: str) -> Callable[[], object]:
    torch.manual_seed(0)
    x, y = torch.rand(batch, 3, 32, 32), torch.randint(10, (batch,))
    model = build(model_name, classes=10, image_size=(32, 32)).train()
    if way in ("best", "bf16"):
        reuse_memory()
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        use_winograd(model)
    network = torch.compile(model) if way == "compiled" else model
    method = DiGN(samples=1, weight=1.0, together=way != "plain")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=way == "bf16"):
            loss = method(network, x, y, generator=generator).loss
        loss.backward()
        optimizer.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="wide_fastnet")
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ways = {way: partial(make_step, options.model, options.batch, way) for way in ("plain", "compiled", "best", "bf16")}
    seconds = take_turns_in_processes(ways, options.repeats)
    print(f"torch {torch.__version__}, {options.model}, batches of {options.batch}, {options.threads} threads")
    for way, took in seconds.items():
        print(f"{way:9} {options.batch / took:7.1f} images/s, {seconds['plain'] / took:.2f} times plain")


if __name__ == "__main__":
    main()
