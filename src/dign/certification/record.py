"""`dign certify`: a run's test images certified one by one into a file that resumes, and what it adds up to."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch

from dign.certification.attack import smallest_change
from dign.certification.bounds import largest_radius
from dign.certification.smoothing import certify, check_radii, check_settings
from dign.core.errors import UserError
from dign.core.files import parse_json, read_limited, write_json, write_text
from dign.core.provenance import git_commit, now, versions
from dign.core.sampling import spread_indices
from dign.core.seeds import make_generator
from dign.data.dataset import Split
from dign.data.names import hide_folder_path
from dign.models.winograd import use_winograd
from dign.parallel.devices import pick_device
from dign.parallel.team import SINGLE_PROCESS, Team
from dign.runs.checkpoints import digest_tensors
from dign.runs.classifier import load_model
from dign.runs.folder import Run
from dign.runs.held_out import find_test_images
from dign.runs.hub_config import read_hub_config
from dign.runs.seen_images import hash_split

SCHEMA = 1
MAX_RECORD_SIZE = 2**28


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to certify: as for `certify`; `images` of the test split, spread evenly; `early` stopping or all draws.

    With `attack` every image that is certified right is also attacked, for the smallest change that alters the answer.
    """

    sigma: float
    n0: int = 100
    n: int = 10_000
    alpha: float = 0.001
    images: int = 500
    seed: int = 0
    early: bool = True
    radii: tuple[float, ...] = ()
    attack: bool = False

    def check(self) -> None:
        """Raise a `UserError` if a setting makes no sense, or if the draws cannot certify the largest radius."""
        check_settings(self.sigma, self.n0, self.n, self.alpha, None)
        check_radii(self.resolve_radii(), self.n, self.sigma, self.alpha, early=self.early)

    def resolve_radii(self) -> tuple[float, ...]:
        """The radii of the table: as given, or quarters of a unit (small ones: twentieths) up to what an eighth of the
        draws can certify, so that early stopping has something to save.
        """
        if self.radii:
            return self.radii
        step = 0.25 if largest_radius(self.n, self.sigma, self.alpha) > 0.5 else 0.05
        most = largest_radius(max(1, self.n // 8), self.sigma, self.alpha / 2)
        return tuple(round(step * number, 10) for number in range(1, int(most / step) + 1))


@dataclass(frozen=True)
class Row:
    """One image, as the field's logs have it; `attack` is the smallest change found, None where none was looked for
    or found.
    """

    index: int
    label: int
    answer: int
    radius: float
    correct: bool
    draws: int
    seconds: float
    attack: float | None = None


@dataclass(frozen=True)
class Target:
    """What is certified: a network, the test images, what the file says about them, and the folder it goes to."""

    model: torch.nn.Module
    split: Split
    about: dict[str, str]
    folder: Path


def target_of_run(run: Run) -> Target:
    """A finished run and its test images; its certificates go to its folder."""
    model = run.model()
    if run.config.winograd:
        use_winograd(model)
    about = {
        "name": run.path.resolve().name,
        "method": run.config.method,
        "model": run.config.model,
        "data": hide_folder_path(run.config.data),
    }
    return Target(model, run.data().test, about, run.path)


def target_of_hub(folder: Path, data: str | None, out: Path) -> Target:
    """The model of a hub folder, the test images of its data or of other data; certificates go to OUT/NAME."""
    images, config, name = find_test_images(folder, data), read_hub_config(folder), folder.resolve().name
    model = load_model(folder).model
    use_winograd(model)
    about = {"name": name, "method": config["method"], "model": config["model"], "data": images.name}
    return Target(model, images.split, about, out / name)


def certify_run(run: Run, plan: Plan, **options: Any) -> dict[str, Any]:
    """Certify test images of a finished run, into certificates-SIGMA.json in its folder: see `certify_target`."""
    plan.check()
    return certify_target(target_of_run(run), plan, **options)


def certify_target(
    target: Target,
    plan: Plan,
    *,
    device: str = "auto",
    batch_size: int = 1000,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Certify test images; writes certificates-SIGMA.json into the target's folder and returns its contents.

    A row is appended to certificates-SIGMA.jsonl as soon as an image is done: an interrupted command resumes there.

    Args:
        target: The model and its images.
        plan: How to certify.
        device: auto, cpu, cuda, ...
        batch_size: Noisy copies that pass through the model at once.
        team: Processes that share the images.
        progress: Told the images done, and the images in all.

    Raises:
        UserError: A setting makes no sense, before anything is written.
    """
    plan.check()
    place = team.device or pick_device(device)
    model = target.model.to(place, memory_format=torch.channels_last)  # type: ignore[call-overload]
    split = target.split
    indices = spread_indices(len(split), plan.images)
    record = target.folder / f"certificates-{plan.sigma:g}.jsonl"
    header = {
        "schema": SCHEMA,
        "plan": {**asdict(plan), "radii": list(plan.resolve_radii())},
        "test_images": len(split),
        "weights_sha256": digest_tensors(model.state_dict()),
        "images_sha256": hash_split(split),
    }
    with team.all_or_none():
        if team.is_rank_zero:
            target.folder.mkdir(parents=True, exist_ok=True)
        done = _read_rows(record, header) if team.is_rank_zero else {}
    done = team.gather(done)[0]
    remaining = [index for index in indices if index not in done]
    for first in range(0, len(remaining), team.world_size):
        mine = remaining[first + team.rank : first + team.rank + 1]
        rows = [_certify_image(model, split, index, plan, place, batch_size) for index in mine]
        for row in (row for part in team.gather(rows) for row in part):
            done[row.index] = row
            if team.is_rank_zero:
                with open(record, "a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
        progress(len(done), len(indices))
    result = {
        **header,
        "run": target.about,
        "made": {"commit": git_commit(), "time": now(), "versions": versions(), "device": place.type},
        **summarize([done[index] for index in indices], plan.resolve_radii()),
        "rows": [asdict(done[index]) for index in indices],
    }  # fmt: skip
    with team.all_or_none():
        if team.is_rank_zero:
            write_json(record.with_suffix(".json"), result)
    return result


def summarize(rows: Sequence[Row], radii: Sequence[float]) -> dict[str, Any]:
    """Certified accuracy in percent by radius, average certified radius, abstentions and draws.

    Of an attack: the percent of images that are right and for which no smaller change was found, by radius.
    """
    count = len(rows)
    steps = (0.0, *radii)
    summary = {
        "images": count,
        "certified_accuracy": {
            f"{radius:g}": 100 * sum(row.correct and row.radius >= radius for row in rows) / count for radius in steps
        },
        "average_certified_radius": sum(row.radius for row in rows if row.correct) / count,
        "abstained": 100 * sum(row.answer < 0 for row in rows) / count,
        "mean_draws": sum(row.draws for row in rows) / count,
        "seconds": round(sum(row.seconds for row in rows), 2),
    }
    if any(row.attack is not None for row in rows):
        norms = [math.inf if row.attack is None else row.attack for row in rows if row.correct]
        summary["accuracy_under_attack"] = {
            f"{radius:g}": 100 * sum(norm >= radius for norm in norms) / count for radius in steps
        }
    return summary


def _certify_image(
    model: torch.nn.Module, split: Split, index: int, plan: Plan, device: torch.device, batch_size: int
) -> Row:
    started = time.monotonic()
    found = certify(
        model,
        split.take(slice(index, index + 1)).to(device),
        sigma=plan.sigma,
        n0=plan.n0,
        n=plan.n,
        alpha=plan.alpha,
        radii=plan.resolve_radii() if plan.early else None,
        generator=make_generator(plan.seed, "certificates"),
        first=index,
        batch_size=batch_size,
    )
    label, answer = int(split.labels[index]), int(found.classes[0])
    norm: float | None = None
    if plan.attack and answer == label:
        image = split.images[index].to(device)
        norm = smallest_change(model, image, answer, sigma=plan.sigma, alpha=plan.alpha, seed=plan.seed, number=index)
    seconds = round(time.monotonic() - started, 3)
    shown = norm if norm is not None and math.isfinite(norm) else None
    return Row(index, label, answer, float(found.radii[0]), answer == label, int(found.draws[0]), seconds, shown)


def _read_rows(record: Path, header: dict[str, Any]) -> dict[int, Row]:
    """The images that an interrupted command certified: the same images, by the same weights, with the same settings.

    A file of others is set aside, with the certificates that were made of it.
    """
    lines: list[str] = []
    if record.exists():
        try:
            lines = read_limited(record, MAX_RECORD_SIZE).decode(errors="replace").splitlines()
        except ValueError as error:
            raise UserError(f"{record} cannot be read ({error}): remove it, and certify again.") from error
    rows: dict[int, Row] = {}
    try:
        same = bool(lines) and parse_json(lines[0]) == header
    except ValueError:
        same = False
    if len(lines) > 1 and not same:
        _set_aside(record)
    for line in lines[1:] if same else ():
        try:
            row = Row(**parse_json(line))
        except (ValueError, TypeError):  # the last line may be half written
            continue
        rows[row.index] = row
    kept = [json.dumps(header), *(json.dumps(asdict(row)) for row in rows.values())]
    write_text(record, "".join(f"{line}\n" for line in kept))
    return rows


def _set_aside(record: Path) -> None:
    """Rename a record, and the certificates made of it, to earlier-certificates-SIGMA-NUMBER, which nothing reads."""
    number = next(number for number in count(1) if not _earlier(record, number).exists())
    for file in (record.with_suffix(".json"), record):
        if file.exists():
            file.rename(_earlier(file, number))


def _earlier(file: Path, number: int) -> Path:
    return file.with_name(f"earlier-{file.stem}-{number}{file.suffix}")
