"""Commands that were put off, in a file: who is killed carries them out when it begins again.

    record    length (4) ‖ checksum (4) ‖ batch (8) ‖ MessagePack of `JournaledCommand`

Each batch is written over the one before; a record of another batch, or a broken one, is the
end. Nothing waits for the disk: it is for chains whose commits do not, either.
"""

import os
import struct
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from foreblock.bus.commands import AddBalance, IncreaseTime, Revert, SetAccount, TakeSnapshot

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


class CommandJournal:
    """The file."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it; raises `OSError`."""
        self._file: Final = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._end = 0

    def begin(self) -> None:
        """Forget the batch: it is carried out."""
        self._end = 0

    def add(self, batch: int, recorded: JournaledCommand) -> None:
        """Write a command of a batch; raises `OSError`."""
        body = _BATCH.pack(batch) + _encode(recorded)
        record = _HEAD.pack(len(body), crc32(body)) + body
        if os.pwrite(self._file, record, self._end) != len(record):
            raise OSError("a command was written in part")
        self._end += len(record)

    def read(self) -> CommandBatch:
        """The batch in the file."""
        left = memoryview(os.pread(self._file, os.fstat(self._file).st_size, 0))
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
        """Close the file."""
        os.close(self._file)
