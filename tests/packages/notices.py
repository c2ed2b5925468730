"""The licences of the crates that are linked into the engine, as in LICENSE-THIRD-PARTY.

    python tests/packages/notices.py     generates that file again, after a change of Cargo.lock

The licences require their texts to accompany the binary. A crate without a text is listed with its
authors and the name of its licence, whose text is included from others; Apache's is at the end.
"""

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packages.building import PLATFORMS

CHECKOUT = Path(__file__).resolve().parents[2]
FILE = CHECKOUT / "LICENSE-THIRD-PARTY"
ROOT = "foreblock-engine-python"
NAMED = re.compile(r"(licen[cs]e|copying|copyright|notice)([-._].*)?", re.IGNORECASE)
NOT_LINKED = {"test", "tests", "benches", "examples", "bindings", "fuzz"}  # folders of sources
RULE = "=" * 80
HEAD = """\
The engine of foreblock contains the following software of others.
foreblock itself is under the licence in the file LICENSE.
"""


class Crate(NamedTuple):
    """A linked crate."""

    name: str
    version: str
    licence: str  # an expression such as MIT OR Apache-2.0
    authors: str
    folder: Path

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.licence})"


def linked() -> list[Crate]:
    """The crates in the engine of any platform."""
    found = {crate for platform in PLATFORMS for crate in _linked_for(platform.target)}
    return sorted(found)


def names_for(target: str) -> set[str]:
    """The names and versions of linked crates for a target, including this project's."""
    of_target = ["--locked", "--offline", "--target", target, "--package", ROOT]
    lines = _cargo("tree", *of_target, "--edges=normal,no-proc-macro", "--prefix=none")
    return {" ".join(line.replace(" v", " ").split()[:2]) for line in lines.splitlines()}


def text() -> str:
    """The whole file."""
    holders, bare = defaultdict(list), []
    crates = linked()
    for crate in crates:
        texts = dict.fromkeys(_texts(crate))
        for each in texts:
            holders[each].append(crate)
        if not texts:
            bare.append(crate)
    parts = ["\n".join([*map(str, users), "", each]) for each, users in holders.items()]
    lines = [f"{crate}, {crate.authors or 'its contributors'}" for crate in bare]
    parts.append("\n".join(["Without a text of their own:", "", *lines]))
    apache = min(path for crate in crates for path in crate.folder.glob("LICENSE-APACHE*"))
    parts.append(_plain(apache))
    return f"\n{RULE}\n".join([HEAD, *(f"{part}\n" for part in parts)])


def _linked_for(target: str) -> Iterator[Crate]:
    """The linked crates for a target from `cargo tree`, with their metadata."""
    of_target = ["--locked", "--filter-platform", target, "--format-version=1"]
    packages = {
        f"{each['name']} {each['version']}": each
        for each in json.loads(_cargo("metadata", *of_target))["packages"]
    }
    for name in names_for(target):
        package = packages[name]
        if package["source"] is not None:  # not of this project
            authors = ", ".join(each.partition(" <")[0] for each in package["authors"])
            folder = Path(package["manifest_path"]).parent
            yield Crate(package["name"], package["version"], package["license"], authors, folder)


def _cargo(*arguments: str) -> str:
    return subprocess.run(
        ["cargo", *arguments], cwd=CHECKOUT, check=True, capture_output=True, text=True  # noqa: S607
    ).stdout  # fmt: skip


def _texts(crate: Crate) -> Iterator[str]:
    """The licences in a crate and in its C code; of two alternatives, MIT."""
    files = [
        path
        for path in sorted(crate.folder.rglob("*"))
        if NAMED.fullmatch(path.name)
        and path.is_file()
        and path.suffix not in (".rs", ".c", ".h", ".py", ".html")
        and not NOT_LINKED & set(path.relative_to(crate.folder).parts)
    ]
    if " OR " in crate.licence or "/" in crate.licence:
        files = [path for path in files if "mit" in path.name.lower()] or files
    for path in files:
        yield _plain(path)


def _plain(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").expandtabs().splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
