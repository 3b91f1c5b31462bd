"""`dign evaluate RUN --ood`: telling known images from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dign.cli.attack import OPTIONS as ATTACK_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from dign.cli.opening import Outcome
    from dign.evaluation.outliers import OutlierResult
    from dign.parallel.team import Team

option = click.option(
    "--ood", metavar="NAME", help="tell test images from others: a data set, folder:PATH, noise or gaussian"
)
CONFLICTING = (
    "attack",
    *ATTACK_OPTIONS,
    "sequences",
    "benchmark",
    "sets",
    "only",
    "severity",
    "profile",
    "temperature",
)
"""Options that mean nothing with --ood."""


def is_asked_for(options: dict[str, Any]) -> bool:
    """Whether --ood is given; refuses what does not go with it."""
    from dign.core.errors import UserError

    if options["ood"] is None:
        return False
    for other in CONFLICTING:
        if options[other]:
            flag = {"sets": "set"}.get(other, other).replace("_", "-")
            raise UserError(
                f"--ood measures neither corruptions nor attacks: drop --{flag}, or evaluate without --ood."
            )
    if options.get("jpeg", "profile") != "profile":
        raise UserError("--ood measures neither corruptions nor attacks: drop --jpeg, or evaluate without --ood.")
    if options["devices"] > 1 or options["nodes"] > 1:
        raise UserError("--ood is measured by one process: drop --devices and --nodes.")
    return True


def measure_all(runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team) -> Iterator[Outcome]:
    """Measure finished runs, or the model of --model; results go to ood-NAME.json in its folder."""
    from dign.cli.opening import measure_each
    from dign.evaluation.outliers import outliers_subject, save_outliers

    common = {key: options[key] for key in ("images", "batch_size", "seed", "skip_unreadable")}

    def measure(*given: Any, team: Team, progress: Any, **chosen: Any) -> OutlierResult:
        return outliers_subject(*given, outliers=options["ood"], **common, **chosen)

    yield from measure_each(runs, options, console, team, "outliers", measure, save_outliers, _describe)


def _describe(name: str, result: OutlierResult) -> str:
    return result.describe()
