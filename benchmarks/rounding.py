"""How far rounding carries a run: two processes against one, and one against one whose first weights are a bit off.

    python benchmarks/rounding.py

Two processes add up a batch in another order than one, and nothing else differs, as tests show in float64. Training
magnifies this, as it does any other change of the last bit. Prints the distance of the weights, as a share of their
norm, after some steps of tinynet on the digits, batch norm synchronized. Takes half a minute.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import dign.training.loop
from dign.training.train import train

SETTINGS = {
    "data": "digits", "size": 8, "method": "standard", "epochs": 20, "batch_size": 256, "lr": 0.02,
    "validate_every": 0, "calibrate": "none", "device": "cpu", "track": "none",
}  # fmt: skip
STEPS = (1, 10, 100)
LAST_BIT = 2.0**-24
"""Half the distance of two neighbors in float32, as a share of them."""


def follow(way: str, folder: Path) -> None:
    """Train in one process, in two, or in one from weights that were moved, and keep the weights after some steps."""
    torch.set_num_threads(1)
    original, kept = dign.training.loop.TrainingLoop._step, []

    def step_and_keep(training: dign.training.loop.TrainingLoop, step: int) -> None:
        if step == 0 and way == "moved":
            generator = torch.Generator().manual_seed(1)
            with torch.no_grad():
                for weights in training.model.parameters():
                    weights.mul_(1 + LAST_BIT * torch.randn(weights.shape, generator=generator))
        original(training, step)
        if step + 1 in STEPS:
            kept.append(torch.cat([values.flatten().double() for values in training.model.state_dict().values()]))

    dign.training.loop.TrainingLoop._step = step_and_keep  # type: ignore[method-assign]
    processes = 2 if way == "two" else 1
    train({**SETTINGS, "devices": processes, "sync_batch_norm": processes > 1}, folder / way, quiet=True)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        torch.save(kept, folder / f"{way}.pt")


def main() -> None:
    if len(sys.argv) > 1:
        follow(sys.argv[1], Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = {}
        for way in ("one", "two", "moved"):
            subprocess.run([sys.executable, __file__, way, folder], check=True)
            runs[way] = torch.load(Path(folder) / f"{way}.pt", weights_only=True)
    for way, what in (("two", "two processes"), ("moved", "one process, first weights moved by 6e-8 of themselves")):
        pairs = zip(STEPS, runs["one"], runs[way], strict=True)
        shares = [f"{float((a - b).norm() / a.norm()):.1e} after {step}" for step, a, b in pairs]
        print(f"{what}: {', '.join(shares)} steps")


if __name__ == "__main__":
    main()
