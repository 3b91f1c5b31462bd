"""How like the photographs the procedural frost is: accuracy of a model, and statistics of the images, under both.

    python benchmarks/frost.py [--model hub:models/cifar10] [--images 2000] [--split test]

Needs CIFAR-10 (`dign data fetch cifar10`) and the photographs (`pip install 'dign[frost]'`). Every image gets a piece
of a random picture of either kind at each severity. Prints the accuracy, mean, standard deviation within an image and
log10 of the power of the change in three octaves, for both, and the difference of the accuracies with its standard
error over images.
"""

import argparse
from unittest import mock

import numpy as np
import torch
from torch import Tensor

import dign
from dign.corruptions import SEVERITIES, corrupt, frost

SOURCES = ("photographs", "procedural")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="hub:models/cifar10")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--split", choices=("train", "validation", "test"), default="test")
    options = parser.parse_args()
    frost.frost_pictures("photographs")  # says how to get them where they are missing
    model = dign.load_model(options.model)
    data = dign.load_data("cifar10", validation=0.2)
    split = getattr(data, options.split)
    some = torch.linspace(0, len(split) - 1, min(options.images, len(split))).long()
    images, labels = split.take(some), split.labels[some]
    print(f"{options.model}, {len(images)} images of {options.split}")
    print("| severity | frost | accuracy % | mean | std | power by octave | difference of accuracies |")
    print("|---|---|---:|---:|---:|---|---:|")
    gaps = []
    for severity in SEVERITIES:
        right = []
        for source in SOURCES:
            made = corrupt_with(source, images, severity)
            right.append(is_right(model, made, labels))
            gap = ""
            if source == SOURCES[1]:
                gaps.append(right[1] - right[0])
                gap = show_gap(gaps[-1])
            look = f"{float(made.double().mean()):.1f} | {float(made.double().std((1, 2, 3)).mean()):.1f}"
            power = " ".join(f"{value:.2f}" for value in octaves(made.double() - images.double()))
            print(
                f"| {severity} | {source} | {100 * float(right[-1].mean()):.2f} | {look} | {power} | {gap} |",
                flush=True,
            )
    print(f"all severities: {show_gap(torch.stack(gaps).mean(dim=0))}")


def corrupt_with(source: str, images: Tensor, severity: int) -> Tensor:
    frost._picture_table.cache_clear()
    with mock.patch.object(frost, "frost_source", return_value=source):
        made = corrupt(images, "frost", severity)
    frost._picture_table.cache_clear()
    return made


@torch.no_grad()
def is_right(model: dign.Classifier, images: Tensor, labels: Tensor) -> Tensor:
    """(N,) 1 where the answer is right."""
    answers = torch.cat([model(batch.float() / 255).argmax(dim=1) for batch in images.split(500)])
    return (answers == labels).double()


def octaves(change: Tensor) -> list[float]:
    """log10 of the mean power of the change's gray value in the three octaves up to half a cycle per pixel."""
    gray = change.mean(dim=1)
    power = torch.fft.fft2(gray - gray.mean((1, 2), keepdim=True)).abs().square().mean(dim=0) / gray[0].numel()
    across = torch.fft.fftfreq(gray.shape[-1], dtype=torch.float64)
    radius = torch.hypot(across[:, None], across)
    bands = ((1 / 16, 1 / 8), (1 / 8, 1 / 4), (1 / 4, 1 / 2))
    return [float(np.log10(float(power[(radius >= low) & (radius < high)].mean()))) for low, high in bands]


def show_gap(gap: Tensor) -> str:
    return f"{100 * float(gap.mean()):+.2f} ± {100 * float(gap.std()) / len(gap) ** 0.5:.2f}"


if __name__ == "__main__":
    main()
