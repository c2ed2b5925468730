"""The build for fuzzing, below `target/fuzz`: instrumented programs, and atheris.

Every crate is compiled with LLVM's coverage counters, which stable Rust supports; sanitizers are
not used. The engine is built a second time as a Python module, so that atheris has its coverage as
well.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from packages.building import rustc_facts

ROOT = Path(__file__).parents[2]
FUZZ = ROOT / "fuzz"
MADE = ROOT / "target" / "fuzz"
ATHERIS = MADE / "atheris"

# libFuzzer reads these counters; comparisons reveal the values an input is compared with.
FLAGS = (
    "-Cpasses=sancov-module"
    " -Cllvm-args=-sanitizer-coverage-level=4"
    " -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
    " -Cllvm-args=-sanitizer-coverage-pc-table"
    " -Cllvm-args=-sanitizer-coverage-trace-compares"
    " -Ccodegen-units=1"
)

# The release profile of `fuzz/Cargo.toml`, for the main workspace: crates of both builds are
# shared.
PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "false",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only",
    "CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS": "true",
    "CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS": "true",
}


class Missing(Exception):
    """A missing prerequisite."""


def programs(names: list[str]) -> dict[str, Path]:
    """Build the programs of these targets."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise Missing("c++ is missing: install a C++ compiler (Debian: build-essential)")
    bins = [f"--bin={name}" for name in names]
    folder = _cargo([*bins, f"--manifest-path={FUZZ / 'Cargo.toml'}", "--features=libfuzzer"], {})
    return {name: folder / name for name in names}


def engine() -> Path:
    """Build the engine as a Python module, with counters."""
    folder = _cargo(["--package=foreblock-engine-python"], PROFILE)
    return folder / "lib_engine.so"


def _cargo(arguments: list[str], environment: dict[str, str]) -> Path:
    if shutil.which("cargo") is None:
        raise Missing("cargo is missing: install Rust 1.91 or newer (rustup)")
    host = rustc_facts()["host"]
    # With an explicit target, build scripts have no counters.
    command = ["cargo", "build", "--release", "--locked", "--quiet", f"--target={host}"]
    module = {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    subprocess.run(
        [*command, f"--target-dir={MADE}", *arguments],
        cwd=ROOT,
        env=os.environ | {"RUSTFLAGS": FLAGS} | module | environment,
        check=True,
    )
    return MADE / host / "release"


def atheris() -> Path:
    """Install atheris beside the build; the environment of the tests stays unchanged."""
    lock = FUZZ / "requirements.lock"
    stamp = ATHERIS / "installed"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return ATHERIS
    shutil.rmtree(ATHERIS, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wheels = ["--only-binary=:all:", "--require-hashes", "--target", str(ATHERIS)]
    done = subprocess.run([*pip, *wheels, "--requirement", str(lock)], check=False)
    if done.returncode:
        raise Missing(
            "atheris cannot be installed: it has wheels for Linux on x86-64 and Python 3.11 to"
            " 3.13 only; TARGETS names what can be run without it"
        )
    stamp.write_bytes(lock.read_bytes())
    return ATHERIS
