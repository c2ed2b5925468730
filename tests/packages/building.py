"""The source distribution, and a wheel for each platform that this machine can build for.

All wheels are built from the unpacked source distribution, which must therefore be complete. zig
compiles and links the C of the dependencies against an old glibc or against musl. It comes from
PyPI into a separate environment, because of its size of a hundred megabytes.

The engine is optimised by a profile of `foreblock bench rpc`. zig cannot link the runtime of an
instrumented engine, so that one is built with the C compiler of this machine. A profile applies to
functions of the same symbols, which depend on the target and on cargo's options for it.
"""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).with_name("requirements.lock")
MATURIN = [sys.executable, "-m", "maturin"]


class Platform(NamedTuple):
    """The target of a wheel: its tag, and its Rust target."""

    tag: str
    target: str


PLATFORMS = (
    Platform("manylinux_2_17_x86_64", "x86_64-unknown-linux-gnu"),
    Platform("musllinux_1_2_x86_64", "x86_64-unknown-linux-musl"),
    Platform("manylinux_2_17_aarch64", "aarch64-unknown-linux-gnu"),
    Platform("musllinux_1_2_aarch64", "aarch64-unknown-linux-musl"),
)


# What maturin sets for zig; crates with a build script have other symbols without.
AS_WITH_ZIG = {
    "__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS": "nightly",
    "CARGO_UNSTABLE_TARGET_APPLIES_TO_HOST": "true",
    "CARGO_TARGET_APPLIES_TO_HOST": "false",
}
TRAINING = ("bench", "rpc", "--peers", "nowhere", "--rounds", "1", "--seconds", "1")


class NotBuilt(Exception):
    """A package or profile that cannot be built on this machine, with the reason."""


class Workshop(NamedTuple):
    """The folders and tools of the build."""

    source: Path  # the unpacked source distribution
    out: Path  # destination of packages
    target: Path  # cargo's folder
    logs: Path  # of builds, by tag
    zig: Path | None  # the folder of the command, if available
    profile: Path | None = None  # that optimises the engine


def rustc_facts() -> dict[str, str]:
    """The facts that `rustc -vV` prints, by name."""
    printed = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout  # noqa: S607
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


def runs_here(tag: str) -> bool:
    """Return whether this machine runs wheels with this tag."""
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return tag.startswith(libc) and tag.endswith(platform.machine())


def build_sdist(checkout: Path, out: Path) -> Path:
    """The source distribution."""
    command = [*MATURIN, "sdist", "--out", str(out)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    return _newest(out, "foreblock-*.tar.gz")


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack a source distribution; unchanged files keep their time for cargo."""
    kept = set()
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                path = folder / member.name.partition("/")[2]
                kept.add(path)
                _write(path, file.read())
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    return folder


def install_zig(folder: Path) -> Path | None:
    """Return the folder of the command zig, installed if necessary, or None if unavailable."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    done = subprocess.run(
        [*install, "--require-hashes", "--requirement", str(LOCK)],
        check=False, capture_output=True,
    )  # fmt: skip
    return None if done.returncode else next(folder.glob("lib/python*/site-packages/ziglang"))


def train(shop: Workshop) -> Path:
    """Build an instrumented engine, run the benchmark, return the profile; raises `NotBuilt`."""
    facts = rustc_facts()
    llvm = facts["LLVM version"].partition(".")[0]
    merge = shutil.which(f"llvm-profdata-{llvm}")
    if merge is None:
        raise NotBuilt(f"it needs llvm-profdata-{llvm} (Debian: llvm-{llvm})")
    if shutil.which("wrk") is None:
        raise NotBuilt("it needs wrk (Debian: wrk)")
    folder = shop.logs / "profile"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, counts = folder / "build.log", folder / "counts"
    native = shop._replace(zig=None, out=folder)
    flags = {"RUSTFLAGS": f"-Cprofile-generate={counts}"}
    variables = flags if shop.zig is None else flags | AS_WITH_ZIG
    if _maturin_build(["--target", facts["host"]], native, log, variables):
        raise NotBuilt(f"the instrumented build has failed, see {log}")
    programs = folder / "venv" / "bin"
    wheel, merged = _newest(folder, "foreblock-*.whl"), folder / "merged.profdata"
    with log.open("ab") as file:
        for command in (
            [sys.executable, "-m", "venv", str(programs.parent)],
            [str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)],
            [str(programs / "foreblock"), *TRAINING],
            [merge, "merge", "--output", str(merged), str(counts)],
        ):
            done = subprocess.run(command, cwd=folder, stdout=file, stderr=file, check=False)
            if done.returncode:
                raise NotBuilt(f"{Path(command[0]).name} has failed, see {log}")
    return merged


def build_wheel(where: Platform, shop: Workshop) -> Path:
    """Build the wheel for a platform; raises `NotBuilt`.

    Without zig only the one for this machine is built, with its own C compiler and glibc; it gets
    the oldest compatible tag.
    """
    library = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", where.target],  # noqa: S607
        check=False, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    if not library or not any(Path(library).glob("libstd-*")):
        raise NotBuilt(f"Rust has no standard library for it (rustup target add {where.target})")
    if shop.zig is not None:
        policy = where.tag.removesuffix("_x86_64").removesuffix("_aarch64")
        arguments = ["--zig", "--target", where.target, "--compatibility", policy]
    elif runs_here(where.tag):
        arguments = ["--target", where.target]
    else:
        raise NotBuilt("it needs zig, which could not be installed from PyPI (ziglang)")
    log = shop.logs / f"{where.tag}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = {} if shop.profile is None else {"RUSTFLAGS": f"-Cprofile-use={shop.profile}"}
    if _maturin_build(arguments, shop, log, flags):
        raise NotBuilt(f"the build has failed, see {log}")
    return _newest(shop.out, "foreblock-*.whl")


def _maturin_build(
    arguments: Sequence[str], shop: Workshop, log: Path, variables: dict[str, str]
) -> int:
    path = [str(shop.zig)] if shop.zig else []
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(shop.target),
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
        **variables,
    }
    command = [*MATURIN, "build", "--release", "--locked", *arguments, "--out", str(shop.out)]
    with log.open("wb") as file:
        return subprocess.run(
            command, cwd=shop.source, env=environment, stdout=file, stderr=subprocess.STDOUT,
            check=False,
        ).returncode  # fmt: skip


def _write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
