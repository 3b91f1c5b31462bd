"""The group of all verbs, and the one place that turns errors into messages and exit codes."""

from __future__ import annotations

import errno
import io
import sys
from importlib import import_module
from typing import Any

import click

from dign.cli.messages import say
from dign.cli.usage_errors import describe_usage_error, explain
from dign.core.errors import ReportedByRankZero, UserError, is_out_of_memory
from dign.core.version import __version__
from dign.parallel.launching import exit_code_for_rank, local_rank

VERBS = {
    "train": "train",
    "calibrate": "calibrate",
    "evaluate": "evaluate",
    "predict": "predict",
    "play": "play",
    "export": "export",
    "hub": "hub",
    "grid": "grid",
    "report": "report",
    "data": "data",
    "corrupt": "corrupt",
    "certify": "certify",
    "landscape": "landscape",
    "list": "list",
    "doctor": "doctor",
    "completion": "completion",
}
"""Verb to the module in this package that holds its `command`, in the order in which help shows them."""


class Verbs(click.Group):
    """Imports commands from `VERBS`, and reports their `UserError`s in terms of their options."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"dign.cli.{VERBS[name]}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ReportedByRankZero:
            raise
        except UserError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            ctx.exit(complain(explain(error, command)))


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
    """Run the command line; a user's mistake is one sentence on standard error and exit code 2."""
    _replace_unencodable()
    try:
        code = cli.main(args=args, prog_name="dign", standalone_mode=False)
    except ReportedByRankZero:
        code = exit_code_for_rank(2)
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        code = complain(describe_usage_error(error))
    except (click.Abort, KeyboardInterrupt):
        code = complain("Stopped.", code=130)
    except BrokenPipeError:
        code = 1
    except OSError as error:
        code = complain(_describe_file_error(error))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        code = complain("There is too little memory for this: try a smaller --batch-size, or a device with more.")
    sys.exit(code if isinstance(code, int) else 0)


def _replace_unencodable() -> None:
    """Print question marks for letters that a terminal or pipe lacks, and for bytes in names of files that are no text
    in any encoding, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def complain(message: str, *, code: int = 2) -> int:
    """Print a message on standard error; returns the exit code of this process."""
    if local_rank() == 0:  # several processes on one machine meet the same error
        say(f"dign: {message}")
    return exit_code_for_rank(code)


def _describe_file_error(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk is full{where}: free some space and try again (training: --resume). No partial file is left."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"No permission{where}: choose a folder that you may write to. {error.strerror}."
    return f"{error.strerror or error}{where}."
