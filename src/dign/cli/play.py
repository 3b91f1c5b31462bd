"""`dign play`."""

from __future__ import annotations

import click

from dign.cli.messages import say
from dign.cli.options import quiet_option
from dign.core.errors import UserError
from dign.corruptions.settings import PROFILE_NAMES


@click.command("play", short_help="Corrupt images in the browser and see what models predict.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path())
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="address to serve at; the default is this computer"
)
@click.option("--port", type=click.IntRange(0, 65535), default=7860, show_default=True, help="0 takes any free one")
@click.option(
    "--profile",
    type=click.Choice(list(PROFILE_NAMES)),
    help="severity table  [default: the one that the runs were evaluated with, or that fits the image size]",
)
@click.option("--no-browser", is_flag=True, help="only print the address")
@quiet_option
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
def command(
    runs: tuple[str, ...], host: str, port: int, profile: str | None, no_browser: bool, quiet: bool, device: str
) -> None:
    """Serve a page on this computer that corrupts images and shows what the models of RUN... predict.

    Drop in an image or pick one of the first run's test images, choose a corruption and its severity, and compare the
    models' most probable classes, with the calibration that `dign evaluate` measured under that very corruption.
    Needs Gradio: pip install 'dign[play]'. Ctrl-C ends it.

    \b
    Examples:
      dign play runs/standard runs/dign
      dign play runs/dign --port 8000 --no-browser
      dign play runs/seed-0 ensemble:runs/seed-0,runs/seed-1,runs/seed-2
    """
    from dign.app.answers import common_profile, open_examples, open_players
    from dign.app.cards import stylesheet
    from dign.app.page import LOOPBACK, build_page, check_gradio, free_port, serving

    check_gradio()
    try:  # before models are loaded, so that a mistake is known at once
        port = free_port(host, port)
    except UserError as error:
        raise UserError(f"{error} (--host, --port)") from error

    players = open_players(runs, device)
    page = build_page(players, open_examples(runs), profile or common_profile(players))
    with serving(page, stylesheet(players), host=host, port=port, browser=not no_browser) as address:
        if not quiet:
            click.echo(f"The playground is at {address} (Ctrl-C ends it).")
        if host not in LOOPBACK:
            say("It has no password: everyone who can reach this address can use it.")
        _wait()
    if not quiet:
        click.echo("Stopped.")


def _wait() -> None:
    from contextlib import suppress
    from threading import Event

    with suppress(KeyboardInterrupt):
        Event().wait()
