"""On which validation images should a temperature be fitted, so that it holds under corruptions too?

    python benchmarks/temperature_transfer.py RUN...

For each finished run: one half of its validation images fits a temperature, clean, under the noise that the method was
trained with, and on both together; the other half is corrupted in all ways but Gaussian noise, at severities 1, 3, 5,
and its log loss and ECE (pooled) are measured without a temperature and at each of the three. Test images are not used.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from dign.core.seeds import make_generator
from dign.corruptions import NAMES, corrupt
from dign.metrics import Calibration, apply_temperature, fit_temperature, nll
from dign.metrics.temperature import PRIOR, log_probabilities
from dign.runs.calibrate import make_noisy
from dign.runs.folder import load_run

SEVERITIES = (1, 3, 5)
MOST = 1000
"""Images that are corrupted, at most."""


@torch.no_grad()
def main(paths: list[str]) -> None:
    print(
        f"{'run':28} {'T clean':>8} {'T noise':>8} {'T both':>8}   {'NLL':>24}   ECE %   (at T = 1, clean, noise, both)"
    )
    for path in paths:
        run = load_run(path)
        model, method, split = run.model(), run.method(), run.data().validation

        def predict(images, noisy=False, model=model, method=method):
            x = images.float() / 255
            generator = make_generator(0, "transfer", 0)
            x = make_noisy(method, x, generator) if noisy else x
            parts = [method.predict(model, part, generator) for part in (x.split(500) if x is not None else ())]
            return torch.cat(parts) if parts else None

        fitted, rest = (split.images[0::2], split.labels[0::2]), (split.images[1::2][:MOST], split.labels[1::2][:MOST])
        clean, noisy = predict(fitted[0]), predict(fitted[0], noisy=True)
        temperatures = [1.0, fit_temperature(log_probabilities(clean), fitted[1], PRIOR).value]
        if noisy is not None:
            both = torch.cat([clean, noisy]), torch.cat([fitted[1], fitted[1]])
            temperatures.append(fit_temperature(log_probabilities(noisy), fitted[1], PRIOR).value)
            temperatures.append(fit_temperature(log_probabilities(both[0]), both[1], PRIOR).value)
        counts, losses = [Calibration() for _ in temperatures], [[] for _ in temperatures]
        for name in (name for name in NAMES if name != "gaussian_noise"):
            for severity in SEVERITIES:
                found = predict(corrupt(rest[0], name, severity))
                for temperature, count, loss in zip(temperatures, counts, losses, strict=True):
                    at = apply_temperature(found, temperature)
                    count.update(at, rest[1])
                    loss.append(nll(at, rest[1]))
        shown = " ".join(f"{value:8.3f}" for value in temperatures[1:]).ljust(26)
        means = " ".join(f"{sum(loss) / len(loss):5.3f}" for loss in losses).ljust(24)
        print(
            f"{Path(path).name:28} {shown}   {means}   {' '.join(f'{c.compute().ece:5.2f}' for c in counts)}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
