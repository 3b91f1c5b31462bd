"""Images per second of a DiGN step on a CPU: the product's best way against plain PyTorch and torch.compile.

    python benchmarks/training.py                            wide_fastnet, batches of 250, one thread
    python benchmarks/training.py --threads 2 --batch 500    on two idle cores
    python benchmarks/training.py --profile bf16             where the time of a step goes

plain      NCHW, eager, direct convolutions, a pass for each branch: what a loop of one's own does
compiled   the same net under torch.compile, all branches in one batch (needs a C++ compiler)
best       as `dign train` does it: channels-last, Winograd's convolutions, one batch, memory that is kept
bf16       as `dign train --precision bf16` does it; fast only on a CPU with bfloat16 instructions (AVX512-BF16, AMX)

All make the same step: DiGN with one noisy branch, backward pass, SGD. They take turns, each in a process of its own,
and medians are compared. On one thread the time is processor time, on several the clock's: the machine should be idle.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from turns import take_turns_in_processes

from dign.core.allocator import reuse_memory
from dign.methods import DiGN
from dign.models import build
from dign.models.winograd import use_winograd

WAYS = ("plain", "compiled", "best", "bf16")


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


def show_profile(model_name: str, batch: int, way: str) -> None:
    """The largest parts of a step, and the arithmetic of its convolutions: 2 operations for a multiply and add."""
    step = make_step(model_name, batch, way)
    for _ in range(2):  # code is compiled and memory settles
        step()
    started = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        step()
    whole = time.perf_counter() - started
    seconds = Counter({each.key: each.self_cpu_time_total / 1e6 for each in found.key_averages()})
    print(f"a step of {batch} images and as many noisy ones, {way}: {whole:.2f} s, of which")
    for name, took in seconds.most_common(10):
        print(f"  {took / whole:4.0%}  {name}")
    convolving = sum(took for name, took in seconds.items() if "convolution" in name)
    operations = 2 * batch * count_convolutions(model_name)
    print(
        f"its convolutions are {operations / 1e9:.0f} GFLOP: {operations / 1e9 / whole:.0f} GFLOP/s over the whole step"
    )
    if convolving:  # Winograd's are other operations
        print(f"and {operations / 1e9 / convolving:.0f} GFLOP/s while it convolves")


def count_convolutions(model_name: str) -> int:
    """Operations of the convolutions of one image, forward and backward; the first one's input needs no gradient."""
    model, found = build(model_name, classes=10, image_size=(32, 32)), []

    def count(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        assert isinstance(layer, nn.Conv2d)
        found.append(2 * output.numel() * layer.weight[0].numel())

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(count)
    model.eval()(torch.rand(1, 3, 32, 32))
    return 3 * sum(found) - found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="wide_fastnet")
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", choices=WAYS, metavar="WAY", help=f"profile one of {', '.join(WAYS)}")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.profile:
        show_profile(options.model, options.batch, options.profile)
        return
    ways = {way: partial(make_step, options.model, options.batch, way) for way in WAYS}
    seconds = take_turns_in_processes(ways, options.repeats)
    print(f"torch {torch.__version__}, {options.model}, batches of {options.batch}, {options.threads} threads")
    for way, took in seconds.items():
        print(f"{way:9} {options.batch / took:7.1f} images/s, {seconds['plain'] / took:.2f} times plain")


if __name__ == "__main__":
    main()
