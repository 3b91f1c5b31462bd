"""The landscapes of several finished runs on the same images: one file and one figure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.files import write_json
from dign.core.provenance import git_commit, now, versions
from dign.core.seeds import make_generator
from dign.data.dataset import Split
from dign.data.names import hide_folder_path
from dign.landscape.figures import landscape_figure, save_figure, theory_figure
from dign.landscape.measure import Plan, default_radii, measure
from dign.landscape.theory import TheoryPlan, measure_theory
from dign.landscape.verdicts import theory_summary
from dign.parallel.devices import pick_device
from dign.runs.folder import Run

FILE = "landscape.json"
SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What to measure, and where; `radii` None takes `default_radii`, `batch_size` None what fits into memory."""

    split: str = "validation"
    images: int = 1000
    radii: tuple[float, ...] | None = None
    draws: int = 4
    eta: float = 0.01
    seed: int = 0
    theory_images: int = 0
    """Images for the checks of the theory; 0 leaves them out."""
    batch_size: int | None = None
    device: str = "auto"


Progress = Callable[[str, int, int], None]
"""Called with what is being measured, the images done, and the images in all."""


def compare_runs(
    runs: Sequence[Run], choices: Choices, out: Path | str, follow: Progress = lambda what, done, total: None
) -> dict[str, Any]:
    """Measure every run, write landscape.json with the figures into `out`, and each run's own part into its folder."""
    started = time.monotonic()
    plan = _plan(runs, choices)
    device = pick_device(choices.device)
    models = [_measure_run(run, plan, choices, device, follow) for run in runs]
    result = {
        "schema": SCHEMA,
        "settings": {
            **asdict(plan),
            "radii": list(plan.radii),
            "split": choices.split,
            "dimension": _dimension(runs),
            "gradient_evaluations_per_image": plan.gradient_evaluations,
            "forward_passes_per_image": plan.forward_passes,
        },
        "made": {
            "commit": git_commit(),
            "time": now(),
            "seconds": round(time.monotonic() - started, 1),
            "device": device.type,
            "versions": versions(),
        },
        "models": models,
    }
    _check_finite(models, plan.radii)
    out = Path(out)
    write_json(out / FILE, result)
    save_figure(landscape_figure(result), out, "landscape")
    if choices.theory_images:
        save_figure(theory_figure(result), out, "theory")
    for run, model in zip(runs, models, strict=True):
        write_json(run.path / FILE, {**result, "models": [model]})
    return result


def _check_finite(models: Sequence[dict[str, Any]], radii: Sequence[float]) -> None:
    panels = [(name, panel) for model in models for name, panel in model["panels"].items()]
    for name, values in ((name, values) for name, panel in panels for values in panel.values()):
        for radius, value in zip(radii, values, strict=True):
            if not math.isfinite(value):
                what = name.replace("_", " ")
                raise UserError(f"The {what} at radius {radius:g} is not finite: choose smaller `radii`.")


def _plan(runs: Sequence[Run], choices: Choices) -> Plan:
    """The same for all runs, which must therefore take images of one size."""
    sizes = {run.image_size for run in runs}
    if len(sizes) > 1:
        shown = ", ".join(f"{height}x{width}" for height, width in sorted(sizes))
        raise UserError(f"These runs take images of different sizes ({shown}): compare those of one size.")
    names = [run.path.resolve() for run in runs]
    if len(set(names)) < len(names):
        raise UserError("A run is given twice: name each run once.")
    radii = choices.radii if choices.radii is not None else default_radii(_dimension(runs))
    return Plan(radii=radii, draws=choices.draws, eta=choices.eta, seed=choices.seed)


def _dimension(runs: Sequence[Run]) -> int:
    height, width = runs[0].image_size
    return 3 * height * width


def _measure_run(run: Run, plan: Plan, choices: Choices, device: torch.device, follow: Progress) -> dict[str, Any]:
    """One entry of `models` in landscape.json."""
    started = time.monotonic()
    name = run.path.resolve().name
    model = run.model().to(device)
    images, labels = sample_images(getattr(run.data(), choices.split), choices.images, plan.seed, choices.split)
    where: dict[str, Any] = {"device": device, "batch_size": choices.batch_size}
    measured = measure(model, images, labels, plan, progress=partial(follow, name), **where)
    entry = {
        "name": name,
        "method": run.config.method,
        "title": run.method().title,
        "model": run.config.model,
        "data": hide_folder_path(run.config.data),
        "seed": run.config.seed,
        **measured.summary(),
    }
    if choices.theory_images:
        theory = TheoryPlan(seed=plan.seed)
        few = slice(choices.theory_images)
        values = measure_theory(
            model, images[few], labels[few], theory, progress=partial(follow, f"{name}, theory"), **where
        )
        entry["theory"] = theory_summary(values, theory, images[0].numel())
    return {**entry, "seconds": round(time.monotonic() - started, 1)}


def sample_images(split: Split, count: int, seed: int, name: str = "split") -> tuple[Tensor, Tensor]:
    """`count` random images of a split, the same for every run; all of them if there are fewer."""
    if len(split) == 0:
        raise UserError(f"The {name} split of this data set is empty: choose another `split`.")
    order = torch.randperm(len(split), generator=make_generator(seed, "landscape/images"))[:count]
    return split.take(order), split.labels[order]
