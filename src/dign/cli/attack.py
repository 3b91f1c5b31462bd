"""`dign evaluate RUN --attack`: accuracy under attack."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from dign.cli.opening import Outcome
    from dign.evaluation.attack import Attack, AttackResult
    from dign.parallel.team import Team

OPTIONS = ("norm", "eps", "steps", "restarts", "attack_images")
"""Options that only mean something with --attack."""


def add_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of an attack."""
    for option in reversed(
        (
            click.option("--attack", type=click.Choice(["pgd", "apgd"]), help="measure accuracy under attack instead"),
            click.option("--norm", type=click.Choice(["linf", "l2"]), help="norm of --attack  [default: linf]"),
            click.option("--eps", metavar="NUMBER", help="radius of --attack  [default: 8/255, or 0.5 for l2]"),
            click.option("--steps", type=click.IntRange(min=1), help="steps of --attack  [default: 20]"),
            click.option("--restarts", type=click.IntRange(min=1), help="random starts of --attack  [default: 1]"),
            click.option(
                "--attack-images",
                type=click.IntRange(min=1),
                help="images to attack, spread evenly; or --images  [default: 1000]",
            ),
        )
    ):
        command = option(command)
    return command


def make_attack(options: dict[str, Any]) -> Attack | None:
    """The attack that was asked for; None for none."""
    from dign.core.errors import UserError
    from dign.evaluation.attack import Attack

    given = {name: options[name] for name in OPTIONS if options[name] is not None}
    if options["attack"] is None:
        if given:
            raise UserError(f"--{next(iter(given)).replace('_', '-')} belongs to --attack: add --attack apgd.")
        return None
    for other in ("sets", "only", "severity", "benchmark", "profile", "temperature"):
        if options.get(other):
            flag = {"sets": "set"}.get(other, other)
            raise UserError(f"--attack measures no corruptions: drop --{flag}, or evaluate again without --attack.")
    if options.get("jpeg", "profile") != "profile":
        raise UserError("--attack measures no corruptions: drop --jpeg, or evaluate again without --attack.")
    if options.get("images") and "attack_images" in given:
        raise UserError("--images and --attack-images say the same: give one of them.")
    norm = given.get("norm", "linf")
    eps = parse_eps(given["eps"]) if "eps" in given else (8 / 255 if norm == "linf" else 0.5)
    settings = {name: given[name] for name in ("steps", "restarts") if name in given}
    return Attack(kind=options["attack"], norm=norm, eps=eps, seed=options["seed"], **settings)


def parse_eps(text: str) -> float:
    """'8/255' or '0.5' as a number above 0."""
    from dign.core.errors import UserError

    above, _, below = text.partition("/")
    try:
        eps = float(above) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        eps = 0.0
    if not 0 < eps < float("inf"):
        raise UserError(f"invalid --eps '{text}': expected a number above 0 in [0,1] pixel units, e.g. 8/255 or 0.5")
    return eps


def is_asked_for(options: dict[str, Any]) -> bool:
    """Whether --attack is given; refuses its options without it."""
    return make_attack(options) is not None


def measure_all(runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team) -> Iterator[Outcome]:
    """Attack finished runs, or the model of --model; results are added to attacks.json in its folder."""
    from dign.cli.opening import measure_each
    from dign.evaluation.attack import attack_subject, save_attack

    images, batch_size = options["attack_images"] or options["images"] or 1000, min(options["batch_size"], 250)
    measure = partial(attack_subject, attack=make_attack(options), images=images, batch_size=batch_size)
    yield from measure_each(runs, options, console, team, "attack", measure, save_attack, summary_line)


def summary_line(name: str, result: AttackResult) -> str:
    """What is left under the attack, in words."""
    return (
        f"{name}: accuracy {result.accuracy:.1f} % clean, {result.robust_accuracy:.1f} % under {result.attack.title} "
        f"({result.attack.steps} steps, {result.images} images of the {result.split} split)"
    )
