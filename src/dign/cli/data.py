"""`dign data`: fetch a data set into the cache, look at it, verify it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import say, say_on
from dign.cli.options import json_option, print_json, quiet_option, skip_bad_option
from dign.data.names import NAMES, PICTURE_PREFIXES

if TYPE_CHECKING:
    from dign.core.progress import ProgressCallback
    from dign.data.dataset import DataSet, Split


def complete_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*NAMES, *PICTURE_PREFIXES) if name.startswith(incomplete)]


name_argument = click.argument("name", shell_complete=complete_names)


@click.group("data")
def command() -> None:
    """Fetch, show and verify data sets; look after what is kept of them.

    \b
    NAME is one of digits, cifar10, cifar100, tiny-imagenet; or, for your own images, folder:PATH, wds:PATTERN, hf:PATH.
    They are stored in the folder $DIGN_DATA, or in the platform's cache directory.

    \b
    Examples:
      dign data fetch cifar10
      dign data show folder:photographs --size 64
      dign data verify cifar10
      dign data cache
    """


@command.command()
@name_argument
@click.option(
    "--from",
    "origin",
    type=click.Path(path_type=Path),
    help="Take it from this folder or archive in the official form instead of from the network.",
)
@quiet_option
@json_option
def fetch(name: str, origin: Path | None, quiet: bool, as_json: bool) -> None:
    """Fetch the data set NAME into the cache, and verify it.

    An intact copy is left alone; a damaged one is fetched again. An interrupted download is resumed. digits and
    folder:PATH need no fetching.

    \b
    Examples:
      dign data fetch cifar10
      dign data fetch tiny-imagenet --from tiny-imagenet-200.zip
    """
    from dign.data import cache_root, find_source

    source = find_source(name)
    with _report_progress(quiet) as report:
        sentence = source.fetch(cache_root(), report, origin)
    if as_json:
        print_json({"data": name, "folder": str(cache_root()), "message": sentence})
    elif not quiet:
        say(sentence, err=False)


@command.command()
@name_argument
@click.option("--size", type=click.IntRange(1, 4096), help="Resize every image to SIZE x SIZE.")
@click.option(
    "--fit", type=click.Choice(["crop", "pad", "squash"]), default="crop", help="How a picture becomes a square."
)
@click.option("--crop-fraction", type=float, default=1.0, help="Share of the shorter side that the middle keeps.")
@click.option("--validation", type=float, default=0.1, show_default=True, help="Fraction cut from the training images.")
@click.option("--validation-seed", type=int, default=0, show_default=True, help="Another seed cuts other images.")
@skip_bad_option
@quiet_option
@json_option
def show(
    name: str,
    size: int | None,
    fit: str,
    crop_fraction: float,
    validation: float,
    validation_seed: int,
    skip_unreadable: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show splits, classes, image size and the location of the data set NAME.

    \b
    Examples:
      dign data show digits
      dign data show folder:photographs --size 64 --validation 0.2
      dign data show folder:photographs --size 160 --crop-fraction 0.875
    """
    from dign.data import Framing, load

    with _report_progress(quiet) as report:
        data = load(
            name,
            size=size,
            validation=validation,
            validation_seed=validation_seed,
            skip_unreadable=skip_unreadable,
            framing=Framing(fit, crop_fraction),
            progress=report,
        )
    if as_json:
        print_json(_describe(data))
    elif not quiet:
        _print_summary(data)


@command.command()
@name_argument
@quiet_option
@json_option
def verify(name: str, quiet: bool, as_json: bool) -> None:
    """Compute the checksums of the data set NAME again; exit code 2 if one is wrong.

    \b
    Example:
      dign data verify cifar10
    """
    from dign.core.errors import UserError
    from dign.data import cache_root, find_source

    source = find_source(name)
    with _report_progress(quiet) as report:
        checks = source.verify(cache_root(), report)
    if as_json:
        print_json([{"what": check.what, "good": check.good, "against": check.against} for check in checks])
    for check in checks if not (as_json or quiet) else ():
        click.echo(f"{'good' if check.good else 'WRONG'}  {check.what}: compared with {check.against}")
    wrong = [check.what for check in checks if not check.good]
    if wrong:
        raise UserError(f"{name} is damaged ({', '.join(wrong)}): run `dign data fetch {name}` to fix it.")


@command.command(short_help="List what the cache holds.")
@json_option
def cache(as_json: bool) -> None:
    """List what is kept in the cache, with its size and when it was last used.

    Nothing there is removed by itself, but for older versions of a folder that has changed: see `dign data clear`.

    \b
    Example:
      dign data cache
    """
    from dign.core.text import format_bytes
    from dign.data import cache_root
    from dign.data.cache_contents import list_cache

    entries = list_cache(cache_root())
    if as_json:
        keys = ("name", "what", "data", "size", "days")
        print_json([{key: getattr(entry, key) for key in keys} for entry in entries])
        return
    for entry in entries:
        age = "today" if entry.days < 1 else f"{entry.days:.0f} days ago"
        origin = f" of {entry.data}" if entry.data else ""
        click.echo(f"{format_bytes(entry.size):>9}  {entry.name}: {entry.what}{origin}, used {age}")
    click.echo(f"{format_bytes(sum(entry.size for entry in entries)):>9}  in {cache_root()}")


@command.command(short_help="Remove from the cache what is no longer used.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--unused-for", type=click.FloatRange(min=0), metavar="DAYS", help="what was not used for so many days")
@click.option("--all", "everything", is_flag=True, help="all of it")
@click.option("--dry-run", is_flag=True, help="only show what would be removed")
@quiet_option
@json_option
def clear(
    names: tuple[str, ...], unused_for: float | None, everything: bool, dry_run: bool, quiet: bool, as_json: bool
) -> None:
    """Remove from the cache what NAME names there (`dign data cache`), or everything of the data set NAME.

    Your own pictures are elsewhere and stay as they are: what is removed is made again when it is needed, data sets of
    the network are fetched again. Do not remove what a training run is reading.

    \b
    Examples:
      dign data clear folder:photos
      dign data clear --unused-for 30 --dry-run
    """
    from dign.core.errors import UserError
    from dign.core.text import format_bytes
    from dign.data import cache_root
    from dign.data.cache_contents import list_cache, select_entries

    if not names and unused_for is None and not everything:
        raise UserError("What is to be removed? Give names of `dign data cache`, --unused-for DAYS, or --all.")
    chosen = select_entries(list_cache(cache_root()), names, unused_for)
    for entry in chosen:
        if not dry_run:
            entry.remove()
        if not (quiet or as_json):
            click.echo(f"{'would remove' if dry_run else 'removed'} {entry.name} ({format_bytes(entry.size)})")
    if as_json:
        print_json([{"name": entry.name, "size": entry.size, "removed": not dry_run} for entry in chosen])
    elif not quiet:
        freed = format_bytes(sum(entry.size for entry in chosen))
        click.echo(f"{freed} {'would be free' if dry_run else 'free again'}.")


@contextmanager
def _report_progress(quiet: bool = False) -> Iterator[ProgressCallback]:
    """A bar on a terminal; elsewhere (a log file) one line for each new task."""
    from dign.core.progress import TerminalBar

    shown: set[str] = set()
    with TerminalBar(not quiet) as bar:

        def report(what: str, done: int, total: int | None) -> None:
            if not quiet and not bar.visible and what not in shown:
                shown.add(what)
                click.echo(f"{what.removesuffix(', bytes')} ...", err=True)
            bar(what, done, total)

        yield report


def _describe(data: DataSet) -> dict[str, Any]:
    return {
        "name": data.name,
        "classes": list(data.classes),
        "image_size": list(data.image_size),
        "location": str(data.location),
        "skipped": list(data.skipped),
        "splits": {
            name: getattr(data, name).labels.bincount(minlength=len(data.classes)).tolist()
            for name in ("train", "validation", "test")
        },
    }


def _print_summary(data: DataSet) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    height, width = data.image_size
    facts = (
        f"{data.name}: {len(data.classes)} classes, images of {height}x{width} pixels (height x width)",
        f"location: {data.location}",
        f"classes: {_join_some(data.classes)}",
        *([f"left out, since they cannot be read: {_join_some(data.skipped, 20)}"] if data.skipped else []),
    )
    for fact in facts:
        say_on(console, fact)
    table = Table()
    for heading in ("split", "images", "smallest class", "largest class"):
        table.add_column(heading, justify="left" if heading == "split" else "right")
    for split_name in ("train", "validation", "test"):
        table.add_row(split_name, *_counts(getattr(data, split_name), len(data.classes)))
    console.print(table)


def _counts(split: Split, classes: int) -> tuple[Any, ...]:
    counts = split.labels.bincount(minlength=classes)
    return str(len(split)), str(int(counts.min())), str(int(counts.max()))


def _join_some(names: tuple[str, ...], most: int = 10) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names) - most} more)"
