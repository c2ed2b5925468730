"""What a package has to hold: all that lies in python/foreblock, the engine and the licences.

Compared with the files of the checkout, so a new asset cannot be forgotten.
"""

import tarfile
import tomllib
import zipfile
from pathlib import Path

ENGINE = "foreblock/_engine.abi3.so"
LICENCES = ("LICENSE", "LICENSE-THIRD-PARTY")
BUILT = {".pyc", ".so"}  # by Python or cargo, beside the sources


def version_of(checkout: Path) -> str:
    """The version that packages of this checkout have."""
    manifest = tomllib.loads((checkout / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


FAILED_INPUTS = "proptest-regressions"  # which a failed test leaves


def sources(folder: Path) -> set[str]:
    """The files below a folder by their names from there, without what was built or left."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in BUILT)
    names = (path.relative_to(folder) for path in files)
    return {str(name) for name in names if FAILED_INPUTS not in name.parts}


def faults_of_wheel(wheel: Path, checkout: Path) -> list[str]:
    """What is missing in a wheel, and what does not belong there."""
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
    """What is missing in a source distribution."""
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
