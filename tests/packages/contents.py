"""The required contents of a package: everything in python/foreblock, the engine and the licences.

Compared with the files of the checkout, so that a new asset cannot be forgotten.
"""

import tarfile
import tomllib
import zipfile
from pathlib import Path

ENGINE = "foreblock/_engine.abi3.so"
LICENCES = ("LICENSE", "LICENSE-THIRD-PARTY")
BUILT = {".pyc", ".so"}  # by Python or cargo, beside the sources


def version_of(checkout: Path) -> str:
    """The version of packages from this checkout."""
    manifest = tomllib.loads((checkout / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


FAILED_INPUTS = "proptest-regressions"  # left by a failed test


def sources(folder: Path) -> set[str]:
    """The files below a folder by relative name, without build products and leftovers."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in BUILT)
    names = (path.relative_to(folder) for path in files)
    return {str(name) for name in names if FAILED_INPUTS not in name.parts}


def faults_of_wheel(wheel: Path, checkout: Path) -> list[str]:
    """Return missing and unexpected files of a wheel."""
    about = f"foreblock-{version_of(checkout)}.dist-info/"
    needed = {
        *sources(checkout / "python"),
        ENGINE,
        *(f"{about}licenses/{name}" for name in LICENCES),
        f"{about}entry_points.txt",
        f"{about}METADATA",
    }
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    strangers = {name for name in held - needed if not name.startswith(about)}
    return _faults(wheel, needed - held, strangers)


def faults_of_sdist(sdist: Path, checkout: Path) -> list[str]:
    """Return missing files of a source distribution."""
    folder = sdist.name.removesuffix(".tar.gz")
    needed = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "PKG-INFO", *LICENCES}
    for name in ("python", "crates"):
        needed |= {f"{name}/{each}" for each in sources(checkout / name)}
    with tarfile.open(sdist) as archive:
        held = {name.removeprefix(f"{folder}/") for name in archive.getnames()}
    return _faults(sdist, needed - held, held - needed)


def _faults(package: Path, missing: set[str], strangers: set[str]) -> list[str]:
    return [
        *(f"{package.name} lacks {name}" for name in sorted(missing)),
        *(f"{package.name} has {name}, which is not in the checkout" for name in sorted(strangers)),
    ]
