"""Shell completion: `foreblock completion`, and what completes the values of settings.

The script that a shell loads asks `foreblock` itself at each TAB, so it never has to be renewed.
"""

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from foreblock.cli.verb import verb

PROGRAM = "foreblock"
SHELLS = ("bash", "zsh", "fish")
_ASKED_BY = "_FOREBLOCK_COMPLETE"  # click's name for what the script sets
_PATHS = {"FILE": "file", "DIRECTORY": "dir"}


@verb("completion")
@click.argument("shell", metavar="[bash|zsh|fish]", type=click.Choice(SHELLS))
def completion(*, shell: str) -> None:
    """Print the script that completes this command in a shell.

    For bash, add `eval "$(foreblock completion bash)"` to ~/.bashrc; zsh does the same in
    ~/.zshrc, after compinit. fish reads it from ~/.config/fish/completions/foreblock.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    command = click.get_current_context().find_root().command
    # The method of the base class searches for the shell, which need not be installed here.
    click.echo(ShellComplete.source(kind(command, {}, PROGRAM, _ASKED_BY)), nl=False)


def values(type: str, incomplete: str) -> list[CompletionItem[str]]:
    """Complete a value of a setting by its type: `[a|b]`, `BOOL`, `FILE`, `DIRECTORY`."""
    if type in _PATHS:
        return [CompletionItem(incomplete, type=_PATHS[type])]
    words = ["true", "false"] if type == "BOOL" else []
    if type.startswith("["):
        words = type.strip("[]").split("|")
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
