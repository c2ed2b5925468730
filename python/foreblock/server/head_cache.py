"""Heads that were parsed and passed every check.

A keep-alive client sends the same head again and again. Equal bytes parse equally, so a head
found here by its bytes may be taken as accepted and no rule is weakened: 1 µs for a whole
request instead of 9, however many headers there are. A head of which only headers differ
that nobody looks at, such as the number of a trace, is parsed anew and found by what is
looked at.

Each endpoint has its own, since what it accepts depends on its rules. Where some requests
are answered from their bytes alone, whoever does so is told of the same heads.
"""

from typing import Final

from foreblock.server.answers import SUCCESS
from foreblock.server.checks import Accepted, Refused, Rules, check
from foreblock.server.head import Head
from foreblock.server.reply import NO_FAST_PATH, FastPath

LONGEST: Final = 1024  # bytes; longer heads are rare and would make the cache heavy
MOST: Final = 1024  # heads; then it begins anew


class HeadCache(dict[bytes, Accepted]):
    """The heads by their bytes, without the empty line that ends them.

    A dictionary, so that looking one up costs no more than that.
    """

    __slots__ = ("_fast_path", "_verdicts")

    def __init__(self, fast_path: FastPath = NO_FAST_PATH) -> None:
        super().__init__()
        self._fast_path: Final = fast_path
        self._verdicts: dict[Head, Accepted] = {}

    def remember(self, head: bytes, accepted: Accepted) -> None:
        """Keep a head that may come again."""
        if accepted.repeatable and len(head) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
                self._fast_path.clear_heads()
            self[head] = accepted
            self._fast_path.cache_head(head, accepted.length, SUCCESS, accepted.headers)

    def judge(self, head: Head, rules: Rules) -> Accepted | Refused:
        """What the checks say of a head, or said when it last came."""
        known = self._verdicts.get(head)
        if known is not None:
            return known
        verdict = check(head, rules)
        if isinstance(verdict, Accepted) and verdict.repeatable:
            if len(self._verdicts) >= MOST:
                self._verdicts.clear()
            self._verdicts[head] = verdict
        return verdict
