"""Packages have the contents of the checkout. `make wheel` builds and tries them, which takes
minutes.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from packages import notices
from packages.building import (
    PLATFORMS,
    NotBuilt,
    Platform,
    Workshop,
    build_sdist,
    build_wheel,
    runs_here,
    rustc_facts,
    unpack,
)
from packages.contents import (
    ENGINE,
    LICENCES,
    faults_of_sdist,
    faults_of_wheel,
    sources,
    version_of,
)


def test_the_source_distribution_is_complete(checkout: Path, tmp_path: Path) -> None:
    assert faults_of_sdist(build_sdist(checkout, tmp_path), checkout) == []


def test_a_wheel_holds_all_of_the_package(checkout: Path) -> None:
    """maturin includes python/foreblock: no rule excludes a file there."""
    rules = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["tool"]["maturin"]
    assert rules["python-source"] == "python"
    assert not {"include", "exclude", "python-packages"} & set(rules)
    if not (checkout / ".git").exists():
        pytest.skip("no git, so nothing is ignored")
    names = [f"python/{name}" for name in sources(checkout / "python")]
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", *names],  # noqa: S607
        cwd=checkout, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ignored.stdout == ""


def test_the_licences_of_all_that_is_linked_are_there(checkout: Path) -> None:
    """`python tests/packages/notices.py` generates the file again."""
    text = notices.FILE.read_text("utf-8")
    listed = set(re.findall(r"^(\S+ \d\S*) \(.*\)(?:, .*)?$", text, re.MULTILINE))
    lock = tomllib.loads((checkout / "Cargo.lock").read_text("utf-8"))
    locked = {f"{each['name']} {each['version']}" for each in lock["package"]}
    linked = notices.names_for(rustc_facts()["host"])
    ours = {each for each in linked if each.startswith("foreblock-")}
    assert linked - ours <= listed <= locked - ours
    for holder in ("The OpenLDAP Public License", "Pieter Wuille", "Apache License"):
        assert holder in text


def wheel_of(names: set[str], folder: Path) -> Path:
    wheel = folder / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return wheel


def test_what_a_wheel_lacks_is_named(checkout: Path, tmp_path: Path) -> None:
    about = f"foreblock-{version_of(checkout)}.dist-info"
    names = {f"{about}/{each}" for each in ("METADATA", "entry_points.txt")}
    names |= {f"{about}/licenses/{each}" for each in LICENCES}
    names |= {*sources(checkout / "python"), ENGINE}
    assert {"foreblock/py.typed", "foreblock/page/static/index.html"} < names
    assert {"foreblock/_engine/__init__.pyi", "foreblock/sequencer/contracts.json"} < names
    assert faults_of_wheel(wheel_of(names, tmp_path), checkout) == []
    spoilt = (names - {"foreblock/page/static/page.css"}) | {"foreblock/stray.txt"}
    assert faults_of_wheel(wheel_of(spoilt, tmp_path), checkout) == [
        "some.whl lacks foreblock/page/static/page.css",
        "some.whl has foreblock/stray.txt, which is not in the checkout",
    ]


def test_unpacking_again_touches_only_what_has_changed(tmp_path: Path) -> None:
    """cargo compares times, and all files of a source distribution have the same one."""
    first, second = tmp_path / "x-1.tar.gz", tmp_path / "x-2.tar.gz"
    for sdist, files in ((first, {"same": "1", "other": "1", "gone": "1"}),
                         (second, {"same": "1", "other": "2", "src/new": "1"})):  # fmt: skip
        folder = tmp_path / sdist.name.removesuffix(".tar.gz")
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        with tarfile.open(sdist, "w:gz") as archive:
            archive.add(folder, folder.name)
    source = unpack(first, tmp_path / "source")
    for path in source.iterdir():
        os.utime(path, (1, 1))
    unpack(second, source)
    assert sources(source) == {"same", "other", "src/new"}
    assert (source / "same").stat().st_mtime == 1
    assert (source / "other").stat().st_mtime > 1
    assert (source / "other").read_text("utf-8") == "2"


def test_what_cannot_be_built_is_said_with_the_reason(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, tmp_path, tmp_path, tmp_path, None)
    with pytest.raises(NotBuilt, match="rustup target add no-such-target"):
        build_wheel(Platform("manylinux_2_17_none", "no-such-target"), shop)
    with pytest.raises(NotBuilt, match="needs zig"):
        build_wheel(Platform("manylinux_2_17_elsewhere", rustc_facts()["host"]), shop)


def test_this_machine_runs_one_of_the_wheels() -> None:
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("wheels are for Linux on x86-64 and arm64")
    assert sum(runs_here(each.tag) for each in PLATFORMS) == 1


def test_the_workflow_builds_the_wheels_that_are_built_here(checkout: Path) -> None:
    workflow = (checkout / ".github/workflows/wheels.yml").read_text("utf-8")
    tags = {each.tag for each in PLATFORMS}
    assert set(re.findall(r"only: (\S+)", workflow)) <= tags
    programs = re.findall(r"python (tests/\S+)", workflow)
    assert [path for path in programs if not (checkout / path).is_file()] == []
    assert "make wheel" in workflow


def test_a_chain_runs_in_the_process_of_a_package(checkout: Path) -> None:
    program = checkout / "tests/packages/in_process.py"
    subprocess.run([sys.executable, str(program)], check=True)
