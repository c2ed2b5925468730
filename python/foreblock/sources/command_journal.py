"""Commands that were put off, in a file: who is killed carries them out when it begins again.

    record    length (4) ‖ checksum (4) ‖ batch (8) ‖ MessagePack of `JournaledCommand`

Each batch is written over the one before; a record of another batch, or a broken one, is the
end. Nothing waits for the disk: it is for chains whose commits do not, either.

The engine writes the file. Commands that it takes from requests by itself are in it, too, before
they are answered; it takes them while `queue` is open.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from foreblock.bus.commands import AddBalance, IncreaseTime, Revert, SetAccount, TakeSnapshot
from foreblock.ledger.storage.deferred_row import CommandQueue

_HEAD: Final = struct.Struct(">II")
_BATCH: Final = struct.Struct(">Q")


class JournaledCommand(Struct, frozen=True, array_like=True):
    """One command."""

    command: SetAccount | AddBalance | TakeSnapshot | Revert | IncreaseTime
    result: int | None = None  # the id of the snapshot that it takes, by how much time is ahead


class CommandBatch(NamedTuple):
    """Commands that were put off together."""

    number: int  # 0: there is none
    commands: list[JournaledCommand]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JournaledCommand).decode


def decode_commands(encoded: Iterable[bytes]) -> list[JournaledCommand]:
    """The commands that a queue has taken."""
    return [_decode(each) for each in encoded]


class CommandJournal:
    """The file."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it; raises `OSError`."""
        self._path: Final = path
        self.queue: Final = CommandQueue(path)

    def begin(self) -> None:
        """Forget the batch: it is carried out. The queue is closed."""
        self.queue.begin()

    def add(self, batch: int, recorded: JournaledCommand) -> None:
        """Write a command of a batch; raises `OSError`."""
        self.queue.add(batch, _encode(recorded))

    def read(self) -> CommandBatch:
        """The batch in the file."""
        left = memoryview(self._path.read_bytes())
        batch = CommandBatch(0, [])
        while len(left) >= _HEAD.size:
            length, checksum = _HEAD.unpack_from(left)
            body, left = left[_HEAD.size :][:length], left[_HEAD.size + length :]
            if len(body) != length or length < _BATCH.size or crc32(body) != checksum:
                break
            (number,) = _BATCH.unpack_from(body)
            if batch.commands and number != batch.number:
                break
            batch = CommandBatch(number, [*batch.commands, _decode(body[_BATCH.size :])])
        return batch

    def close(self) -> None:
        """Take nothing any more."""
        self.queue.close()
