"""The files of the page as documents, and the list of networks that it shows.

They are read once, at the start of a worker, from the package.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final, NamedTuple

from foreblock.server.answers import Document, Documents

PATH: Final = b"/ui"
KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"


class ShownNetwork(NamedTuple):
    """A network of the service, as the page finds it."""

    name: str
    port: int


def load_files() -> dict[bytes, Document]:
    """The files by their paths."""
    static = resources.files("foreblock.page") / "static"
    found = {}
    for file in static.iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = PATH if file.name == INDEX else b"%b/%b" % (PATH, file.name.encode())
            found[path] = Document.of(kind, file.read_bytes())
    return found


def documents_of(
    files: Mapping[bytes, Document], networks: Sequence[ShownNetwork], here: int
) -> Documents:
    """The documents at the address of one network, the one at index `here`."""
    info = {
        "here": networks[here].name,
        "networks": [network._asdict() for network in networks],
    }
    listed = Document.of(KINDS["json"], json.dumps(info).encode())
    siblings = {network.port for number, network in enumerate(networks) if number != here}
    return Documents(
        {**files, PATH + b"/networks.json": listed}, page=PATH, siblings=frozenset(siblings)
    )
