"""`dign evaluate RUN --sequences`: stability over sequences of frames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from dign.cli.opening import Outcome
    from dign.evaluation.sequences import SequenceResult
    from dign.parallel.team import Team

option = click.option(
    "--sequences", is_flag=True, help="measure how often answers flip in sequences of frames (CIFAR-10-P) instead"
)
CONFLICTING = ("sets", "severity", "benchmark", "profile", "temperature", "attack")
"""Options that mean nothing with --sequences."""


def choose_perturbations(options: dict[str, Any]) -> tuple[str, ...]:
    """The perturbations of --only, by default all ten."""
    from dign.core.errors import UserError
    from dign.corruptions.sequences import FRAMES, PERTURBATIONS

    for other in CONFLICTING:
        if options.get(other):
            flag = {"sets": "set"}.get(other, other)
            raise UserError(f"--sequences has frames in place of severities: drop --{flag}, or drop --sequences.")
    if options.get("jpeg", "profile") != "profile":
        raise UserError("--sequences has frames in place of severities: drop --jpeg, or drop --sequences.")
    for name in options["only"]:
        if name not in FRAMES:
            from dign.core.errors import unknown_name

            raise unknown_name("perturbation", name, FRAMES)
    return tuple(dict.fromkeys(options["only"])) or PERTURBATIONS


def is_asked_for(options: dict[str, Any]) -> bool:
    """Whether --sequences is given; refuses what does not go with it."""
    return bool(options["sequences"] and choose_perturbations(options))


def measure_all(runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team) -> Iterator[Outcome]:
    """Measure finished runs, or the model of --model; results go to sequences.json in its folder."""
    from dign.cli.opening import measure_each
    from dign.evaluation.sequences import save_sequences, sequences_subject

    common = {"images": options["images"], "batch_size": min(options["batch_size"], 250), "seed": options["seed"]}
    measure = partial(sequences_subject, perturbations=choose_perturbations(options), **common)
    yield from measure_each(runs, options, console, team, "sequences", measure, save_sequences, summary_line)


def summary_line(name: str, result: SequenceResult) -> str:
    """The mean over perturbations, in words."""
    which = "mFP" if result.complete else f"mean over {', '.join(result.sequences)}"
    return (
        f"{name}: {result.mean_flip_probability:.2f} % of frames flip ({which}), top-5 distance "
        f"{result.mean_top5_distance:.3f} ({result.images} images of the {result.split} split)"
    )
