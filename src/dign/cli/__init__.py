"""The command line: one file per verb, loaded when it is asked for, none of them importing torch for its help."""

from __future__ import annotations

import errno
import io
import sys
from importlib import import_module

import click

from dign.cli.usage_errors import sentence_about
from dign.core.errors import ReportedByRankZero, UserError, is_out_of_memory
from dign.core.version import __version__
from dign.parallel.launching import exit_code_for_rank, local_rank

VERBS = {
    "train": "train",
    "evaluate": "evaluate",
    "predict": "predict",
    "play": "play",
    "export": "export",
    "hub": "hub",
    "grid": "grid",
    "report": "report",
    "data": "data",
    "corrupt": "corrupt",
    "landscape": "landscape",
    "list": "listing",
    "completion": "completion",
}
"""Verb to the module in this package that holds its `command`, in the order in which help shows them."""


class Verbs(click.Group):
    """Finds commands in `VERBS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        return import_module(f"{__name__}.{VERBS[name]}").command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dign")
def cli() -> None:
    """Train image classifiers that stay accurate, and know when they are unsure, under corruptions.

    \b
    Examples:
      dign train digits --method dign --out runs/dign
      dign evaluate runs/dign
      dign report runs/dign runs/standard --out report.html
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line; a person's mistake is one sentence on standard error and exit code 2."""
    _print_what_can_be()
    try:
        code = cli.main(args=args, prog_name="dign", standalone_mode=False)
    except ReportedByRankZero:
        code = exit_code_for_rank(2)
    except UserError as error:
        code = complain(str(error))
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        code = complain(sentence_about(error))
    except (click.Abort, KeyboardInterrupt):
        code = complain("Stopped.", code=130)
    except BrokenPipeError:
        code = 1
    except OSError as error:
        code = complain(_about_files(error))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        code = complain("There is too little memory for this: try a smaller --batch-size, or a device with more.")
    sys.exit(code if isinstance(code, int) else 0)


def _print_what_can_be() -> None:
    """Where the terminal or pipe is not UTF-8, letters that it lacks become question marks, and nothing fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")


def complain(message: str, *, code: int = 2) -> int:
    if local_rank() == 0:  # on one machine, several processes make the same mistake
        click.echo(f"dign: {message}", err=True)
    return exit_code_for_rank(code)


def _about_files(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{where}: free some space, then go on (training with --resume). No half file is left."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No permission{where}: choose a folder that you may write to. {error.strerror}."
    return f"{error.strerror or error}{where}."
