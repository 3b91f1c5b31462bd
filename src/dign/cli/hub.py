"""`dign hub`."""

from __future__ import annotations

import click


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
@click.option("--quiet", "-q", is_flag=True, help="no message at the end")
def save(run: str, folder: str, push: str | None, license: str | None, quiet: bool) -> None:
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
    if not quiet:
        measured = (
            "" if (opened.path / "results.json").exists() else " Its card has no table: the run was not evaluated."
        )
        click.echo(f"Saved: {folder}.{measured}", err=True)
