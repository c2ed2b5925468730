"""An index of log filters by the values they name: each log finds the filters that may match.

The values of a filter form clauses: the addresses, and the topics of each position. A log that
matches has a value of every clause, so a filter is listed under the values of one clause only,
the one whose values have the fewest other filters. A filter without values is listed under a
key that all logs have.

A key is a hash of a value with the process's own seed: clients cannot choose values that
collide. A filter that is found by a key may still not match.

Listing a filter takes time in proportion to its size. `add` and `remove` only record that it is
due, and `update` does it in steps. Until a filter is listed, each log is matched with it.
"""

import hashlib
from array import array
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Final

from foreblock.ledger.reading.logs import LogFilter
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

ANY: Final = 0  # the key of filters without values
SHARDS: Final = 256  # a table of all keys would stop the loop for 40 ms when it grows
FEW: Final = 32  # ids that a tuple holds; a set of two takes four times its memory
ID_BYTES: Final = 16
UNUSED_BITS: Final = 4  # of a hash; the others fit into two digits of an int

# Memory of a filter in use; measured are 106 bytes for each address and 120 for each topic.
FILTER_BYTES: Final = 1024
VALUE_BYTES: Final = 128

Ids = bytes | tuple[bytes, ...] | set[bytes]  # of one filter, of a few, of many


class LogsWanted:
    """A filter of logs, and the heights for which it holds. Equal texts are equal filters."""

    __slots__ = ("filter", "first", "holders", "id", "keys", "last", "values")

    def __init__(
        self,
        filter: LogFilter,
        text: bytes,
        values: Sequence[Sequence[bytes]] = (),
        first: int = 0,
        last: int | None = None,
    ) -> None:
        """`values` are those of each clause, beginning with the addresses."""
        self.filter: Final = filter
        self.id: Final = hashlib.blake2b(text, digest_size=ID_BYTES).digest()
        self.first: Final = first
        self.last: Final = last
        self.values = values  # until it is listed
        self.keys: array[int] | None = None  # under which it is listed
        self.holders = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogsWanted) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def size(self) -> int:
        """Bytes of memory that it takes at most."""
        return FILTER_BYTES + VALUE_BYTES * self.filter.size

    def includes(self, number: int) -> bool:
        """Return whether logs of this height are wanted."""
        return number >= self.first and (self.last is None or number <= self.last)


class LogIndex:
    """The filters of all subscribers of one kind."""

    def __init__(self) -> None:
        self.known: Final[dict[bytes, LogsWanted]] = {}  # all that are held or listed, by id
        self._unlisted: Final[dict[bytes, LogsWanted]] = {}  # those that were added
        self._removed: Final[dict[bytes, LogsWanted]] = {}  # those that are still listed
        self.shards: Final[list[dict[int, Ids]]] = [{} for _ in range(SHARDS)]

    @property
    def unlisted(self) -> Collection[LogsWanted]:
        """The filters that are not found yet, or only by some of their keys."""
        return self._unlisted.values()

    def add(self, wanted: LogsWanted) -> LogsWanted:
        """Count one more holder of a filter; returns the equal one that is known already."""
        known = self.known.setdefault(wanted.id, wanted)
        known.holders += 1
        if known.holders == 1:
            self._removed.pop(known.id, None)
            self._unlisted[known.id] = known
        return known

    def remove(self, wanted: LogsWanted) -> None:
        """Count one holder less."""
        wanted.holders -= 1
        if wanted.holders == 0:
            self._unlisted.pop(wanted.id, None)
            if wanted.keys is None:
                del self.known[wanted.id]
            else:
                self._removed[wanted.id] = wanted

    def update(self) -> Steps[bool]:
        """List some filters that were added, unlist some that were removed; true if all are.

        Steps that were not finished are begun again by the next call.
        """
        for wanted in list(islice(self._unlisted.values(), THRESHOLDS.listed_filters)):
            yield from self._list(wanted)
            if wanted.holders:
                del self._unlisted[wanted.id]
        for wanted in list(islice(self._removed.values(), THRESHOLDS.listed_filters)):
            yield from self._unlist(wanted)
            if wanted.holders == 0:
                del self._removed[wanted.id], self.known[wanted.id]
        return not self._unlisted and not self._removed

    def find(self, key: int) -> Collection[bytes]:
        """The ids of the filters that are listed under a key."""
        ids = self.shards[key % SHARDS].get(key, ())
        return (ids,) if isinstance(ids, bytes) else ids

    def _list(self, wanted: LogsWanted) -> Steps[None]:
        if wanted.keys is None:
            keys = yield from self._choose(wanted.values)
            if wanted.holders == 0:
                return  # nothing of it is known any more
            wanted.keys, wanted.values = keys, ()
        for start in range(0, len(wanted.keys), THRESHOLDS.listed_values):
            for key in wanted.keys[start : start + THRESHOLDS.listed_values]:
                shard = self.shards[key % SHARDS]
                if shard.setdefault(key, wanted.id) is not wanted.id:
                    _insert(shard, key, wanted.id)
            yield None

    def _unlist(self, wanted: LogsWanted) -> Steps[None]:
        assert wanted.keys is not None
        for start in range(0, len(wanted.keys), THRESHOLDS.listed_values):
            for key in wanted.keys[start : start + THRESHOLDS.listed_values]:
                shard = self.shards[key % SHARDS]
                _discard(shard, key, wanted.id)
                if not shard:
                    self.shards[key % SHARDS] = {}  # a table keeps its memory when it is empty
            yield None

    def _choose(self, values: Sequence[Sequence[bytes]]) -> "Steps[array[int]]":
        """The keys of the clause whose values have the fewest filters, then the fewest values."""
        clauses = [_keys(*each) for each in enumerate(values) if each[1]]
        if len(clauses) <= 1:
            return clauses[0] if clauses else array("q", (ANY,))
        costs = []
        for keys in clauses:
            yield None
            costs.append((max(len(self.find(key)) for key in keys), len(keys)))
        return clauses[costs.index(min(costs))]


def keys_of(address: bytes, topics: Sequence[bytes]) -> list[int]:
    """All keys under which filters that match a log may be listed."""
    by_topic = [_key(position, topic) for position, topic in enumerate(topics, 1)]
    return [ANY, _key(0, address), *by_topic]


def _key(position: int, value: bytes) -> int:
    """The key of a topic at a position from 1 on, or of an address at position 0."""
    return (hash(value) >> UNUSED_BITS) ^ position


def _keys(position: int, values: Sequence[bytes]) -> "array[int]":
    return array("q", [(hash(value) >> UNUSED_BITS) ^ position for value in values])


def _insert(shard: dict[int, Ids], key: int, id: bytes) -> None:
    """Add a filter to others."""
    ids = shard[key]
    if isinstance(ids, set):
        ids.add(id)
        return
    few = (ids,) if isinstance(ids, bytes) else ids
    if id not in few:
        shard[key] = (*few, id) if len(few) < FEW else {*few, id}


def _discard(shard: dict[int, Ids], key: int, id: bytes) -> None:
    ids = shard.pop(key, id)
    if isinstance(ids, set):
        ids.discard(id)
        if ids:
            shard[key] = ids
    elif isinstance(ids, tuple):
        left = tuple(each for each in ids if each != id)
        shard[key] = left if len(left) > 1 else left[0]
    elif ids != id:
        shard[key] = ids
