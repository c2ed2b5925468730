"""docs/design/log.md matches the code: formats to the byte, subjects, meanings."""

import re
from pathlib import Path

import pytest

from foreblock.log.message import LogMessage
from foreblock.log.parts import OutgoingCommit
from foreblock.log.position import HeadAnnouncement, Meaning
from foreblock.log.stream_settings import LogSubjects
from foreblock.log.submission import ForwardedAnswer, ForwardedTransaction, NonceHint
from support.each_case import each_case

MESSAGE = LogMessage(0x11, 0x22, 0x33, b"i" * 16, b"p" * 32, b"body")
SENDER = b"s" * 20


def number(value: int) -> bytes:
    return value.to_bytes(8)


# Each format: an example, and the page's fields in it.
FORMATS = {
    "A commit": (
        MESSAGE.encode(),
        [b"FBLC", b"\1", b"\1", b"\1", b"\0", number(0x11), number(0x22), number(0x33),
         b"i" * 16, b"p" * 32, b"\0\0\0\4"],
    ),
    "A head announcement": (
        HeadAnnouncement(5, 6, 7, b"l" * 32, b"b" * 16, 8).encode(),
        [b"\1", number(5), number(6), number(7), b"l" * 32, b"b" * 16, number(8)],
    ),
    "A submission": (ForwardedTransaction(SENDER, b"raw").encode(), [b"\1", SENDER, b"raw"]),
    "A reply to a submission": (
        ForwardedAnswer(9, "why").encode(), [b"\1", b"\1", number(9), b"why"],
    ),
    "A nonce hint": (NonceHint(SENDER, 4).encode(), [SENDER, number(4)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def page(checkout: Path) -> str:
    return (checkout / "docs" / "design" / "log.md").read_text("utf-8")


def test_every_format_is_described(page: str) -> None:
    described = set(re.findall(r"^### (.*)$", page, flags=re.MULTILINE))
    assert described == set(FORMATS)


@each_case("name", FORMATS)
def test_the_tables_are_the_bytes(page: str, name: str) -> None:
    section = page.split(f"### {name}\n")[1].split("\n#", maxsplit=1)[0]
    rows = re.findall(
        r"^\| (\d+) \| (\d*) +\| (.*) \|$", section.replace("| |", "|  |"), re.MULTILINE
    )
    data, fields = FORMATS[name]
    assert rows[0][0] == "0"
    for place, (at, size, _) in enumerate(rows):
        begin = int(at)
        end = begin + int(size) if size else len(data)
        if place < len(fields):
            assert data[begin:end] == fields[place], rows[place]
        following = int(rows[place + 1][0]) if place + 1 < len(rows) else len(data)
        assert end == following, rows[place]


def test_the_headers_of_nats_are_those_that_are_sent(page: str) -> None:
    described = set(re.findall(r"^\| `((?:Nats|Foreblock)-[\w-]+)`", page, flags=re.MULTILINE))
    parts = OutgoingCommit(MESSAGE.link, (b"a", b"b"), 3).headers("FB_x", "w", "b")
    assert described == {name for headers in parts for name in headers}


def test_every_meaning_is_described(page: str) -> None:
    described = re.findall(r"^\| `([A-Z_]+)` \|", page, flags=re.MULTILINE)
    assert described == [meaning.name for meaning in Meaning]


def test_every_subject_is_described(page: str) -> None:
    names = LogSubjects("NET")
    every = [names.log, names.head, names.ask(0), names.submit(0), names.nonce]
    described = re.findall(r"^\| `(fb\.[\w.]+)`", page, flags=re.MULTILINE)
    assert described == [name.replace(".0", ".EPOCH") for name in every]
    assert f"`{names.stream}`" in page
