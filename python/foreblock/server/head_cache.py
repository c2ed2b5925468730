"""A cache of heads that passed every check.

A keep-alive client repeats its head. Equal bytes parse equally, so a cached head needs no
parsing and no rule is weakened: 1 µs for a whole request instead of 9. A head that differs only
in unused headers, such as a trace id, is parsed and then found by its used parts.

Each endpoint has its own cache, since its rules decide. The fast path of the endpoint gets the
same heads.
"""

from typing import Final

from foreblock.scheduling.reply import NO_FAST_PATH, FastPath
from foreblock.server.answers import SUCCESS
from foreblock.server.checks import AcceptedHead, RefusedRequest, RequestRules, check
from foreblock.server.head import RequestHead

LONGEST: Final = 1024  # bytes; longer heads are rare
MOST: Final = 1024  # heads; then the cache is cleared


class HeadCache(dict[bytes, AcceptedHead]):
    """Accepted heads by their bytes without the final empty line; a dict, for its speed."""

    __slots__ = ("_fast_path", "_verdicts")

    def __init__(self, fast_path: FastPath = NO_FAST_PATH) -> None:
        super().__init__()
        self._fast_path: Final = fast_path
        self._verdicts: dict[RequestHead, AcceptedHead] = {}

    def remember(self, head: bytes, accepted: AcceptedHead) -> None:
        """Cache a head that may be repeated."""
        if accepted.repeatable and len(head) <= LONGEST:
            if len(self) >= MOST:
                self.clear()
                self._fast_path.clear_heads()
            self[head] = accepted
            self._fast_path.cache_head(head, accepted.length, SUCCESS, accepted.headers)

    def judge(self, head: RequestHead, rules: RequestRules) -> AcceptedHead | RefusedRequest:
        """Check a head, or return the cached verdict of an equal one."""
        known = self._verdicts.get(head)
        if known is not None:
            return known
        verdict = check(head, rules)
        if isinstance(verdict, AcceptedHead) and verdict.repeatable:
            if len(self._verdicts) >= MOST:
                self._verdicts.clear()
            self._verdicts[head] = verdict
        return verdict
