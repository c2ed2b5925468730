"""The source distribution, and a wheel for each platform that this machine can build for.

All wheels are built from the unpacked source distribution, which must therefore be complete. zig
compiles and links the C of the dependencies against an old glibc or against musl. It comes from
PyPI into a separate environment, because of its size of a hundred megabytes.
"""

import os
import platform
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


class NotBuilt(Exception):
    """A package that cannot be built on this machine, with the reason."""


class Workshop(NamedTuple):
    """The folders and tools of the build."""

    source: Path  # the unpacked source distribution
    out: Path  # destination of packages
    target: Path  # cargo's folder
    logs: Path  # of builds, by tag
    zig: Path | None  # the folder of the command, if available


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
        arguments = []
    else:
        raise NotBuilt("it needs zig, which could not be installed from PyPI (ziglang)")
    log = shop.logs / f"{where.tag}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    if _maturin_build(arguments, shop, log):
        raise NotBuilt(f"the build has failed, see {log}")
    return _newest(shop.out, "foreblock-*.whl")


def _maturin_build(arguments: Sequence[str], shop: Workshop, log: Path) -> int:
    path = [str(shop.zig)] if shop.zig else []
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(shop.target),
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
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
