"""The plan of faults: which happens where, decided without I/O or a clock.

A decision depends on the seed, the kind of fault and its position (block and index), and on
nothing else: enabling another kind moves none of them. A fault of the chain happens at most once
per height.

| Kind | Effect |
|---|---|
| drop | a message is not sent |
| duplicate | it is sent twice |
| delay | it is sent up to 1.5 s later, after others |
| reorder | it is sent after the next one |
| equivocate | another one with its job and index is sent, before it or after it |
| stall | nothing is sent for up to 5 s, then all of it at once |
| garbage | something that is not a flashblock is sent before it |
| switch_form | it and all after it are sent as subblocks, or as flashblocks again |
| restart | the block is abandoned and begun again as another job |
| tail | the sealed block leaves out the last flashblock |
| reorg | up to three sealed blocks are replaced |
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import Final, Self

import structlog

from foreblock.errors import InvalidArgument

_SCALE: Final = 1 << 64

log = structlog.get_logger()


class FaultKind(StrEnum):
    """The kinds; those of the feed first, then those of the chain itself."""

    DROP = "drop"
    DUPLICATE = "duplicate"
    DELAY = "delay"
    REORDER = "reorder"
    EQUIVOCATE = "equivocate"
    STALL = "stall"
    GARBAGE = "garbage"
    SWITCH_FORM = "switch_form"
    RESTART = "restart"
    TAIL = "tail"
    REORG = "reorg"


class Faults:
    """The rate of each kind."""

    def __init__(self, rates: Mapping[FaultKind, float], seed: int = 0) -> None:
        self._rates: Final = dict(rates)
        self._seed: Final = seed

    @classmethod
    def parse(cls, words: Iterable[str], seed: int = 0) -> Self:
        """From words such as ``drop=0.01``; `InvalidArgument` names a bad one."""
        rates: dict[FaultKind, float] = {}
        for word in words:
            name, _, text = word.partition("=")
            try:
                kind, rate = FaultKind(name.strip()), float(text)
            except ValueError:
                kinds = ", ".join(FaultKind)
                raise InvalidArgument(
                    f"{word!r} is not a fault and its rate, such as drop=0.01; there are {kinds}"
                ) from None
            if not 0 <= rate <= 1:
                raise InvalidArgument(f"{word!r}: a rate is 0 to 1")
            rates[kind] = rate
        return cls(rates, seed)

    def __bool__(self) -> bool:
        return any(self._rates.values())

    def happens(self, kind: FaultKind, block: int, index: int) -> bool:
        """Return True if this fault happens here."""
        rate = self._rates.get(kind, 0.0)
        return bool(rate) and self.draw(kind, "happens", block, index) < rate

    def draw(self, kind: FaultKind, what: str, block: int, index: int) -> float:
        """A number from 0 to below 1 for a property of a fault at a position."""
        name = f"{self._seed}/{kind}/{what}/{block}/{index}".encode()
        return int.from_bytes(blake2b(name, digest_size=8).digest()) / _SCALE


class ChainFaults:
    """The faults of one chain, which commands may change."""

    def __init__(self, words: Iterable[str], seed: int, to_feed: Callable[[Faults], None]) -> None:
        """`to_feed` gets the faults of the feed, now and when they change."""
        self._seed: Final = seed
        self._to_feed: Final = to_feed
        self._struck: Final[dict[FaultKind, int]] = {}  # the last height, by kind
        self.set(words)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def set(self, words: Iterable[str]) -> None:
        """Inject these faults from now on; raises `InvalidArgument`."""
        self._faults = Faults.parse(words, self._seed)
        self._to_feed(self._faults)

    def forget(self) -> None:
        """Forget where faults have happened: the chain was rewound."""
        self._struck.clear()

    def happens(self, kind: FaultKind, block: int, index: int) -> bool:
        return self._faults.happens(kind, block, index)

    def strikes(self, kind: FaultKind, block: int, index: int) -> bool:
        """Return True if a fault of the chain happens now, and remember its height."""
        if self._struck.get(kind, 0) >= block or not self._faults.happens(kind, block, index):
            return False
        self._struck[kind] = block
        log.info("fault", kind=kind.value, block=block, index=index)
        return True

    def depth(self, latest: int, most: int) -> int:
        """How many blocks a reorganisation replaces, from 1 to `most`."""
        return 1 + int(self._faults.draw(FaultKind.REORG, "depth", latest, 0) * most)
