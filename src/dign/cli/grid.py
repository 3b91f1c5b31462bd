"""`dign grid`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import make_table_console, say, say_on
from dign.cli.options import json_option, print_json, quiet_option

if TYPE_CHECKING:
    from dign.grid.engines import Engine
    from dign.grid.plan import Plan, PlannedRun


@click.command("grid", short_help="Run many trainings and evaluations from one file.")
@click.argument("file", type=click.Path())
@click.option("--out", metavar="DIR|URL", help="where the runs are stored  [default: runs/NAME of the file]")
@click.option("--only", multiple=True, metavar="PATTERN", help="only runs whose names match, as in '*augmix*' or seed0")
@click.option("--dry-run", is_flag=True, help="show the plan and stop")
@click.option("--measure/--no-measure", default=True, show_default=True, help="time a few steps to estimate the time")
@click.option("--max-parallel", type=click.IntRange(min=1), metavar="N", help="most runs at once  [default: what fits]")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads of a run  [default: cores/runs]")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", metavar="ADDRESS", help="of a Ray cluster  [default: start Ray on this machine]")
@click.option("--gpus", type=click.FloatRange(min=0), metavar="N", help="GPUs of a run on Ray, 0.5 for half of one")
@click.option("--retries", type=click.IntRange(min=0), default=2, show_default=True, help="for a run that was killed")
@click.option("--sensitivity", is_flag=True, help="run nothing: draw the sensitivity study of what is done")
@quiet_option
@json_option
def command(file: str, out: str | None, **options: Any) -> None:
    """Run what FILE describes: every list in it means "each of these" (docs/grid.md).

    Each run is an ordinary folder of `dign train` and `dign evaluate`. What is done is never repeated, what was killed
    is resumed from its checkpoint, and what fails does not stop the others: start the same command again at any time,
    or twice at once. The exit code is 1 if a run failed.

    \b
    Examples:
      dign grid experiments/laptop-tables-1-and-2-cifar10.toml --dry-run
      dign grid experiments/laptop-tables-1-and-2-cifar10.toml --out runs/laptop --max-parallel 2
      dign grid study.toml --only '*dign*' --only standard --threads 1
      dign grid study.toml --sensitivity
      dign grid study.toml --engine ray --address auto --gpus 1 --out s3://bucket/study
    """
    from dign.grid.plan import read_plan

    whole = read_plan(file)
    out = out or f"runs/{Path(file).stem}"
    if options["sensitivity"]:
        _draw(whole.select(options["only"]), out, options["quiet"], must=True)
        return
    _check_options(options)
    failed = _run(whole, whole.select(options["only"]), out, options)
    if not options["dry_run"]:
        _draw(whole, out, options["quiet"], must=False)
    if options["as_json"]:
        print_json(_stages(whole.select(options["only"]), out))
    if failed:
        for name, sentence in failed.items():
            say(f"dign: {name} failed: {sentence}")
        click.get_current_context().exit(1)


def _stages(plan: Plan, out: str) -> dict[str, str]:
    """How far every run is, by its name."""
    from dign.grid.scheduling import read_states

    return {name: state.stage.name.lower() for name, state in read_states(plan.runs, out).items()}


def _check_options(options: dict[str, Any]) -> None:
    from dign.core.errors import UserError

    for name in ("address", "gpus"):
        if options[name] is not None and options["engine"] != "ray":
            raise UserError(f"--{name} is for Ray: add --engine ray, or leave it out.")


def _run(whole: Plan, plan: Plan, out: str, options: dict[str, Any]) -> dict[str, str]:
    """Show the plan and run it; returns the failed runs with a sentence each."""
    from dign.grid.scheduling import check_benchmarks, collect_failures, read_states, run_plan
    from dign.grid.state import Stage
    from dign.grid.storage import open_store
    from dign.grid.view import RunningView

    states = read_states(plan.runs, out)
    if options["engine"] == "local":  # a cluster may see folders that this machine does not
        check_benchmarks(plan.runs, states)
    engine = _make_engine(whole, out, options)
    try:
        if not options["quiet"]:
            _show_plan(plan, states, out, engine, measure=options["measure"])
            if options["engine"] == "local":
                _warn_of_emulation([run for run in plan.runs if states[run.name].stage is not Stage.DONE])
        if options["dry_run"]:
            return {}
        with RunningView(plan, states, open_store(out), quiet=options["quiet"]) as view:
            return collect_failures(run_plan(plan.runs, states, engine, out, view))
    finally:
        engine.close()


def _warn_of_emulation(runs: Sequence[PlannedRun]) -> None:
    """Say once what each run would only write into its own notes: that this machine emulates its precision."""
    import torch

    from dign.parallel.devices import warn_of_emulation

    # By name: to look for a GPU is for the processes of the runs, and one that is missing is theirs to tell.
    on_cpu = ("cpu",) if torch.cuda.is_available() else ("cpu", "auto")
    chosen = (each.precision for run in runs if run.config.device in on_cpu for each in (run.config, run.evaluation))
    for note in {note for precision in chosen for note in warn_of_emulation(precision, torch.device("cpu"))}:
        say(note)


def _make_engine(plan: Plan, out: str, options: dict[str, Any]) -> Engine:
    threads = options["threads"] or plan.threads
    if options["engine"] == "ray":
        from dign.grid.engines.ray import RayEngine

        return RayEngine(
            address=options["address"],
            threads=threads or 1,
            gpus=options["gpus"],
            retries=options["retries"],
            max_parallel=options["max_parallel"],
        )
    from dign.grid.engines.local import LocalEngine, split_cores, visible_gpus

    gpus = visible_gpus(plan.runs[0].config.device)
    slots, threads = split_cores(len(plan.runs), max_parallel=options["max_parallel"], threads=threads, gpus=len(gpus))
    return LocalEngine(slots, threads, options["retries"], gpus)


def _show_plan(plan: Plan, states: Any, out: str, engine: Engine, *, measure: bool) -> None:
    from dign.grid.estimate import estimate_times
    from dign.grid.state import Stage
    from dign.grid.storage import open_store
    from dign.grid.view import plan_summary, plan_table

    console = make_table_console(err=True)
    store = open_store(out)
    fractions = {
        name: (store.progress(name) or {}).get("fraction", 0.0)
        for name, state in states.items()
        if state.stage is Stage.BEGUN and (store.progress(name) or {}).get("stage") == "training"
    }
    expected = None
    left = [run for run in plan.runs if states[run.name].stage is not Stage.DONE]
    if measure and left:
        with console.status("Measuring the speed"):
            expected = estimate_times(left, engine.measure)
    console.print(plan_table(plan, states, fractions, expected))
    summary = plan_summary(plan, states, fractions, expected, engine.parallel, engine.threads)
    say_on(console, f"{summary} Into {store.location}.")


def _draw(plan: Plan, out: str, quiet: bool, *, must: bool) -> None:
    """Draw the sensitivity study, if the grid is one; with `must`, raise if it is not."""
    from dign.grid.sensitivity_figures import draw_sensitivity

    for path in draw_sensitivity(plan, out, must=must):
        if not quiet:
            click.echo(f"Wrote {path}", err=True)
