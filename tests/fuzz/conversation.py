"""One chain with two connections: the engine's fast path is on for one and off for the other.

`TwoWays.disagreement` is the fuzzing oracle: bytes with different responses.
"""

from pathlib import Path

from foreblock.ledger.reading.view import Ledger
from foreblock.settings import Settings
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.two_ways import LIMITS, PathPair
from support.servers.wire import Wire, endpoint_for


class TwoWays:
    """A chain with a block in progress, and its servers."""

    def __init__(self, folder: Path, options: Settings | None = None) -> None:
        self._chain = PreconfirmingChain(folder)
        self._chain.begin()
        self._chain.extend([self._chain.pay(value=1)])
        self._chain.begin()
        self._chain.extend([self._chain.pay(value=10), self._chain.pay(COUNTER, 7)])
        ledger = Ledger(self._chain.store, clock=self._chain.clock)
        self._ways = PathPair(ledger, options or Settings())

    def close(self) -> None:
        self._ways.scheduler.close()
        self._chain.close()

    def disagreement(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return both responses to the same bytes, if they differ.

        They are sent twice: the first time the engine learns the head, and the ordinary path gives
        it the result.
        """
        self._ways.renew()
        self._ways.fast_path.clear_heads()
        knowing = endpoint_for(self._ways.answer, LIMITS, fast_path=self._ways.fast_path)
        short = Wire(self._ways.answer, endpoint=knowing)
        long = Wire(self._ways.answer, LIMITS)
        for _ in range(2):
            said = short.send(data), long.send(data)
            if said[0] != said[1] or short.over() != long.over():
                return said
        return None

    def broken(self, data: bytes) -> str | None:
        """Return the disagreement as text."""
        said = self.disagreement(data)
        return None if said is None else f"the engine says {said[0]!r}, Python {said[1]!r}"

    def is_short(self, data: bytes) -> bool:
        """Return whether the engine answers a request by itself, once it was sent before."""
        self.disagreement(data)
        return self._ways.fast_path.answer(data, b"") is not None
