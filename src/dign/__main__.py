"""`python -m dign`: the command line."""

from dign.cli import main

main()
