"""`foreblock config` for people and scripts."""

import json
from pathlib import Path

import click
import pytest

from foreblock.cli import main
from foreblock.cli.verb import VerbGroup
from foreblock.settings import EverySetting
from foreblock.settings.declare import declared
from foreblock.settings.loading import OF_COMMANDS
from support.servers.command import run


def test_settings_are_printed_with_where_they_came_from(tmp_path: Path) -> None:
    (tmp_path / "foreblock.toml").write_text('hosts = ["a"]\n', "utf-8")
    done = run(
        "config", "--workers=3", cwd=tmp_path, environment={"FOREBLOCK_LISTEN": "127.0.0.1:1"}
    )
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert lines["workers"] == ["3", "--workers"]
    assert lines["listen"] == ['"127.0.0.1:1"', "FOREBLOCK_LISTEN"]
    assert lines["hosts"] == ['["a"]', "foreblock.toml"]
    assert lines["body_limit"] == ["5242880", "default"]


def test_only_settings_that_are_no_defaults(tmp_path: Path) -> None:
    options = ("--changed", "--workers=3", "--block-time=2")
    assert run("config", *options, cwd=tmp_path).stdout.splitlines() == [
        "workers     3    --workers",
        "block_time  2.0  --block-time",
    ]
    assert run("config", "--changed", cwd=tmp_path).stdout == ""
    assert json.loads(run("config", "--changed", "--json", cwd=tmp_path).stdout) == {}


def test_no_secret_of_a_url_is_printed(tmp_path: Path) -> None:
    options = ("--source=log", "--log=nats://user:S3cretPass@host:4222")
    for form in ((), ("--json",)):
        done = run("config", *options, *form, cwd=tmp_path)
        assert "@host:4222" in done.stdout
        assert "S3cretPass" not in done.stdout


def test_settings_for_scripts(tmp_path: Path) -> None:
    done = run("config", "--json", "--call-create=yes", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["call_create"] == {"value": True, "from": "--call-create"}
    assert found["hosts"] == {"value": ["localhost"], "from": "default"}


def test_an_option_that_stands_alone_means_yes(tmp_path: Path) -> None:
    done = run("config", "--json", "--instant", "--snapshot-header", "no", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["instant"] == {"value": True, "from": "--instant"}
    assert found["snapshot_header"] == {"value": False, "from": "--snapshot-header"}


def test_another_file(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("nice = 5\n", "utf-8")
    done = run("config", "--config=other.toml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["nice"] == {"value": 5, "from": "other.toml"}


def test_bad_setting_is_refused_in_one_line(tmp_path: Path) -> None:
    for verb in ("config", "serve"):
        done = run(verb, "--data=x", "--body-limit=many", cwd=tmp_path)
        line = "foreblock: --body-limit: expected a whole number, found 'many'\n"
        assert (done.returncode, done.stderr) == (2, line)


def test_serve_needs_a_store(tmp_path: Path) -> None:
    done = run("serve", cwd=tmp_path)
    assert done.returncode == 2
    assert "--data is required" in done.stderr


def test_serve_says_which_network_lacks_what(tmp_path: Path) -> None:
    networks = ["--network=a.data=x", "--network=b.listen=127.0.0.1:0", "--network=b.source=feed"]
    done = run("serve", *networks, cwd=tmp_path)
    assert done.returncode == 2
    assert "--network b.data is required" in done.stderr
    done = run("serve", *networks, "--network=b.data=y", cwd=tmp_path)
    assert "--network b.source=feed needs --network b.genesis and" in done.stderr
    done = run("serve", "--data=x", "--feed=ws://127.0.0.1:1/ws", cwd=tmp_path)
    assert (done.returncode, "--feed needs --source=feed" in done.stderr) == (2, True)


def test_one_port_is_for_one_network(tmp_path: Path) -> None:
    done = run("serve", "--port=1", "--network=a.data=x", cwd=tmp_path)
    assert done.returncode == 2
    assert "--port is for one network: give each its own listen" in done.stderr


def test_a_variable_that_is_no_setting_is_warned_of(tmp_path: Path) -> None:
    given = {
        "FOREBLOCK_LODA": "5",
        "FOREBLOCK_URL": "http://127.0.0.1:1",
        "FOREBLOCK_SERVICE_HOST": "10.0.0.1",
        "FOREBLOCK_PORT_8545_TCP": "tcp://10.0.0.1:8545",
        "OTHER": "1",
    }
    done = run("config", cwd=tmp_path, environment=given)
    told = "FOREBLOCK_LODA is ignored: there is no such setting; did you mean FOREBLOCK_LOAD?"
    warned = [line for line in done.stderr.splitlines() if any(each in line for each in given)]
    assert (done.returncode, warned) == (0, [f"warning: {told}"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("dve", "there is no command 'dve'; did you mean dev?"),
        ("stat", "there is no command 'stat'; did you mean status?"),
        ("store inf", "there is no command 'inf'; did you mean info?"),
        ("qqqq", "there is no command 'qqqq'\n"),
        ("serve --prot 1", "--port"),
    ],
)
def test_a_mistyped_command_is_refused_with_one_that_is_similar(words: str, message: str) -> None:
    done = run(*words.split())
    assert done.returncode == 2
    assert message in done.stderr


def test_every_variable_of_a_command_is_known() -> None:
    """Each option with a variable of its own, of all commands."""
    settings = {it.variable for it in declared(EverySetting)}
    found: set[str] = set()
    left: list[click.Command] = [main]
    while left:
        command = left.pop()
        for each in command.params:
            found |= {each.envvar} if isinstance(each.envvar, str) else set()
        left += command.verbs().values() if isinstance(command, VerbGroup) else ()
    assert {each for each in found if each.startswith("FOREBLOCK_")} - settings == set(OF_COMMANDS)
