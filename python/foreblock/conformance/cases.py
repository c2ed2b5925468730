"""Cases in files: comments, requests and replies, line by line.

    // what the case shows
    >> {"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x…","latest"]}
    << {"jsonrpc":"2.0","id":1,"result":"0x2a"}

The format is that of ethereum/execution-apis. A comment that begins with `speconly:` says
that clients may differ in values, so only the shape of a reply counts.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foreblock.errors import InvalidArgument

SUFFIX: Final = ".io"


@dataclass(frozen=True)
class CaseExchange:
    """A request and its published reply; a notification has none."""

    request: bytes
    reply: bytes | None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the request names."""
        request = json.loads(self.request)
        items = request if isinstance(request, list) else [request]
        return tuple(str(item.get("method")) for item in items if isinstance(item, dict))


@dataclass(frozen=True)
class Case:
    """One file: exchanges in order, over one connection."""

    method: str
    name: str
    exchanges: tuple[CaseExchange, ...]
    shape_only: bool = False

    def __str__(self) -> str:
        return f"{self.method}/{self.name}"


def read_cases(folder: Path) -> list[Case]:
    """Every case below `folder`, by method and name.

    The folder of a file names its method, as published. A file right in `folder` belongs to
    the method of its first request.
    """
    files = sorted(folder.rglob(f"*{SUFFIX}"), key=lambda file: (file.parent.name, file.name))
    if not files:
        raise InvalidArgument(f"there is no case (*{SUFFIX}) below {folder}")
    return [_read(file, folder) for file in files]


def _read(file: Path, folder: Path) -> Case:
    try:
        case = parse_case(file.parent.name, file.stem, file.read_text("utf-8"))
        if file.parent == folder and (named := case.exchanges[0].methods):
            return Case(named[0], case.name, case.exchanges, case.shape_only)
    except ValueError as failure:
        raise InvalidArgument(f"{file}: {failure}") from failure
    return case


def parse_case(method: str, name: str, text: str) -> Case:
    """The case in a text; `ValueError` names a line that is not part of one."""
    exchanges: list[CaseExchange] = []
    shape_only = False
    asked: bytes | None = None
    for number, line in enumerate(text.splitlines(), 1):
        kind, content = line[:2], line[2:].strip()
        match kind:
            case "//":
                shape_only |= content.startswith("speconly:")
            case ">>":
                if asked is not None:
                    exchanges.append(CaseExchange(asked, None))
                asked = _json(content, number)
            case "<<":
                if asked is None:
                    raise ValueError(f"line {number}: a reply without its request")
                exchanges.append(CaseExchange(asked, _json(content, number)))
                asked = None
            case _ if line.strip():
                raise ValueError(f"line {number}: neither //, >> nor <<")
            case _:
                pass
    if asked is not None:
        exchanges.append(CaseExchange(asked, None))
    if not exchanges:
        raise ValueError("no request")
    return Case(method, name, tuple(exchanges), shape_only)


def _json(content: str, number: int) -> bytes:
    try:
        json.loads(content)
    except ValueError as failure:
        raise ValueError(f"line {number}: not JSON: {failure}") from failure
    return content.encode()
