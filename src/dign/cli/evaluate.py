"""`dign evaluate`."""

from __future__ import annotations

import click


@click.command("evaluate", short_help="Measure accuracy and calibration, clean and corrupted.")
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("--only", multiple=True, metavar="NAME", help="a corruption or a family (noise, blur, weather, digital)")
@click.option("--severity", default="1-5", show_default=True, help="severities, as in 3 or 1-5 or 1,3,5")
@click.option(
    "--benchmark", type=click.Path(), metavar="DIR", help="read corrupted images from DIR (CIFAR-10-C layout)"
)
@click.option("--profile", type=click.Choice(["cifar", "tiny-imagenet", "imagenet"]), help="severity table")
@click.option("--split", type=click.Choice(["test", "validation", "train"]), default="test", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="seed of the corruptions")
@click.option("--batch-size", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
@click.option("--quiet", "-q", is_flag=True, help="no progress bar, no table")
def command(runs: tuple[str, ...], **options: object) -> None:
    """Evaluate finished runs on their test images, clean and corrupted.

    Corruptions are made on the fly, unless --benchmark names a folder in the layout of CIFAR-10-C or Tiny-ImageNet-C
    (published, or made by `dign corrupt`), which is read batch by batch.

    Writes results.json into each run's folder (schema: docs/results.md).

    \b
    Examples:
      dign evaluate runs/digits
      dign evaluate runs/a runs/b --only noise
      dign evaluate runs/a --only fog --only blur --severity 3
      dign evaluate runs/a --benchmark CIFAR-10-C
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from dign.cli.severities import parse_severities
    from dign.evaluate import Conditions, benchmark_for, chosen_corruptions, evaluate_run
    from dign.runs import load_run

    severities = parse_severities(options["severity"])
    on_the_fly = Conditions(
        corruptions=chosen_corruptions(options["only"]),
        severities=severities,
        profile=options["profile"],
        seed=options["seed"],
    )
    opened = [load_run(path) for path in runs]
    console = Console(stderr=True, quiet=bool(options["quiet"]))
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        for run in opened:
            task = progress.add_task(f"evaluate {run.path.name}", total=None)

            def follow(done: int, total: int, task: int = task) -> None:
                progress.update(task, completed=done, total=total)

            folder = options["benchmark"]
            results = evaluate_run(
                run,
                benchmark_for(run, folder, options["only"], severities) if folder else on_the_fly,
                split=options["split"],
                device=options["device"],
                batch_size=options["batch_size"],
                progress=follow,
            )
            if not options["quiet"]:
                console.print(summary_line(run.path.name, results["summary"]), highlight=False)


def summary_line(name: str, summary: dict) -> str:
    parts = [f"clean {summary['clean_accuracy']:.1f} %"]
    parts += [f"mCA-N {summary['mca_n']:.1f} %"] if summary["mca_n"] is not None else []
    parts += [f"mCA {summary['mca']:.1f} %"] if summary["mca"] is not None else []
    noise = summary["calibration"]["noise"]
    parts += [f"ECE-N {noise['ece']:.1f} %"] if noise else []
    return f"{name}: " + ", ".join(parts)
