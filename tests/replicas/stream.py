"""The stored log, parsed without the code that wrote it: layout of docs/design/log.md.

Yields every commit with its link, computed here, and reports breaks in the chain of links.
"""

import asyncio
import hashlib
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import nats
import zstandard
from nats.js.errors import NotFoundError

HEADER = struct.Struct(">4sBBBBQQQ16s32sI")
ZSTD, PARTS = 1, 2


class StoredCommit(NamedTuple):
    """One commit of the stream."""

    sequence: int  # of its first message
    last_sequence: int
    epoch: int
    before: int
    after: int
    log_id: bytes
    previous: bytes
    link: bytes
    size: int  # bytes stored


def read_log(urls: Sequence[str], name: str) -> list[StoredCommit]:
    """All commits of a stream, in order."""
    return asyncio.run(_read(list(urls), name))


async def _read(urls: list[str], name: str) -> list[StoredCommit]:
    client = await nats.connect(urls)
    try:
        stream = f"FB_{name}"
        state = (await client.jetstream().stream_info(stream)).state
        found: list[StoredCommit] = []
        parts: list[bytes] = []
        begun = 0
        for sequence in range(state.first_seq, state.last_seq + 1):
            try:
                message = await client.jetstream().get_msg(stream, sequence, direct=True)
            except NotFoundError:
                raise AssertionError(f"sequence {sequence} is missing in the stream") from None
            data = message.data or b""
            if not parts:
                begun = sequence
            parts.append(data)
            headers = message.headers or {}
            if "Nats-Batch-Id" in headers and "Nats-Batch-Commit" not in headers:
                continue
            if (commit := _commit(begun, parts)) and _follows(found, commit):
                found.append(commit)
            parts = []
        return found
    finally:
        await client.close()


def _follows(found: list[StoredCommit], commit: StoredCommit) -> bool:
    """Return whether a commit belongs to the same log as the previous ones; others are to be
    skipped.
    """
    return not found or commit.log_id == found[-1].log_id


def _commit(sequence: int, parts: list[bytes]) -> StoredCommit | None:
    """None for a foreign message."""
    first = parts[0]
    if len(first) < HEADER.size or first[:5] != b"FBLC\1":
        return None
    fields = HEADER.unpack_from(first)
    _, _, _, flags, _, epoch, before, after, log_id, previous, length = fields
    body = b"".join((first[HEADER.size :], *parts[1:]))
    if flags & ZSTD:
        body = zstandard.ZstdDecompressor().decompress(body, max_output_size=length)
    assert len(body) == length, f"sequence {sequence} has {len(body)} bytes, not {length}"
    link = hashlib.sha256(first[8:80] + body).digest()
    size = sum(map(len, parts))
    last_sequence = sequence + len(parts) - 1
    return StoredCommit(sequence, last_sequence, epoch, before, after, log_id, previous, link, size)


def end_of_chain(commits: Sequence[StoredCommit]) -> StoredCommit:
    """The last commit that is linked to the first one."""
    end, *others = commits
    for each in others:
        end = each if each.previous == end.link else end
    return end


def judge_log(commits: Sequence[StoredCommit]) -> list[str]:
    """Return the failures in a chain of commits."""
    wrong = []
    for one, two in pairwise(commits):
        if two.previous != one.link:
            wrong.append(f"commit {two.after} at {two.sequence} does not follow that before it")
        if two.before != one.after:
            wrong.append(f"commit {two.after} follows {two.before}, and {one.after} is before it")
        if two.epoch < one.epoch:
            wrong.append(f"commit {two.after} is of epoch {two.epoch} after {one.epoch}")
    return wrong
