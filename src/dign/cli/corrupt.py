"""`dign corrupt`: write a benchmark of corrupted images, or look at the corruptions of one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import say, say_on
from dign.cli.options import jpeg_option, json_option, print_json, set_option, skip_bad_option
from dign.corruptions import ALL_NAMES, FAMILIES
from dign.corruptions.settings import PROFILE_NAMES
from dign.data.names import NAMES as DATA_NAMES
from dign.data.names import PICTURE_PREFIXES

if TYPE_CHECKING:
    from dign.data.dataset import DataSet


def _complete_source(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    names = [name for name in (*DATA_NAMES, *PICTURE_PREFIXES) if name.startswith(incomplete)]
    return [
        *map(click.shell_completion.CompletionItem, names),
        click.shell_completion.CompletionItem(None, type="file"),
    ]


def _complete_only(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in (*FAMILIES, *ALL_NAMES) if name.startswith(incomplete)]


@click.command("corrupt", short_help="Write a benchmark of corrupted images, or preview one picture.")
@click.argument("source", metavar="DATA|IMAGE", shell_complete=_complete_source)
@click.option("--out", type=click.Path(path_type=Path), help="folder to write the benchmark of DATA into")
@click.option("--preview", type=click.Path(path_type=Path), help="picture to write the sheet of IMAGE into (.png)")
@set_option
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=_complete_only,
    help="a corruption or a family (noise, blur, weather, digital); may be given more than once",
)
@click.option("--severity", default="1-5", show_default=True, help="severities, as in 3 or 1-5 or 1,3,5")
@click.option(
    "--layout",
    type=click.Choice(["auto", "npy", "folders"]),
    default="auto",
    show_default=True,
    help="npy as CIFAR-10-C, folders of files as Tiny-ImageNet-C; auto: folders for tiny-imagenet only",
)
@click.option(
    "--profile", type=click.Choice(list(PROFILE_NAMES)), help="severity table; default: the one that fits the size"
)
@jpeg_option
@click.option("--split", type=click.Choice(["test", "validation", "train"]), default="test", show_default=True)
@click.option("--size", type=click.IntRange(min=8), help="resize the images of DATA to SIZE x SIZE first")
@skip_bad_option
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the corruptions")
@click.option("--workers", type=click.IntRange(min=1), help="processes that make them; default: the number of cores")
@click.option("--quiet", "-q", is_flag=True, help="no progress bar, no summary")
@json_option
def command(source: str, **options: Any) -> None:
    """Corrupt the images of DATA and write them as a benchmark, or show the corruptions of one IMAGE.

    The same command again resumes an interrupted one, and writes the same bytes, whatever the number of workers.
    manifest.json has the settings and the SHA-256 of every part.

    \b
    Examples:
      dign corrupt cifar10 --out cifar10-c
      dign corrupt cifar10 --out cifar10-c-bar --set c-bar
      dign corrupt tiny-imagenet --out tiny-imagenet-c --only noise --severity 1-3
      dign corrupt holiday.jpg --preview sheet.png
    """
    from dign.core.errors import UserError

    if (options["out"] is None) == (options["preview"] is None):
        raise UserError(
            "Give either --out FOLDER, to write a benchmark, or --preview FILE, to see one picture corrupted."
        )
    if options["preview"] is not None:
        _preview(Path(source), options)
    else:
        _benchmark(source, options)


def _preview(picture: Path, options: dict[str, Any]) -> None:
    import torch
    from PIL import Image

    from dign.core.errors import UserError
    from dign.core.files import replace_file
    from dign.corruptions.preview import preview_sheet, shrink
    from dign.corruptions.storage import parse_jpeg
    from dign.data.decoding import decode
    from dign.evaluation.conditions import choose_corruptions, parse_severities

    context = click.get_current_context()
    for name in ("layout", "split", "size", "workers"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise UserError(f"--{name} is for benchmarks of a data set: drop it for a preview.")
    target: Path = options["preview"]
    Image.init()
    if target.suffix.lower() not in Image.EXTENSION:
        raise UserError(f"{target} has no known image format: let it end in .png.")
    if not picture.is_file():
        raise UserError(f"There is no picture {picture}: --preview takes an image file, --out a data set.")
    if target.exists() and target.samefile(picture):
        raise UserError(f"--preview would overwrite {picture} itself: choose another name.")
    try:
        pixels = decode(picture)
    except UserError as error:
        raise UserError(f"{picture} cannot be read: {error}.") from error
    names = choose_corruptions((*options["sets"], *options["only"]))
    severities = parse_severities(options["severity"])
    small = torch.from_numpy(shrink(pixels))
    sheet = preview_sheet(
        small, names, severities, profile=options["profile"], seed=options["seed"], jpeg=parse_jpeg(options["jpeg"])
    )
    with replace_file(target) as partial:
        sheet.save(partial, format=Image.EXTENSION[target.suffix.lower()])
    if options["as_json"]:
        print_json({"preview": str(target), "corruptions": list(names), "severities": list(severities)})
    if not options["quiet"]:
        say(f"{target}: {len(names)} corruptions at severities {', '.join(map(str, severities))}")


def _benchmark(source: str, options: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from dign.core.allocator import reuse_memory
    from dign.corruptions import frost_source, write_benchmark
    from dign.corruptions.storage import parse_jpeg
    from dign.data import load
    from dign.evaluation.conditions import choose_corruptions, parse_severities

    names = choose_corruptions((*options["sets"], *options["only"]))
    severities = parse_severities(options["severity"])
    data = load(source, size=options["size"], skip_unreadable=options["skip_unreadable"])
    split = getattr(data, options["split"])
    layout = options["layout"]
    if layout == "auto":
        layout = "folders" if data.name == "tiny-imagenet" else "npy"
    reuse_memory()
    console = Console(stderr=True, quiet=options["quiet"])
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} images"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"corrupt {data.name}", total=len(names) * len(severities) * len(split))
        manifest = write_benchmark(
            split.images,
            split.labels,
            options["out"],
            classes=_folder_names(data),
            names=names,
            severities=severities,
            layout=layout,
            profile=options["profile"],
            seed=options["seed"],
            jpeg=parse_jpeg(options["jpeg"]),
            data=f"{data.name}/{options['split']}",
            workers=options["workers"],
            progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if options["as_json"]:
        print_json(manifest)
    frost = f", frost from {frost_source()}" if "frost" in names else ""
    jpeg = f", JPEG of quality {manifest['jpeg_quality']}" if manifest["jpeg_quality"] else ""
    say_on(
        console,
        f"{options['out']}: {len(names)} corruptions at severities {', '.join(map(str, severities))}, "
        f"{len(split)} images each, profile {manifest['profile']}{jpeg}{frost}",
    )


def _folder_names(data: DataSet) -> tuple[str, ...]:
    """What to call the folders of classes: Tiny-ImageNet's are WordNet ids, as in the published benchmark."""
    if data.name != "tiny-imagenet":
        return data.classes
    from dign.data import cache_root
    from dign.data.cache import open_store

    store = open_store(cache_root() / data.name)
    return tuple(store.info["wnids"]) if store else data.classes
