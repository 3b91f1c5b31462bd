"""`dign landscape`."""

from __future__ import annotations

from pathlib import Path

import click

from dign.cli.messages import say_on
from dign.cli.options import json_option, print_json
from dign.core.errors import UserError

MAX_RADII = 1000
"""More are a typing error, and would fill the memory."""


@click.command("landscape", short_help="Measure how flat and smooth the loss is around images.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN [RUN ...]")
@click.option("--out", type=click.Path(), default="landscape", show_default=True, help="folder for the results")
@click.option("--images", type=click.IntRange(min=1), default=1000, show_default=True, help="number of images")
@click.option("--split", type=click.Choice(["validation", "test", "train"]), default="validation", show_default=True)
@click.option(
    "--radii", metavar="LIST", help="radii, as in 1,2,4 or 1:8:8 (from:to:count)  [default: 8 up to 0.2*sqrt(d)]"
)
@click.option("--draws", type=click.IntRange(min=1), default=4, show_default=True, help="random draws per image")
@click.option("--eta", type=float, default=0.01, show_default=True, help="step of the centered differences")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the images and the draws")
@click.option("--theory", is_flag=True, help="check the paper's equations and bounds as well (float64)")
@click.option(
    "--theory-images", type=click.IntRange(min=2), default=64, show_default=True, help="images for those checks"
)
@click.option("--batch-size", type=click.IntRange(min=1), help="images at once  [default: what fits into memory]")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
@click.option("--quiet", "-q", is_flag=True, help="no progress bar, no summary")
@json_option
def command(runs: tuple[str, ...], **options: object) -> None:
    """The loss around images: the four panels of the paper's Figure 2, several runs in one figure.

    Mean loss difference, accuracy, first-order and second-order term against the radius of random perturbations,
    with 95 % bands over images. Writes landscape.json and landscape.png, .pdf, .svg into --out, and each run's part
    into its own folder, where `dign report` finds it. --theory adds theory.png, .pdf, .svg (docs/theory.md).

    \b
    Examples:
      dign landscape runs/dign runs/standard --out landscape
      dign landscape runs/* --images 200 --radii 0.5:4:8 --draws 8
      dign landscape runs/dign --theory
    """
    radii = parse_radii(options["radii"]) if options["radii"] is not None else None

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from dign.core.allocator import reuse_memory
    from dign.landscape.compare import Choices, compare_runs
    from dign.runs.folder import load_run

    reuse_memory()
    choices = Choices(
        radii=radii,
        theory_images=options["theory_images"] if options["theory"] else 0,
        **{name: options[name] for name in ("split", "images", "draws", "eta", "seed", "batch_size", "device")},
    )
    opened = [load_run(path) for path in runs]
    console = Console(stderr=True, quiet=bool(options["quiet"]), soft_wrap=True)
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("images"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, int] = {}

        def follow(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done)

        result = compare_runs(opened, choices, options["out"], follow)
    for model in result["models"]:
        say_on(console, summarize(model))
    if options["as_json"]:
        print_json(result)
    written = f"Wrote {Path(options['out']) / 'landscape.png'} and landscape.json beside it."
    say_on(console, written)


def parse_radii(text: str) -> tuple[float, ...]:
    """'1,2,4' or '1:8:8' (from:to:count) as numbers."""
    try:
        if ":" in text:
            first, last, count = text.split(":")
            steps = int(count) - 1
            if not 1 <= steps < MAX_RADII:
                raise ValueError
            return tuple(
                round(float(first) + (float(last) - float(first)) * step / steps, 6) for step in range(steps + 1)
            )
        return tuple(float(word) for word in text.split(","))
    except ValueError as error:
        raise UserError(
            f"invalid --radii '{text}': expected at most {MAX_RADII} numbers, e.g. 1,2,4 or 1:8:8 (from:to:count)."
        ) from error


def summarize(model: dict) -> str:
    gradient, curvature = model["gradient_norm"], model["curvature"]
    return (
        f"{model['name']}: {model['images']} images, accuracy {model['clean_accuracy']:.1f} %, "
        f"gradient norm {gradient['mean']:.3g} ± {gradient['standard_error']:.1g}, "
        f"E||Hz||² {curvature['mean']:.3g} ± {curvature['standard_error']:.1g}"
    )
