"""The end of a block that grows: requests to the consensus layer (EIP-7685), Ethereum only.

Every index is the block as if it ended there, so its state has the effects of that end: the
contracts of EIP-7002 and EIP-7251 have handed out what they queue and have counted it. What
comes after stands before the end again, so the slots that an end changes are put back first;
a block in whose queues something waits keeps them in a row, for a writer that reads it back.
Where nothing waits, the contracts need not be asked, as long as their code is the published one;
and where nothing has run since, they are as they were.

OP chains have no requests. What the requests are is in `rules.execution`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from foreblock._engine import Env, Overlay, Receipt, decode_receipt
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import (
    CONSOLIDATION_REQUESTS,
    WITHDRAWAL_REQUESTS,
    deposits_in,
    hash_of_deposits,
    hash_of_requests,
)
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.profile import ChainProfile

# The contracts, with the hashes of their published code.
_QUEUES: Final = {
    WITHDRAWAL_REQUESTS: bytes.fromhex(
        "0345a365d2f4c5975b9f1599abe0a2ee76b7a3a731bc68781bd04c84e4858f50"
    ),
    CONSOLIDATION_REQUESTS: bytes.fromhex(
        "78c6cb5202685228bbcbfb992b1c4e116c7ec5ef11e25b8e92716cfc628ddd60"
    ),
}
_COUNTERS: Final = 4  # slots from 0 on: excess, count, head and tail, in both contracts
_WORD: Final = 32

Counters = tuple[int, ...]  # of one contract after the other


def has_requests(rules: Rules) -> bool:
    """Whether blocks make requests."""
    return rules.ethereum >= EthereumFork.PRAGUE and rules.optimism is None


class BlockEnd:
    """The end of one block, done and taken back."""

    def __init__(
        self, overlay: Overlay, env: Env, profile: ChainProfile, number: int, *, is_idle: bool
    ) -> None:
        """`is_idle` says that nothing waited at the end of the block before."""
        self._overlay: Final = overlay
        self._env: Final = env
        self._profile: Final = profile
        self._check: Final = Check(number)
        self._deposits = b""
        self._before: Counters = ()  # of an end that is done and changed something
        self.is_idle = is_idle  # nothing waits, and the contracts have their published code

    def resume(self, receipts: Iterable[bytes], before_end: bytes | None) -> None:
        """Go on with a block that was read back, whose end is done."""
        self.keep([decode_receipt(each) for each in receipts])
        if before_end is not None:
            self._before = decode_counters(before_end)

    def keep(self, receipts: Sequence[Receipt]) -> None:
        """Note the deposits of further transactions."""
        self._deposits += deposits_in(receipts, self._profile, self._check)

    def do(self, *, has_run: bool) -> bytes:
        """Let the block end here; gives the hash of its requests.

        `has_run` says that anything has run since the last end, of the block before at first.
        """
        if self.is_idle and not has_run:
            return hash_of_deposits(self._deposits)
        counters = tuple(
            self._overlay.storage(contract, slot)
            for contract in _QUEUES
            for slot in range(_COUNTERS)
        )
        # Where all are 0 nothing waits, and an end changes nothing.
        self._before = counters if any(counters) else ()
        self.is_idle = not self._before and all(map(self._is_published, _QUEUES))
        if self.is_idle:
            return hash_of_deposits(self._deposits)
        return hash_of_requests(self._deposits, self._overlay, self._env, self._check)

    def _is_published(self, contract: bytes) -> bool:
        account = self._overlay.account(contract)
        return account is not None and account.code_hash == _QUEUES[contract]

    def take_back(self) -> None:
        """Let the block go on as if it had not ended."""
        for at, contract in enumerate(_QUEUES if self._before else ()):
            counters = self._before[at * _COUNTERS : (at + 1) * _COUNTERS]
            self._overlay.set(contract, state_diff=dict(enumerate(counters)))
        self._before = ()

    @property
    def row(self) -> bytes | None:
        """What the last end changed, as it was before; none where it changed nothing."""
        if not self._before:
            return None
        return b"".join(counter.to_bytes(_WORD) for counter in self._before)


def decode_counters(row: bytes) -> Counters:
    """The slots from their row."""
    return tuple(int.from_bytes(row[at : at + _WORD]) for at in range(0, len(row), _WORD))
