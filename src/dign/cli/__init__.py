"""The command line: one file per verb, imported when it is needed; none of them imports torch for its help."""

from dign.cli.commands import main as main
