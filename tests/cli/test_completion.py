"""Completion in a real shell: the script, and TAB."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from foreblock.cli import main
from foreblock.settings import EverySetting
from foreblock.settings.declare import declared
from support.servers.dev_processes import package_environment
from support.servers.waiting import until

CHECKS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


def completed(*words: str) -> list[str]:
    """The completions of the last word, with their kinds."""
    variables = {"COMP_WORDS": " ".join(("foreblock", *words)), "COMP_CWORD": str(len(words))}
    done = CliRunner().invoke(
        main, [], prog_name="foreblock", env={**variables, "_FOREBLOCK_COMPLETE": "bash_complete"}
    )
    assert done.exit_code == 0
    return done.output.split()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the command `foreblock` of this checkout."""
    command = tmp_path / "foreblock"
    command.write_text(f"#!{sys.executable}\nfrom foreblock.cli import main\n\nmain()\n", "utf-8")
    command.chmod(0o755)
    return tmp_path


def test_bash_completes_what_is_typed(programs: Path) -> None:
    """With a terminal: the completed line is run, and prints unique output."""
    child, terminal = pty.fork()
    if child == 0:
        path = f"{programs}:{os.environ['PATH']}"
        environment = {**package_environment(), "PATH": path, "TERM": "dumb"}
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)  # noqa: S606, S607
    shown = b""

    def told(text: bytes) -> bool:
        nonlocal shown
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            pytest.fail(f"bash has ended: {shown.decode()}")
        return text in shown

    try:
        os.write(terminal, b'eval "$(foreblock completion bash)"; echo load"ed"\n')
        until(lambda: told(b"loaded"), "bash has the script")
        os.write(terminal, b"foreblock compl\tzs\t\n")
        until(lambda: told(b"#compdef foreblock"), "bash has run the completed line")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    assert b"foreblock completion zsh" in shown


@pytest.mark.parametrize("shell", CHECKS)
def test_the_script_is_one_of_its_shell(shell: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["completion", shell])
    assert done.exit_code == 0
    assert f"_FOREBLOCK_COMPLETE={shell}_complete" in done.output
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing, so only the text of its script was checked")
    script = tmp_path / "script"
    script.write_text(done.output, "utf-8")
    subprocess.run([*CHECKS[shell], str(script)], check=True)


def test_verbs_and_options_are_completed() -> None:
    assert completed("se") == ["plain,serve", "plain,send"]
    assert completed("bench", "r") == ["plain,rpc"]
    assert "plain,--workers" in completed("serve", "--wo")
    assert completed("completion", "") == ["plain,bash", "plain,zsh", "plain,fish"]


def test_values_of_settings_are_completed() -> None:
    sources = ["plain,store", "plain,feed", "plain,log", "plain,follow"]
    assert completed("serve", "--source", "") == sources
    assert completed("serve", "--dialect", "e") == ["plain,ethereum"]
    assert completed("dev", "--instant", "f") == ["plain,false"]
    assert completed("serve", "--data", "build") == ["dir,build"]
    assert completed("dev", "--alloc", "a") == ["file,a"]
    types = {each.type for each in declared(EverySetting)}
    assert {"FILE", "DIRECTORY", "BOOL"} <= types  # the types handled by `values`


def test_verbs_are_completed_without_importing_them() -> None:
    code = (
        "import sys; from foreblock.cli import main; import click; "
        "names = main.shell_complete(click.Context(main), ''); "
        "print(len(names), *(each for each in sys.modules if each.startswith('foreblock.cli.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=package_environment(),
    )  # fmt: skip
    count, *loaded = done.stdout.split()
    assert int(count) == len(main.verbs())
    assert loaded == ["foreblock.cli.verb"]
