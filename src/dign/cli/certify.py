"""`dign certify`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import say_on
from dign.cli.options import print_json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Table


@click.command("certify", short_help="Prove how far images may be pushed before the answer changes.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN|HUB...")
@click.option("--sigma", type=float, required=True, help="standard deviation of the noise, in [0,1] pixel units")
@click.option("--n", type=click.IntRange(min=1), default=10_000, show_default=True, help="noisy copies that certify")
@click.option(
    "--n0", type=click.IntRange(min=1), default=100, show_default=True, help="noisy copies that choose a class"
)
@click.option("--alpha", type=float, default=0.001, show_default=True, help="probability of a wrong certificate")
@click.option("--images", type=click.IntRange(min=1), default=500, show_default=True, help="test images, spread evenly")
@click.option("--data", metavar="NAME", help="images for hub folders: a data set or folder:PATH  [default: their own]")
@click.option("--out", type=click.Path(), default=".", show_default=True, help="where certificates of hub folders go")
@click.option("--radii", metavar="LIST", help="radii of the table, as in 0.25,0.5  [default: what n/8 can certify]")
@click.option("--early/--all-draws", default=True, show_default=True, help="stop once the radii are decided")
@click.option("--attack", is_flag=True, help="also look for the smallest change that alters each answer")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the noise")
@click.option("--batch-size", type=click.IntRange(min=1), default=1000, show_default=True, help="copies at once")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
@click.option("--devices", type=click.IntRange(min=1), default=1, help="processes on this machine that share the work")
@click.option("--nodes", type=click.IntRange(min=1), default=1, help="machines that share the work, --devices on each")
@click.option("--figure", type=click.Path(), metavar="FILE", help="also draw the curves, as .png, .pdf or .svg")
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
@click.option("--quiet", "-q", is_flag=True, help="no progress bar, no table")
def command(runs: tuple[str, ...], **options: Any) -> None:
    """Certify finished runs by randomized smoothing: how far may an image be pushed before the answer can change?

    The answer is the class that noisy copies of the image get most often. It provably does not change within a
    radius, in l2 norm, with probability 1 - alpha. --attack looks for the smallest change that does alter the answer:
    the truth lies between the two. Writes certificates-SIGMA.json into each run's folder (of a hub folder: into
    OUT/NAME), one row per image; an interrupted command resumes. Certificates want a model that was trained with noise
    of about this sigma.

    \b
    Examples:
      dign certify runs/dign --sigma 0.25
      dign certify hub:models/cifar10 --sigma 0.1 --out certified
      dign certify runs/a runs/b --sigma 0.12 --n 100000 --images 500 --figure curves.png
    """

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dign.certification.record import Plan, Target, certify_target, target_of_hub, target_of_run
    from dign.core.allocator import reuse_memory
    from dign.core.errors import UserError
    from dign.core.files import replace_file
    from dign.parallel.fabric import join_processes
    from dign.runs.folder import load_run
    from dign.runs.hub_config import HUB_PREFIX, hub_folder, is_hub_folder

    def open_target(where: str) -> Target:
        if where.startswith(HUB_PREFIX) or is_hub_folder(hub_folder(where)):
            return target_of_hub(hub_folder(where), options["data"], Path(options["out"]))
        if options["data"]:
            raise UserError(f"`data` is for hub folders, and {where} is not one: a run is certified on its own images.")
        return target_of_run(load_run(where))

    plan = Plan(
        **{key: options[key] for key in ("sigma", "n0", "n", "alpha", "images", "seed", "early", "attack")},
        radii=parse_radii(options["radii"]) if options["radii"] else (),
    )
    plan.check()
    if options["figure"]:
        check_figure(options["figure"])
    reuse_memory()
    team = join_processes(options["device"], options["devices"], options["nodes"])
    with team.all_or_none():
        opened = [open_target(where) for where in runs]
    console = Console(stderr=True, quiet=bool(options["quiet"]) or not team.is_rank_zero, soft_wrap=True)
    results = []
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("images"))
    with (
        team.report_dead_peer("certify again: it resumes"),
        Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress,
    ):
        for target in opened:
            task = progress.add_task(f"certify {target.about['name']}", total=None)
            follow = partial(_update, progress, task)
            where = {"device": options["device"], "batch_size": options["batch_size"], "team": team}
            results.append(certify_target(target, plan, progress=follow, **where))
    if not team.is_rank_zero:
        return
    console.print(make_table(results))
    for result in results:
        say_on(console, summary_line(result))
    if options["figure"]:
        from dign.certification.figure import draw_certificates

        place = Path(options["figure"])
        with replace_file(place) as unfinished:
            draw_certificates(results).savefig(unfinished, format=place.suffix[1:], dpi=150)
        say_on(console, f"Wrote {place}.")
    if options["as_json"]:
        summaries = [{key: value for key, value in result.items() if key != "rows"} for result in results]
        print_json(summaries)


def _update(progress: Progress, task: TaskID, done: int, total: int) -> None:
    progress.update(task, completed=done, total=total)


def parse_radii(text: str) -> tuple[float, ...]:
    """'0.25,0.5' as numbers above 0, rising."""
    from dign.core.errors import UserError

    try:
        radii = tuple(sorted(float(word) for word in text.split(",")))
    except ValueError:
        radii = ()
    if not radii or not 0 < radii[0] <= radii[-1] < float("inf"):
        raise UserError(f"invalid --radii '{text}': expected numbers above 0, e.g. 0.25,0.5")
    return radii


def check_figure(place: str) -> None:
    from dign.core.errors import UserError

    if Path(place).suffix not in (".png", ".pdf", ".svg"):
        raise UserError(f"invalid --figure '{place}': expected a name that ends in .png, .pdf or .svg")


def make_table(results: list[dict[str, Any]]) -> Table:
    """Certified accuracy by radius, a row for each run, and one more where an attack was tried."""
    from rich.table import Table

    radii = list(dict.fromkeys(radius for result in results for radius in result["certified_accuracy"]))
    table = Table(title="Certified accuracy in percent, by l2 radius", title_justify="left")
    table.add_column("run")
    for heading in (*radii, "average radius", "no answer", "draws"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        shares = result["certified_accuracy"]
        rest = (
            f"{result['average_certified_radius']:.3f}",
            f"{result['abstained']:.1f} %",
            f"{result['mean_draws']:.0f}",
        )
        name = result["run"]["name"]
        table.add_row(name, *_percent(shares, radii), *rest)
        if attacked := result.get("accuracy_under_attack"):
            table.add_row(f"{name}, under attack", *_percent(attacked, radii))
    return table


def _percent(shares: dict[str, float], radii: list[str]) -> list[str]:
    return [f"{shares[radius]:.1f}" if radius in shares else "–" for radius in radii]


def summary_line(result: dict[str, Any]) -> str:
    """What the table is about, in words."""
    return (
        f"{result['run']['name']}: {result['images']} images, sigma {result['plan']['sigma']:g}, at most "
        f"{result['plan']['n']} draws an image; the rows are in certificates-*.json"
    )
