"""`kubesched completion` prints the script that teaches a shell to complete its words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Examples:
      kubesched completion bash > ~/.local/share/bash-completion/completions/kubesched
      eval "$(kubesched completion zsh)"
    """  # noqa: D301 - \b stops click from rewrapping the paragraph
    from kubesched.cli.main import kubesched

    found = get_completion_class(shell)
    assert found is not None, "click knows the shells of the choice"
    click.echo(found(kubesched, {}, "kubesched", "_KUBESCHED_COMPLETE").source())
