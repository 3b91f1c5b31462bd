"""`dign predict`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

import click

from dign.cli.options import json_option, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from dign.runs.predict import Prediction


@click.command("predict", short_help="Classify image files, and measure how stable that is under noise.")
@click.argument("model", type=click.Path())
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...", type=click.Path(allow_dash=True))
@json_option
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
    """Predict the class of each IMAGE with MODEL, a run folder or a hub folder, and how stable that is under noise.

    An IMAGE is a file, a folder (all images in it), or - for a list of paths on standard input. Stability is the
    fraction of noisy copies of the image that get the same class: 100 % means that noise of this strength never changed
    the answer, not that the answer is right.

    \b
    Examples:
      dign predict runs/photos holiday.jpg
      dign predict runs/photos pictures/ --json > predictions.json
      find . -name '*.png' | dign predict runs/photos - --sigma 0.1,0.3 --draws 200
      dign predict hub:models/photos holiday.jpg
    """
    from dign.runs.classifier import load_model
    from dign.runs.predict import SIGMAS, find_images, predict_files

    sigmas = SIGMAS if sigma is None else _parse_sigmas(sigma)
    files = find_images(_expand_standard_input(images))
    predictions = list(
        predict_files(load_model(model), files, sigmas=sigmas, draws=draws, top=top, seed=seed, device=device)
    )
    if as_json:
        images_as_dicts = [prediction.to_dict() for prediction in predictions]
        print_json({"model": model, "draws": draws, "seed": seed, "images": images_as_dicts})
        return
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 200).print(make_table(predictions, draws))


def _parse_sigmas(text: str) -> tuple[float, ...]:
    from dign.core.errors import UserError

    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = (-1.0,)
    if not all(0 <= number < float("inf") for number in numbers):
        raise UserError(f"invalid --sigma '{text}': expected noise levels of at least 0, e.g. 0.1,0.2.")
    return numbers


def _expand_standard_input(places: tuple[str, ...]) -> list[str]:
    """The paths, with those on standard input, one per line, in place of -."""
    found: list[str] = []
    for place in places:
        found += _read_lines(sys.stdin) if place == "-" else [place]
    return found


def _read_lines(stream: TextIO) -> list[str]:
    """File names may be any bytes."""
    raw = getattr(stream, "buffer", None)
    text = os.fsdecode(raw.read()) if raw else stream.read()
    return [line.removesuffix("\r") for line in text.split("\n") if line.strip()]


def make_table(predictions: list[Prediction], draws: int) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(
        box=box.SIMPLE_HEAD,
        caption=f"noise: how often the class stays the same, of {draws} draws",
        caption_justify="left",
    )
    shown.add_column("image", overflow="fold")
    shown.add_column("class")
    shown.add_column("confidence", justify="right")
    for sigma in predictions[0].stability:
        shown.add_column(f"noise {sigma}", justify="right")
    for prediction in predictions:
        levels = [Text(f"{100 * share:.0f} %") for share in prediction.stability.values()]
        shown.add_row(
            Text(prediction.image), Text(prediction.label), Text(f"{100 * prediction.confidence:.1f} %"), *levels
        )
    return shown
