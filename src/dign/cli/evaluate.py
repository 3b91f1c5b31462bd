"""`dign evaluate`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli import attack, outliers, sequences
from dign.cli.evaluation_outcome import describe_outcome
from dign.cli.messages import say_on
from dign.cli.opening import OF_MODEL, Outcome, open_model, results_place, show_progress
from dign.cli.options import jpeg_option, print_json, set_option, skip_bad_option
from dign.cli.usage_errors import name_options
from dign.corruptions.settings import PROFILE_NAMES
from dign.runs.config import PRECISIONS, RunConfig

if TYPE_CHECKING:
    from rich.console import Console

    from dign.cli.opening import Measurement
    from dign.corruptions.benchmark.read import Benchmark
    from dign.evaluation.subjects import Subject
    from dign.parallel.team import Team
    from dign.runs.other_data import RunData


def _choice(setting: str) -> click.Choice:
    return click.Choice(RunConfig.__dataclass_fields__[setting].metadata["choices"])


@click.command("evaluate", short_help="Measure accuracy and calibration, clean and corrupted.")
@click.argument("runs", nargs=-1, type=click.Path())
@set_option
@click.option("--only", multiple=True, metavar="NAME", help="a corruption or a family (noise, blur, weather, digital)")
@click.option("--severity", help="severities, as in 3 or 1-5 or 1,3,5  [default: 1-5, or all that --benchmark holds]")
@click.option(
    "--benchmark", type=click.Path(), metavar="DIR", help="read corrupted images from DIR (CIFAR-10-C layout)"
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILE_NAMES)),
    help="severity table  [default: the one that fits the image size]",
)
@jpeg_option
@click.option(
    "--split",
    type=click.Choice(["test", "validation", "train"]),
    default="test",
    show_default=True,
    help="images to measure on",
)
@sequences.option
@click.option("--temperature", is_flag=True, help="also fit a temperature on the validation split and show its effect")
@click.option("--images", type=click.IntRange(min=1), help="measure this many images, spread evenly over the split")
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the corruptions")
@click.option(
    "--batch-size", type=click.IntRange(min=1), default=500, show_default=True, help="images predicted at once"
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="32",
    show_default=True,
    help="of the network's arithmetic; bf16 and 16 are mixed, and faster on a GPU or a CPU that has them",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
@click.option("--devices", type=click.IntRange(min=1), default=1, help="processes on this machine that share the work")
@click.option("--nodes", type=click.IntRange(min=1), default=1, help="machines that share the work, --devices on each")
@outliers.option
@attack.add_options
@click.option("--ensemble", is_flag=True, help="RUNS, also hub folders, as one model: the mean of their softmax")
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
@click.option("--quiet", "-q", is_flag=True, help="no progress bar, no summary")
@click.option(
    "--model",
    metavar="MODEL",
    help="instead of RUNS: FILE.onnx, FILE.pt2, a Hugging Face folder, timm:NAME, torchvision:NAME, hub:DIR, or "
    "your own code MODULE:FUNCTION that makes a module",
)
@click.option(
    "--weights", type=click.Path(), metavar="FILE", help=".safetensors or .pth file with the weights of --model"
)
@click.option(
    "--trust", is_flag=True, help="open a --model that can run code (.pt2, TorchScript): you know who made it"
)
@click.option("--mean", metavar="R,G,B", help="normalization of --model, in [0,1] units  [default: as its files say]")
@click.option("--std", metavar="R,G,B", help="likewise")
@click.option("--fit", type=_choice("fit"), help="how a picture of --data becomes a square for --model")
@click.option("--crop-fraction", type=click.FloatRange(0.1, 1), help="share of the shorter side that --fit crop keeps")
@click.option("--interpolation", type=_choice("interpolation"), help="how pictures are resized for --model")
@click.option("--data", metavar="NAME", help="data set to evaluate on  [default: the run's own]")
@skip_bad_option
@click.option("--size", type=click.IntRange(min=1), help="resize the images of --data to SIZE x SIZE, for --model")
@click.option("--label", help="name of --model or --ensemble in tables  [default: the file's name, or the members']")
@click.option(
    "--out", type=click.Path(), metavar="FILE", help="results file of --model or --ensemble  [default: results.json]"
)
def command(runs: tuple[str, ...], **options: Any) -> None:
    """Evaluate finished runs, or any model of any library, on test images, clean and corrupted.

    Corruptions are made on the fly, unless --benchmark names a folder in the layout of CIFAR-10-C or Tiny-ImageNet-C
    (published, or made by `dign corrupt`), which is read batch by batch.

    Writes results.json into each run's folder (schema: docs/results.md); what was measured there before is kept. --data
    measures runs on other images with the same classes, without those that they were trained on.

    --model takes whatever you have: the normalization, size and crop that it wants are read from its files or its
    library, and shown. MODULE:FUNCTION imports MODULE, which runs its code, and calls FUNCTION for a torch.nn.Module
    from images in [0,1] to logits.

    \b
    Examples:
      dign evaluate runs/digits
      dign evaluate runs/a runs/b --only noise
      dign evaluate runs/a --only fog --only blur --severity 3 --temperature
      dign evaluate runs/a --benchmark CIFAR-10-C
      dign evaluate runs/a --set c-bar
      dign evaluate runs/a --sequences --images 1000
      dign evaluate runs/photos --data folder:new-photos
      dign evaluate runs/a --devices 4
      dign evaluate runs/a --attack apgd --eps 8/255
      dign evaluate runs/a --ood tiny-imagenet
      dign evaluate runs/seed-0 runs/seed-1 runs/seed-2 --ensemble --out ensemble/results.json
      dign evaluate --model hub:models/photos --data folder:photos --size 64
      dign evaluate --model photos.onnx --data folder:photos
      dign evaluate --model timm:resnet50 --weights mine.pth --data folder:photos
      dign evaluate --model my_module:make_model --weights my.safetensors --data cifar10 --out mine/results.json
    """
    from rich.console import Console

    measure = _choose_measurement(runs, options)
    from dign.core.allocator import reuse_memory
    from dign.parallel.devices import pick_device, warn_of_emulation
    from dign.parallel.fabric import join_processes

    reuse_memory()
    team = join_processes(options["device"], options["devices"], options["nodes"])
    console = Console(stderr=True, quiet=bool(options["quiet"]) or not team.is_rank_zero)
    device = team.device or pick_device(options["device"])
    for note in warn_of_emulation(options["precision"], device):
        say_on(console, name_options(note, click.get_current_context().command))
    outcomes: list[Outcome] = []
    with team.report_dead_peer("evaluate again"):
        for outcome in measure(runs, options, console, team):
            say_on(console, outcome.line)
            outcomes.append(outcome)
    if not console.quiet and not options["as_json"] and len(outcomes) == 1 and outcomes[0].table:
        click.echo(f"\n{outcomes[0].table}\n")
    if measure in (_evaluate_runs, _evaluate_model, _evaluate_ensemble):
        places = runs if measure is _evaluate_runs else (str(results_place(options).parent),)
        _name_next_command(places, console)
    if options["as_json"] and team.is_rank_zero:
        print_json([outcome.entry for outcome in outcomes])


def _name_next_command(places: tuple[str, ...], console: Console) -> None:
    """What shows the results; printed in one piece, to be copied."""
    from dign.core.errors import quote_path

    following = f"Next: dign report {' '.join(map(quote_path, places))} --out report.html"
    console.print(following, highlight=False, markup=False, soft_wrap=True)


def _choose_measurement(runs: tuple[str, ...], options: dict[str, Any]) -> Measurement:
    """What the options ask for, once they are known to agree with each other."""
    from dign.core.errors import UserError

    form = next((form for form in (outliers, attack, sequences) if form.is_asked_for(options)), None)
    members = _find_members(runs, options)
    for option in ("size", "label", "out", *OF_MODEL):
        if members and option in ("label", "out"):
            continue
        if options[option] not in (None, False) and not options["model"]:
            flag = option.replace("_", "-")
            raise UserError(f"--{flag} belongs to --model MODEL, and a run knows its own: leave it out.")
    if bool(runs) == bool(options["model"]):
        raise UserError("Say what to evaluate: run folders, or --model MODEL with --data NAME.")
    if options["benchmark"] and options["split"] != "test":
        raise UserError("--benchmark holds corrupted test images: drop --split, or drop --benchmark.")
    fixed = [name for name in ("profile", "seed", "images") if options[name]]
    fixed += ["jpeg"] if options["jpeg"] != "profile" else []
    if options["benchmark"] and fixed:
        raise UserError(f"--benchmark holds images that are made already: drop --{fixed[0]}.")
    _refuse_files(runs)
    if form is not None and options["precision"] != "32":
        raise UserError("--precision does not apply to --attack, --ood and --sequences: leave it out.")
    if form is not None:
        return form.measure_all
    return _evaluate_model if options["model"] else _evaluate_ensemble if members else _evaluate_runs


def _evaluate_runs(runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team) -> Iterator[Outcome]:
    from dign.evaluation.subjects import evaluate_run
    from dign.runs.folder import load_run
    from dign.runs.other_data import load_data_for

    on_the_fly, common = _conditions(options), _common(options)
    elsewhere = {key: options[key] for key in ("data", "skip_unreadable", "images")}
    with team.all_or_none():
        opened = [load_run(path) for path in runs]
    for run in opened:
        name = run.path.resolve().name
        sentences: list[str] = []
        with show_progress(console, f"evaluate {name}", all_images=not options["images"]) as follow:
            with team.all_or_none():
                conditions = on_the_fly
                if options["benchmark"]:
                    found = load_data_for(run, options["data"], skip_unreadable=options["skip_unreadable"])
                    conditions = _open_benchmark(found, options)
            results = evaluate_run(
                run, conditions, team=team, progress=follow, report=sentences.append, **elsewhere, **common
            )
        for sentence in sentences:
            say_on(console, f"{name}: {sentence}")
        yield describe_outcome(name, results)


def _refuse_files(runs: tuple[str, ...]) -> None:
    from dign.core.errors import UserError, quote_path

    for path in filter(os.path.isfile, runs):
        raise UserError(
            f"{path} is a file, but `dign evaluate` takes run folders: give the run that it was made from, or, for a "
            f"model that dign did not train, type `dign evaluate --model {quote_path(path)} --data NAME`."
        )


def _evaluate_model(runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team) -> Iterator[Outcome]:
    subject, found, out = open_model(options, console, team)
    yield _evaluate_opened(subject, found, out, options, console, team)


def _evaluate_ensemble(
    runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team
) -> Iterator[Outcome]:
    from dign.evaluation.ensembles import open_ensemble

    with team.all_or_none():
        subject, found = open_ensemble(
            _find_members(runs, options) or (),
            options["data"],
            split=options["split"],
            label=options["label"],
            skip_unreadable=options["skip_unreadable"],
        )
    if found.left_out:
        say_on(console, f"{found.left_out} images are left out, since a member was trained or calibrated on them.")
    if skipped := found.describe_skipped():
        say_on(console, skipped)
    yield _evaluate_opened(subject, found, results_place(options), options, console, team)


def _evaluate_opened(
    subject: Subject, found: RunData, out: Path, options: dict[str, Any], console: Console, team: Team
) -> Outcome:
    """Evaluate a model that has no run folder, and write its results to `out`."""
    from dign.core.files import write_json
    from dign.evaluation.examples import EXAMPLES_FILE
    from dign.evaluation.subjects import evaluate_subject, limit_split, note_images

    data = limit_split(found.data, options["split"], options["images"])
    with team.all_or_none():
        _refuse_to_replace(out, subject.about.name)
        conditions = _conditions(options) if options["benchmark"] is None else _open_benchmark(found, options)
    title = f"evaluate {subject.about.name}"
    with show_progress(console, title, all_images=not options["images"]) as follow:
        results, examples = evaluate_subject(subject, data, conditions, team=team, progress=follow, **_common(options))
    results = note_images(results, found, options["images"])
    with team.all_or_none():
        if team.is_rank_zero:
            write_json(out.with_name(EXAMPLES_FILE), examples)
            results.save(out)
    return describe_outcome(subject.about.name, results)


def _refuse_to_replace(out: Path, name: str) -> None:
    """Refuse a file with the results of another model, or with something else, before anything is measured."""
    from dign.core.errors import UserError
    from dign.evaluation.results import Results

    if out.exists() and (there := Results.load(out).run.name) != name:
        raise UserError(f"{out} holds the results of '{there}': choose another file for those of '{name}' (--out).")


def _open_benchmark(found: RunData, options: dict[str, Any]) -> Benchmark:
    """The stored corruptions of --benchmark, which are of all images of a split."""
    from dign.core.errors import UserError
    from dign.data.names import hide_folder_path
    from dign.evaluation.conditions import benchmark_for

    if found.left_out:
        raise UserError(
            f"{found.left_out} images of {hide_folder_path(found.data.name)} are left out, since the model was trained "
            "or calibrated on them, so that --benchmark, which is of all of them, does not fit: measure without it."
        )
    wanted = _conditions(options).severities if options["severity"] else None
    return benchmark_for(found.data, options["benchmark"], (*options["sets"], *options["only"]), wanted)


def _find_members(runs: tuple[str, ...], options: dict[str, Any]) -> tuple[str, ...] | None:
    """The members of an ensemble, by --ensemble or as `ensemble:A,B`; None where single runs are meant."""
    from dign.core.errors import UserError
    from dign.runs.ensemble import ENSEMBLE_PREFIX, split_members

    named = [run for run in runs if run.startswith(ENSEMBLE_PREFIX)]
    if not options["ensemble"] and not named:
        return None
    if named and len(runs) > 1:
        raise UserError(f"{named[0]} is an ensemble by itself: evaluate it in a command of its own.")
    if named and options["ensemble"]:
        raise UserError(f"{named[0]} is an ensemble by itself: leave out --ensemble.")
    for option in ("model", "attack", "sequences", "ood"):
        if options[option]:
            raise UserError(f"an ensemble is measured clean and under corruptions: leave out --{option}.")
    return tuple(split_members(named[0]) or ()) if named else runs


def _conditions(options: dict[str, Any]) -> Any:
    from dign.corruptions.storage import parse_jpeg
    from dign.evaluation.conditions import Conditions, choose_corruptions, parse_severities

    return Conditions(
        severities=parse_severities(options["severity"] or "1-5"),
        corruptions=choose_corruptions((*options["sets"], *options["only"])),
        profile=options["profile"],
        seed=options["seed"],
        jpeg=parse_jpeg(options["jpeg"]),
    )


def _common(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options[key] for key in ("split", "device", "batch_size", "precision", "temperature")}
