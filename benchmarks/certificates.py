"""How many noisy copies early stopping saves a certificate, on a shipped model and real images.

    python benchmarks/certificates.py models/cifar10 --images 50
    python benchmarks/certificates.py models/cifar10 --images 8 --n 100000

The plain procedure draws n copies of every image. Early stopping draws in rounds, at a corrected alpha, until the
largest radius that is within reach is certified; `dign certify` does so unless --all-draws is given. The first takes
six minutes of two cores.
"""

from __future__ import annotations

import argparse
import time

import torch

import dign
from dign.certification.record import Plan
from dign.core.sampling import spread_indices
from dign.models.winograd import use_winograd


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a run or hub folder")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--sigma", type=float, default=0.12)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--images", type=int, default=50)
    options = parser.parse_args()
    model, split = dign.load_model(options.model), dign.load_data(options.data).test
    chosen = torch.tensor(spread_indices(len(split), options.images))
    radii = Plan(sigma=options.sigma, n=options.n).resolve_radii()
    started = time.monotonic()
    network = use_winograd(model.model).to(memory_format=torch.channels_last)
    found = dign.certify(network, split.images[chosen], sigma=options.sigma, n=options.n, radii=radii)
    draws = found.draws.double()
    print(f"{len(chosen)} images, sigma {options.sigma:g}, n = {options.n}, radii {', '.join(f'{r:g}' for r in radii)}")
    for radius in (0.0, *radii):
        print(f"certified at {radius:g}: {found.certified_accuracy(split.labels[chosen], radius):.1f} %")
    error = draws.std() / len(draws) ** 0.5
    print(f"draws an image: mean {draws.mean():.0f} (standard error {error:.0f}), median {draws.median():.0f}")
    print(f"fewer than the plain procedure by a factor of {options.n / draws.mean():.1f}")
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
