"""Stability over sequences of frames: how often an answer changes while the picture hardly does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.checks import check_integer
from dign.core.errors import UserError, unknown_name
from dign.core.files import read_json, write_json
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float, to_uint8
from dign.core.provenance import git_commit, now, versions
from dign.core.sampling import spread_indices
from dign.corruptions.sequences import FRAMES, NOISES, PERTURBATIONS, make_frames
from dign.data.dataset import DataSet, Split
from dign.evaluation.inputs import Data, open_images
from dign.evaluation.measure import Batches, Predictor
from dign.evaluation.predictors import CheckedPredictor, Model, device_of, make_predictor
from dign.evaluation.subjects import Subject
from dign.metrics.stability import flips, top_distance
from dign.parallel.devices import device_name, find_device, pick_device
from dign.parallel.team import SINGLE_PROCESS, Team

SEQUENCES_FILE = "sequences.json"


@dataclass(frozen=True)
class Stability:
    """What happens to the answers in one perturbation's sequences.

    Attributes:
        flip_probability: Percent of the frames whose answer is another than that of the frame they are compared with:
            the first one under noise, the one before otherwise.
        top5_distance: Mean distance of the five likeliest classes between these frames.
    """

    flip_probability: float
    top5_distance: float


@dataclass(frozen=True)
class SequenceResult:
    """Stability under several perturbations.

    Attributes:
        sequences: By perturbation.
        images: How many sequences were measured of each.
        split: The split that they are from.
        seed: Of the random numbers.
        seconds: How long it took.
        about: Commit, time, versions and device.
    """

    sequences: dict[str, Stability]
    images: int
    split: str | None = None
    seed: int = 0
    seconds: float = 0.0
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def mean_flip_probability(self) -> float:
        """Mean over the perturbations, in percent."""
        return sum(each.flip_probability for each in self.sequences.values()) / len(self.sequences)

    @property
    def mean_top5_distance(self) -> float:
        """Mean over the perturbations."""
        return sum(each.top5_distance for each in self.sequences.values()) / len(self.sequences)

    @property
    def complete(self) -> bool:
        """Whether the means are over the ten perturbations of CIFAR-10-P."""
        return set(self.sequences) == set(PERTURBATIONS)

    def __str__(self) -> str:
        rows = [("flips %", "top-5 distance", "perturbation")]
        rows += [_row(each.flip_probability, each.top5_distance, name) for name, each in self.sequences.items()]
        rows.append(_row(self.mean_flip_probability, self.mean_top5_distance, "mean"))
        return "\n".join(f"{flip:>8}  {distance:>14}  {name}" for flip, distance, name in rows)

    def to_json(self) -> dict[str, Any]:
        """What sequences.json has."""
        means = {"flip_probability": self.mean_flip_probability, "top5_distance": self.mean_top5_distance}
        return {"schema": 1, **asdict(self), "mean": means}


def _row(flip: float, distance: float, name: str) -> tuple[str, str, str]:
    return f"{flip:.2f}", f"{distance:.3f}", name


def evaluate_sequences(
    model: Model,
    data: Data,
    perturbations: Sequence[str] = PERTURBATIONS,
    *,
    seed: int = 0,
    batch_size: int = 250,
    device: torch.device | str | None = None,
) -> SequenceResult:
    """Measure how stable the answers of any model are over sequences of frames, as CIFAR-10-P does.

    Frames are made on the fly, and none are kept: memory does not grow with their number. Labels play no part.

    Args:
        model: As of `dign.evaluate`.
        data: As of `dign.evaluate`; every image is the start of one sequence for each perturbation.
        perturbations: Names from `dign.corruptions.sequences.FRAMES`; by default the ten of CIFAR-10-P.
        seed: Of the random numbers.
        batch_size: Images predicted at once; a DataLoader keeps its own.
        device: Where the images are sent; by default where the model is.

    Returns:
        Flip probability and top-5 distance for each perturbation; it prints as a table.

    Raises:
        UserError: There is no such perturbation; model or images are not what is described here.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> result = evaluate_sequences(model, (torch.rand(4, 3, 8, 8), torch.arange(4)), ["brightness"])
    >>> 0 <= result.sequences["brightness"].flip_probability <= 100
    True
    """
    check_integer(1, batch_size=batch_size)
    _check_names(perturbations)
    target = device_of(model) if device is None else find_device(str(device))
    predict = CheckedPredictor(make_predictor(model))
    network = model if isinstance(model, nn.Module) else nn.Identity()
    with freeze_temporarily(network):
        return _measure(predict, open_images(data, batch_size).batches, perturbations, seed, target)


def sequences_subject(
    subject: Subject,
    data: DataSet,
    perturbations: Sequence[str] = PERTURBATIONS,
    *,
    images: int | None = None,
    split: str = "test",
    seed: int = 0,
    device: str = "auto",
    batch_size: int = 250,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SequenceResult:
    """Stability on images of a split, spread evenly over it.

    Args:
        subject: What is measured, as it predicts: a run (`open_run`), or any model.
        data: Its images.
        perturbations: As of `evaluate_sequences`.
        images: How many images of the split; by default all.
        split: "test", "validation" or "train".
        seed: Of the random numbers.
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once.
        team: Processes that share the work.
        progress: Called with the number of frames done and of all.

    Raises:
        UserError: There is no such perturbation, or the split has no images.
    """
    _check_names(perturbations)
    chosen: Split = getattr(data, split)
    if len(chosen) == 0:
        raise UserError(f"The {split} split of {data.name} has no images to perturb: choose another split.")
    target = team.device or pick_device(device)
    indices = torch.tensor(spread_indices(len(chosen), images or len(chosen)))
    batches = ((chosen.take(part), chosen.labels[part]) for part in indices.split(batch_size))
    model: nn.Module = subject.model.to(target)
    total = len(indices) * sum(FRAMES[name] for name in perturbations)
    follow = lambda done: progress(min(done, total), total)  # noqa: E731
    with freeze_temporarily(model):
        predict = partial(subject.predict, model)
        result = _measure(predict, batches, perturbations, seed, target, team, follow)
    return replace(result, split=split)


def _check_names(perturbations: Sequence[str]) -> None:
    if isinstance(perturbations, str) or not perturbations:
        raise UserError(f"perturbations must be a list of names, e.g. ['rotate'], not {perturbations!r}.")
    for name in perturbations:
        if name not in FRAMES:
            raise unknown_name("perturbation", name, FRAMES)


@torch.no_grad()
def _measure(
    predict: Predictor,
    batches: Batches,
    perturbations: Sequence[str],
    seed: int,
    device: torch.device,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int], None] = lambda done: None,
) -> SequenceResult:
    started = time.monotonic()
    changes = dict.fromkeys(perturbations, (0, 0))
    first = done = 0
    with team.all_or_none():
        for number, (images, labels) in enumerate(batches):
            if number % team.world_size == team.rank:
                pixels = images.to(device)
                pixels = pixels if pixels.dtype == torch.uint8 else to_uint8(pixels)
                for name in perturbations:
                    counts = _count_changes(predict, pixels, name, seed, first)
                    changes[name] = (changes[name][0] + counts[0], changes[name][1] + counts[1])
                    done += len(labels) * FRAMES[name] * team.world_size
                    progress(done)
            first += len(labels)
    if first == 0:
        raise UserError("there are no images to perturb.")
    gathered = team.gather(changes)
    sequences = {}
    for name in perturbations:
        pairs = first * (FRAMES[name] - 1)
        flipped, distance = (sum(part[name][which] for part in gathered) for which in (0, 1))
        sequences[name] = Stability(100 * flipped / pairs, distance / pairs)
    about = {"commit": git_commit(), "time": now(), "versions": versions(), "device": device_name(device)}
    return SequenceResult(sequences, first, None, seed, round(time.monotonic() - started, 2), about)


def _count_changes(predict: Predictor, images: Tensor, name: str, seed: int, first: int) -> tuple[int, int]:
    """Flips and distances, added up over the frames and images of a batch."""
    device = images.device
    flipped, distance = (
        torch.zeros((), dtype=torch.int64, device=device),
        torch.zeros((), dtype=torch.int64, device=device),
    )
    reference: Tensor | None = None
    for frame, made in enumerate(make_frames(images, name, seed=seed, first=first)):
        generator = make_placed_generator(seed, f"predict/{name}/{frame}", first, device)
        scores = predict(to_float(made), generator)
        if reference is not None:
            flipped += flips(reference, scores).sum()
            distance += top_distance(reference, scores).sum()
        reference = scores if reference is None or name not in NOISES else reference
    return int(flipped), int(distance)


def save_sequences(folder: Path, result: SequenceResult) -> Path:
    """Write sequences.json into a folder; where it has all ten and these are fewer, sequences-NAMES.json beside it."""
    file = folder / SEQUENCES_FILE
    if not result.complete and _has_all(file):
        file = folder / f"sequences-{'-'.join(result.sequences)}.json"
    write_json(file, result.to_json())
    return file


def _has_all(file: Path) -> bool:
    try:
        return set(PERTURBATIONS) <= set(read_json(file)["sequences"])
    except (KeyError, OSError, TypeError, ValueError):
        return False  # there is none, or none that can be read
