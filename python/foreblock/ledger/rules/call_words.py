"""Which of many calls have a word: as their caller, or in their data. No I/O.

A block has hundreds of calls, and misses thousands of slots: asking each call about each slot takes
seconds. The data of all calls is one text that is searched for a word, in microseconds. A call
that is found may have the word by chance; whoever asks looks at it. None that has it is left out.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

SELECTOR: Final = 4  # bytes
ADDRESS: Final = 20

Kind = tuple[bytes, bytes]  # the hash of a code and a selector


class KnownCall(NamedTuple):
    """A call or a transaction that runs a code of this hash."""

    target: bytes
    code: bytes
    sender: bytes
    data: bytes

    @property
    def kind(self) -> Kind:
        """What it has in common with others."""
        return self.code, self.data[:SELECTOR]


class CallWords:
    """The words of some calls."""

    def __init__(self, calls: Sequence[KnownCall]) -> None:
        arguments = [each.data[SELECTOR:] for each in calls]
        self._calls: Final = calls
        self._text: Final = b"".join(arguments)
        self._ends: Final = list(accumulate(map(len, arguments)))
        self._sent: Final[defaultdict[bytes, list[int]]] = defaultdict(list)
        for place, call in enumerate(calls):
            self._sent[call.sender].append(place)

    def having(self, words: Iterable[bytes]) -> list[KnownCall]:
        """The calls that have one of these words or addresses, in their order."""
        found: set[int] = set()
        for word in words:
            found.update(self._sent.get(word[-ADDRESS:], ()))
            found.update(self._with(word))
        return [self._calls[place] for place in sorted(found)]

    def _with(self, word: bytes) -> Iterator[int]:
        at = self._text.find(word)
        while at >= 0:
            place = bisect_right(self._ends, at)
            yield place
            at = self._text.find(word, self._ends[place])
