"""Documents in memory that a GET is answered with: the page and its parts. No I/O.

They may run and load nothing but each other: the policy that goes with them forbids everything
else, and lets the page connect to this service alone, at the address that the client has used and
at the ports of its other networks. A browser keeps documents and asks again by their tags.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from foreblock.server.answers import METHOD_NOT_ALLOWED, Answer
from foreblock.server.head import RequestHead
from foreblock.server.hosts import without_port

_NAME: Final = re.compile(rb"[A-Za-z0-9.:_-]+")  # of a host, as a policy can hold it
_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src %b; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = (
    b"Content-Security-Policy: %b\r\n"
    b"Cache-Control: no-cache\r\nVary: Accept\r\nETag: %b\r\n"
    b"Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\n"
    b"Cross-Origin-Resource-Policy: same-origin\r\n"
)


class Document(NamedTuple):
    """A text of some media type, without its last line feed."""

    kind: bytes
    text: bytes
    tag: bytes  # changes with the text

    @classmethod
    def of(cls, kind: str, text: bytes) -> "Document":
        tag = hashlib.sha256(text).hexdigest()[:16]
        return cls(kind.encode(), text.removesuffix(b"\n"), b'"%b"' % tag.encode())


class Documents(NamedTuple):
    """All documents of an address."""

    by_path: Mapping[bytes, Document]
    page: bytes = b""  # the path of the one that a browser gets at the root
    siblings: frozenset[int] = frozenset()  # ports of the service's other networks


NO_DOCUMENTS: Final = Documents({})
MOVED: Final = Answer(b"308 Permanent Redirect", headers=b"Location: ../ui\r\n")


def prefers_page(head: RequestHead, documents: Documents) -> bool:
    """Whether a request for the root is one for the page: whether it names HTML."""
    if not documents.page or head.method not in (b"GET", b"HEAD"):
        return False
    ranges = (head.get(b"accept") or b"").lower().split(b",")
    return any(each.partition(b";")[0].strip() == b"text/html" for each in ranges)


def serve(head: RequestHead, host: bytes, path: bytes, documents: Documents) -> Answer:
    """The answer to a request for a document."""
    if head.method not in (b"GET", b"HEAD"):
        return METHOD_NOT_ALLOWED
    document = documents.by_path[path]
    headers = _HEADERS % (_POLICY % _reachable(host, documents.siblings), document.tag)
    known = (head.get(b"if-none-match") or b"").split(b",")
    if any(each.strip().removeprefix(b"W/") == document.tag for each in known):
        return Answer(b"304 Not Modified", headers=headers)
    return Answer(b"200 OK", document.text, headers, document.kind)


def _reachable(host: bytes, siblings: frozenset[int]) -> bytes:
    """The sources that the page may connect to: its own address, and those of the siblings."""
    name = without_port(host)
    if not _NAME.fullmatch(name):
        return b"'self'"
    if b":" in name:
        # A policy cannot name an IPv6 address, so ports stand for it there.
        return b"'self' " + b" ".join(b"ws://*:%d" % port for port in sorted(siblings))
    own = (b"ws://%b" % host, b"wss://%b" % host)
    others = (b"%b://%b:%d" % (s, name, port) for port in sorted(siblings) for s in (b"ws", b"wss"))
    return b" ".join((b"'self'", *own, *others))
