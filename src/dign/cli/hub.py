"""`dign hub`."""

from __future__ import annotations

import click

from dign.cli.messages import say
from dign.cli.options import json_option, print_json, quiet_option


@click.group("hub", short_help="Save a run in Hugging Face's layout, with a model card.")
def command() -> None:
    """Share models in Hugging Face's layout.

    A hub folder holds config.json, model.safetensors and README.md, a model card with the measured table. Other
    commands take it as `hub:DIR`. Needs the extra dign[hub].

    \b
    Examples:
      dign hub save runs/photos models/photos
      dign predict hub:models/photos holiday.jpg
      dign train cifar10 --model hub:models/photos --out runs/further
    """


@command.command("save")
@click.argument("run", type=click.Path())
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option("--push", metavar="OWNER/NAME", help="also upload it to this repository; by default nothing is uploaded")
@click.option(
    "--license", metavar="ID", help="license of the weights for the card, as in cc-by-4.0  [default: none named]"
)
@quiet_option
@json_option
def save(run: str, folder: str, push: str | None, license: str | None, quiet: bool, as_json: bool) -> None:
    """Save the finished RUN as the new folder DIR.

    The card's table is that of the run's results.json: evaluate first. --push uploads with the account that
    `hf auth login` set up.

    \b
    Examples:
      dign hub save runs/photos models/photos
      dign hub save runs/photos models/photos --push me/photos
    """
    from dign.core.errors import UserError
    from dign.runs.folder import load_run

    opened = load_run(run)
    try:
        from dign.publish.hub import save_hub_folder
    except ImportError as error:
        raise UserError(f"hub folders need huggingface_hub ({error}): pip install 'dign[hub]'") from error
    save_hub_folder(opened, folder, license=license, push_to=push)
    evaluated = (opened.path / "results.json").exists()
    if as_json:
        print_json({"folder": folder, "evaluated": evaluated, "pushed_to": push})
    elif not quiet:
        say(f"Saved: {folder}." + ("" if evaluated else " Its card has no table: the run was not evaluated."))
