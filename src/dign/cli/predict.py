"""`dign predict`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from dign.cli.messages import make_table_console, say
from dign.cli.options import json_option, print_json, quiet_option, skip_bad_option

if TYPE_CHECKING:
    from rich.table import Table

    from dign.runs.classifier import Classifier
    from dign.runs.predict import Prediction, Promise


SHORTEST_PATH = 16
"""Letters of a path that a table keeps, however narrow the terminal."""


@click.command("predict", short_help="Classify image files, and measure how stable that is under noise.")
@click.argument("model", type=click.Path())
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...", type=click.Path(allow_dash=True))
@skip_bad_option
@quiet_option
@json_option
@click.option("--sigma", help="noise levels in [0,1] pixel units, as in 0.1,0.2  [default: 0.05,0.1,0.2,0.3]")
@click.option("--draws", type=click.IntRange(min=1), default=100, show_default=True, help="noisy draws per level")
@click.option("--top", type=click.IntRange(min=1), default=3, show_default=True, help="classes to list in the JSON")
@click.option("--error", type=float, help="answer only where at most this share of answers is wrong, as in 0.05")
@click.option("--coverage", type=float, help="or answer this share of the images, the most confident ones")
@click.option("--sets", type=float, help="also list classes, of which one is right with this probability, as in 0.9")
@click.option(
    "--set-kind",
    type=click.Choice(["adaptive", "threshold"]),
    help="larger --sets for hard images, or the smallest on average  [default: adaptive]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the noise")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
def command(
    model: str,
    images: tuple[str, ...],
    skip_unreadable: bool,
    quiet: bool,
    as_json: bool,
    sigma: str | None,
    draws: int,
    top: int,
    error: float | None,
    coverage: float | None,
    sets: float | None,
    set_kind: str | None,
    seed: int,
    device: str,
) -> None:
    """Predict the class of each IMAGE with MODEL, a run folder or a hub folder, and how stable that is under noise.

    An IMAGE is a file, a folder (all images in it), or - for a list of paths on standard input. Stability is the
    fraction of noisy copies of the image that get the same class: 100 % means that noise of this strength never changed
    the answer, not that the answer is right.

    --error, --coverage and --sets make promises from the images that the model was calibrated on: below a threshold it
    answers "unsure". They hold for images like those; `dign evaluate` measures how they hold under corruptions.

    \b
    Examples:
      dign predict runs/photos holiday.jpg
      dign predict runs/photos pictures/ --json > predictions.json
      find . -name '*.png' | dign predict runs/photos - --sigma 0.1,0.3 --draws 200
      dign predict hub:models/photos holiday.jpg
      dign predict ensemble:runs/seed-0,runs/seed-1 holiday.jpg
      dign predict runs/photos pictures/ --error 0.05 --sets 0.9 --json
    """
    from dign.core.errors import UserError
    from dign.data.decoding import replace_unprintable
    from dign.runs.ensemble import open_classifier
    from dign.runs.predict import SIGMAS, Promise, find_images, predict_images, read_pictures

    sigmas = SIGMAS if sigma is None else _parse_sigmas(sigma)
    if set_kind is not None and sets is None:
        raise UserError("--set-kind says how the sets of --sets are made: add --sets 0.9, or leave it out.")
    promise = Promise(error, coverage, sets, set_kind or "adaptive")
    classifier = open_classifier(model)
    threshold, quantile = promise.thresholds(classifier)
    files = find_images(_expand_standard_input(images))
    size, framing = classifier.image_size, classifier.framing
    readable, pixels = read_pictures(files, size, framing, skip_unreadable=skip_unreadable)
    bad = set(files) - set(readable)
    options = {"sigmas": sigmas, "draws": draws, "top": top, "seed": seed, "device": device, "promise": promise}
    predictions = list(predict_images(classifier, pixels, list(map(replace_unprintable, readable)), **options))
    if as_json:
        images_as_dicts = [prediction.to_dict() for prediction in predictions]
        promised = {} if promise.is_empty else {"promise": _describe_promise(promise, classifier, threshold, quantile)}
        skipped = {"skipped": sorted(map(str, bad))} if bad else {}
        print_json({"model": model, "draws": draws, "seed": seed, **promised, "images": images_as_dicts, **skipped})
        return
    if quiet:
        return
    console = make_table_console()
    console.print(make_table(predictions, draws, console.width))
    if threshold is not None:
        answered = sum(not prediction.unsure for prediction in predictions)
        say(f"Answered: {answered} of {len(predictions)}, {_describe_answers(promise, threshold)}.")
    if bad:
        say(f"Left out, since they cannot be read: {', '.join(sorted(map(replace_unprintable, bad)))}.")


def _describe_answers(promise: Promise, threshold: float) -> str:
    """From which confidence on a model answers, and what that promises."""
    from dign.metrics.refusal import CERTAINTY

    chosen = f"those with a confidence of {100 * threshold:.1f} % or more"
    if promise.error is None:
        return f"{chosen}, which {100 * (promise.coverage or 0):g} % of the held-out images have"
    certain = f"with a certainty of {100 * CERTAINTY:g} %"
    return f"{chosen}: at most {100 * promise.error:g} % of such answers are wrong, {certain}"


def _describe_promise(
    promise: Promise, classifier: Classifier, threshold: float | None, quantile: float | None
) -> dict[str, Any]:
    """What is promised, how surely, from how many held-out images, and where the limits are."""
    from dign.metrics.refusal import CERTAINTY

    assert classifier.calibrator is not None and classifier.calibrator.held_out is not None  # a promise was made
    return {
        "error": promise.error,
        "certainty": None if promise.error is None else CERTAINTY,
        "coverage": promise.coverage,
        "threshold": threshold,
        "sets": promise.sets,
        "set_kind": promise.kind,
        "set_quantile": quantile,
        "held_out_images": len(classifier.calibrator.held_out),
    }


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


def make_table(predictions: list[Prediction], draws: int, width: int) -> Table:
    """The predictions for a terminal: where it is narrow, long paths lose their beginning, and then noise levels go."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [_make_row(prediction) for prediction in predictions]
    names = [name for name in rows[0] if name != "image"]
    headings = {name: name.replace(" ", "\n") if name.startswith("noise") else name for name in names}
    widths = {
        name: 3 + max(len(text) for text in (*headings[name].split("\n"), *(row[name] for row in rows)))
        for name in names
    }
    if "one of" in widths:
        widths["one of"] = min(widths["one of"], 28)
    longest = max(len(row["image"]) for row in rows)
    left_out: list[str] = []
    least = 4 + min(longest, SHORTEST_PATH)
    while names[-1].startswith("noise") and least + sum(widths[name] for name in names) > width:
        left_out.insert(0, names.pop())
    room = max(SHORTEST_PATH, width - 4 - sum(widths[name] for name in names))
    caption = f"noise: how often the class stays the same, of {draws} draws"
    if left_out:
        caption += f"; too narrow for {', '.join(left_out)}: see --json"
    shown = Table(box=box.SIMPLE_HEAD, caption=Text(caption), caption_justify="left")
    shown.add_column("image", no_wrap=True)
    for name in names:
        right = name.startswith(("noise", "confidence"))
        shown.add_column(headings[name], justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        path = row["image"] if len(row["image"]) <= room else f"…{row['image'][1 - room :]}"
        shown.add_row(Text(path), *(Text(row[name]) for name in names))
    return shown


def _make_row(prediction: Prediction) -> dict[str, str]:
    """What the table shows of a prediction, by column."""
    row = {
        "image": prediction.image,
        "class": f"unsure ({prediction.label}?)" if prediction.unsure else prediction.label,
        "confidence": f"{100 * prediction.confidence:.1f} %",
    }
    if prediction.candidates is not None:
        row["one of"] = ", ".join(prediction.candidates)
    return row | {f"noise {sigma}": f"{100 * share:.0f} %" for sigma, share in prediction.stability.items()}
