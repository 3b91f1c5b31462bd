"""`dign completion`."""

import click
from click.shell_completion import get_completion_class


@click.command("completion", short_help="Print the script that makes a shell complete dign's words.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a completion script for SHELL.

    \b
    Examples:
      eval "$(dign completion bash)"                                   in ~/.bashrc
      eval "$(dign completion zsh)"                                    in ~/.zshrc
      dign completion fish > ~/.config/fish/completions/dign.fish
    """
    root = click.get_current_context().find_root().command
    click.echo(get_completion_class(shell)(root, {}, "dign", "_DIGN_COMPLETE").source())
