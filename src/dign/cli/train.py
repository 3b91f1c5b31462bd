"""`dign train`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import say
from dign.cli.options import GroupedCommand, config_options, parse_words, print_json
from dign.cli.usage_errors import name_options
from dign.core.catalog import METHODS, MODELS
from dign.core.checks import check_tables, coerce
from dign.core.errors import UserError, find_nearest_name, quote_path
from dign.data.names import NAMES as DATA
from dign.data.names import PICTURES
from dign.parallel.launching import exit_code_for_rank, is_rank_zero
from dign.runs.config import RunConfig
from dign.runs.presets import PRESETS
from dign.runs.toml_files import read_toml

if TYPE_CHECKING:
    from dign.runs.folder import Run

HELP = """Train a model. DATA is a data set's name, folder:PATH, or a TOML file that describes the run.

Options win over the TOML file, and that over the preset. Every setting of a method is an option as well:
`dign list methods` shows them. In a sum of methods say whose it is: --augmix.weight 6.

\b
Examples:
  dign train digits --method dign --out runs/digits
  dign train cifar10 --method dign --sigma-max 0.2 --weight 0.2 --samples 3 --out runs/paper
  dign train cifar10 --preset laptop --method dign+augmix --seed 1 --out runs/hybrid
  dign train folder:photos --size 128 --method dign --out runs/photos
  dign train folder:photos --size 160 --model timm:resnet18 --init pretrained --out runs/photos
  dign train experiment.toml --seed 2 --out runs/experiment-2
  dign train --resume runs/paper
  dign train cifar10 --devices 4 --out runs/four-gpus
"""


def _complete_data(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    known = {**DATA, **{name.partition(":")[0] + ":": text for name, text in PICTURES.items()}}
    names = [CompletionItem(name, help=text) for name, text in known.items() if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def run_command(**options: Any) -> None:
    ctx = click.get_current_context()
    resume, out, quiet, as_json = (options.pop(name) for name in ("resume", "out", "quiet", "as_json"))
    given = {key: value for key, value in options.items() if value is not None}
    processes = {key: given.pop(key) for key in ("devices", "nodes") if resume and key in given}
    if resume:
        words = [given.pop("data")] if "data" in given else []
        flags = [f"--{key.replace('_', '-')}" for key in given] + ["--out"] * bool(out)
        extra = flags + words + ctx.args
        if extra:
            raise UserError(f"--resume uses the run's own configuration: drop {extra[0]}.")
    config = None if resume else resolve(given, ctx.args)
    folder = Path(resume) if resume else Path(out) if out else _default_folder(config)

    from dign.core.allocator import reuse_memory
    from dign.training.interrupts import Interrupted
    from dign.training.train import resume as resume_run
    from dign.training.train import train

    reuse_memory()
    shown: dict[str, Any] = {"quiet": quiet, "translate": partial(name_options, command=command)}
    try:
        run = resume_run(folder, **shown, **processes) if resume else train(config, folder, **shown)
    except Interrupted as stopped:
        if is_rank_zero():
            click.echo(f"{stopped} To resume: dign train --resume {quote_path(folder)}", err=True)
        ctx.exit(exit_code_for_rank(130))
    if not is_rank_zero():
        return
    if not quiet:
        said, following = summarize(run)
        say(said)
        click.echo(following, err=True)  # to be copied in one piece
    if as_json:
        from dign.runs.calibrator import read_calibrator

        document = {"run": str(run.path), "seconds": run.info.get("seconds"), "validation": run.validation()}
        own = read_calibrator(run.path, len(run.classes))
        calibrator = {"kind": own.kind, "temperature": own.temperature, "images": own.images} if own else None
        print_json({**document, "calibrator": calibrator, "notes": run.info.get("notes", [])})


def summarize(run: Run) -> tuple[str, str]:
    """What was reached, in how long; and what to type next."""
    from dign.runs.calibrator import read_calibrator
    from dign.training.cost import describe_duration

    scores = run.validation()
    time = f"Trained in {describe_duration(run.info.get('seconds'))}"
    reached = f": validation accuracy {scores['accuracy']:.1f} % after epoch {scores['epoch']:g}" if scores else ""
    if scores and run.config.balance:
        reached += f" (balanced accuracy {scores['balanced_accuracy']:.1f} %)"
    own = read_calibrator(run.path, len(run.classes))
    calibrated = f"; calibrated by {own.describe()}" if own else ""
    return f"{time}{reached}{calibrated}. Saved in {run.path}", f"Next: dign evaluate {quote_path(run.path)}"


def resolve(given: dict[str, Any], words: list[str]) -> RunConfig:
    """The configuration from the preset, the TOML file, the options and the method's options.

    If a method's options come before the data, click has taken the first of them for the data's name.
    """
    given = dict(given)
    data, method_options = parse_words([given.pop("data"), *words] if "data" in given else words)
    if data:
        given["data"] = data
    values: dict[str, Any] = {}
    if str(given.get("data", "")).endswith(".toml"):
        values = read_toml(given.pop("data"))
    values |= given
    check_tables(values.get("settings", {}))
    if method_options:
        from dign.methods.factory import assign_options, make_method

        _check_spelling(method_options)
        settings = {name: dict(table) for name, table in values.get("settings", {}).items()}
        method = coerce(values.get("method", "dign"), str, "method")
        for name, table in assign_options(method, method_options).items():
            settings.setdefault(name, {}).update(table)
        values["settings"] = settings
        try:
            make_method(method, settings)
        except UserError as error:
            raise UserError(_name_typed_options(str(error), method_options)) from error
    if "data" not in values:
        raise UserError("Which data? Name it, as in `dign train cifar10`, or set `data` in the configuration file.")
    try:
        return RunConfig.from_mapping(values)
    except UserError as error:
        raise UserError(_name_typed_options(str(error), given.keys() - {"data"})) from error


def _name_typed_options(message: str, options: Iterable[str]) -> str:
    """The message with the option that was typed in place of the setting that it begins with."""
    for option in options:
        owner, _, key = option.rpartition(".")
        setting = rf"(?:{re.escape(owner) if owner else '[a-z-]+'}\.)?{re.escape(key)}\b"
        if re.match(setting, message):
            return re.sub(setting, f"--{option.replace('_', '-')}", message, count=1)
    return message


def _check_spelling(method_options: dict[str, str]) -> None:
    """Refuse a word that is closer to one of the command's own options than to any method's setting."""
    from dataclasses import fields

    from dign.methods import METHODS as KINDS

    own = [param.name for param in command.params if isinstance(param, click.Option)]
    settings = {spec.name for kind in KINDS.values() for spec in fields(kind)}
    for word in method_options:
        near = find_nearest_name(word, [*settings, *own])
        if word not in settings and near in own:
            flag, meant = (f"--{name.replace('_', '-')}" for name in (word, near))
            raise UserError(f"`dign train` has no option {flag} (did you mean {meant}?): see `dign train --help`.")


def _default_folder(config: RunConfig) -> Path:
    words = (config.data.partition(":")[2] or config.data, config.model, config.method, str(config.seed))
    return Path("runs") / "-".join(re.sub(r"[^\w.+]+", "-", word).strip("-") for word in words)


command = GroupedCommand(
    "train",
    callback=run_command,
    help=HELP,
    short_help="Train a model.",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    params=[
        click.Argument(["data"], required=False, shell_complete=_complete_data),
        click.Option(
            ["--out"], type=click.Path(), help="new folder for the run  [default: runs/DATA-MODEL-METHOD-SEED]"
        ),
        click.Option(["--resume"], type=click.Path(), metavar="RUN", help="resume an interrupted run"),
        click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="starting point for all settings"),
        click.Option(["--quiet", "-q"], is_flag=True, help="no progress bar, no notes, no summary"),
        click.Option(["--json", "as_json"], is_flag=True, help="print the outcome as JSON on standard output"),
        *config_options({"method": METHODS, "model": MODELS}),
    ],
)
