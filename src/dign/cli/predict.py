"""`dign predict`."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from rich.table import Table

    from dign.runs.predict import Prediction


@click.command("predict", short_help="Classify image files, and say how stable that is under noise.")
@click.argument("model", type=click.Path())
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="one JSON document instead of a table")
@click.option("--sigma", help="noise levels in [0,1] pixel units, as in 0.1,0.2  [default: 0.05,0.1,0.2,0.3]")
@click.option("--draws", type=click.IntRange(min=1), default=100, show_default=True, help="noisy draws per level")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="classes to list in the JSON")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the noise")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
def command(
    model: str,
    images: tuple[str, ...],
    as_json: bool,
    sigma: str | None,
    draws: int,
    top: int,
    seed: int,
    device: str,
) -> None:
    """Say what MODEL, a run folder or a hub folder, sees in each IMAGE, and how sure and how stable it is.

    An IMAGE is a file, a folder (all images in it), or - for a list of paths on standard input. Stability is the
    fraction of noisy draws of the image that are given the same class: 100 % means that noise of this strength never
    changed the answer, which is no promise that the answer is right.

    \b
    Examples:
      dign predict runs/photos holiday.jpg
      dign predict runs/photos pictures/ --json > predictions.json
      find . -name '*.png' | dign predict runs/photos - --sigma 0.1,0.3 --draws 200
      dign predict hub:models/photos holiday.jpg
    """
    from dign.runs.classifier import open_classifier
    from dign.runs.predict import SIGMAS, image_files, predict_files

    sigmas = SIGMAS if sigma is None else _numbers(sigma)
    files = image_files(_with_standard_input(images))
    predictions = list(
        predict_files(open_classifier(model), files, sigmas=sigmas, draws=draws, top=top, seed=seed, device=device)
    )
    if as_json:
        document = {"model": model, "draws": draws, "seed": seed, "images": [each.as_dict() for each in predictions]}
        click.echo(json.dumps(document, indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 200).print(table(predictions, draws))


def _numbers(text: str) -> tuple[float, ...]:
    from dign.core.errors import UserError

    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = (-1.0,)
    if not all(0 <= number < float("inf") for number in numbers):
        raise UserError(
            f"--sigma takes noise levels of at least 0 with commas between them, as in 0.1,0.2, not '{text}'."
        )
    return numbers


def _with_standard_input(places: tuple[str, ...]) -> list[str]:
    """The paths, with those on standard input, one to a line, in the place of -."""
    found: list[str] = []
    for place in places:
        found += _lines(sys.stdin) if place == "-" else [place]
    return found


def _lines(stream: TextIO) -> list[str]:
    """File names may be any bytes."""
    raw = getattr(stream, "buffer", None)
    text = os.fsdecode(raw.read()) if raw else stream.read()
    return [line.removesuffix("\r") for line in text.split("\n") if line.strip()]


def table(predictions: list[Prediction], draws: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, caption=f"same class in so many of {draws} noisy draws", caption_justify="left")
    shown.add_column("image", overflow="fold")
    shown.add_column("class")
    shown.add_column("confidence", justify="right")
    for sigma in predictions[0].stability:
        shown.add_column(f"noise {sigma}", justify="right")
    for each in predictions:
        levels = [Text(f"{100 * share:.0f} %") for share in each.stability.values()]
        shown.add_row(Text(each.image), Text(each.label), Text(f"{100 * each.confidence:.1f} %"), *levels)
    return shown
