"""The version is defined in Cargo.toml; all other uses read it there."""

import re
import tomllib
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import foreblock
from conftest import CHECKOUT
from foreblock.cli import main
from support.servers.asking import Asker


def manifest(name: str) -> dict[str, Any]:
    return tomllib.loads((CHECKOUT / name).read_text("utf-8"))


VERSION: str = manifest("Cargo.toml")["workspace"]["package"]["version"]


def test_what_runs_says_the_version_of_the_manifest(preconf: Asker) -> None:
    assert foreblock.__version__ == VERSION, "the package is older: make build"
    printed = CliRunner().invoke(main, ["--version"]).output
    assert printed == f"foreblock {VERSION}\n"
    assert preconf.ask("web3_clientVersion") == f"foreblock/v{VERSION}"
    assert preconf.ask("rpc.discover")["info"]["version"] == VERSION


def test_no_other_manifest_has_a_version_of_its_own() -> None:
    assert "version" in manifest("pyproject.toml")["project"]["dynamic"]
    for crate in ("engine", "engine-python"):
        package = manifest(f"crates/{crate}/Cargo.toml")["package"]
        assert package["version"] == {"workspace": True}
    assert "version" not in manifest("fuzz/Cargo.toml")["package"]  # never published


def test_packages_of_integrations_have_the_version(checkout: Path) -> None:
    manifests = list(checkout.glob("integrations/*/pyproject.toml"))
    assert {manifest(str(each))["project"]["version"] for each in manifests} == {VERSION}


def test_lock_files_have_the_version() -> None:
    for name in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = {each["name"]: each["version"] for each in manifest(name)["package"]}
        assert packages["foreblock-engine"] == VERSION, "cargo update --workspace renews it"
    assert packages["foreblock-fuzz"] == "0.0.0"


def test_pages_do_not_repeat_it(checkout: Path) -> None:
    for path in [checkout / "README.md", *checkout.glob("docs/**/*.md")]:
        assert not re.search(rf"foreblock[-/ ]v?{re.escape(VERSION)}", path.read_text("utf-8")), (
            path
        )
