"""`dign evaluate RUN --sequences`: stability over sequences of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

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
    for name in options["only"]:
        if name not in FRAMES:
            from dign.core.errors import unknown_name

            raise unknown_name("perturbation", name, FRAMES)
    return tuple(dict.fromkeys(options["only"])) or PERTURBATIONS


def measure_all(
    runs: tuple[str, ...], perturbations: tuple[str, ...], options: dict[str, Any], console: Console, team: Team
) -> Iterator[tuple[str, SequenceResult]]:
    """Measure finished runs, or the model of --model; results go to sequences.json in its folder."""
    from dign.cli.opening import open_model, show_progress
    from dign.evaluation.sequences import save_sequences, sequences_run, sequences_subject
    from dign.runs.folder import load_run

    common = {"images": options["images"], "batch_size": min(options["batch_size"], 250), "team": team}
    common |= {key: options[key] for key in ("split", "device", "seed")}
    if options["model"]:
        subject, data, out = open_model(options, console, team)
        with show_progress(console, f"sequences {subject.about.name}") as follow:
            result = sequences_subject(subject, data, perturbations, progress=follow, **common)
        with team.all_or_none():
            if team.is_rank_zero:
                save_sequences(out.parent, result)
        yield subject.about.name, result
        return
    with team.all_or_none():
        opened = [load_run(path) for path in runs]
    for run in opened:
        name = run.path.resolve().name
        elsewhere = {key: options[key] for key in ("data", "skip_unreadable")}
        with show_progress(console, f"sequences {name}") as follow:
            result = sequences_run(run, perturbations, progress=follow, **elsewhere, **common)
        yield name, result


def summary_line(name: str, result: SequenceResult) -> str:
    """The mean over perturbations, in words."""
    which = "mFP" if result.complete else f"mean over {', '.join(result.sequences)}"
    return (
        f"{name}: {result.mean_flip_probability:.2f} % of frames flip ({which}), top-5 distance "
        f"{result.mean_top5_distance:.3f} ({result.images} images of the {result.split} split)"
    )
