"""One index of a block, closed: its header, its rows and its announcement, and the block's end.

A closed index is a value; `commit_builder` writes its rows. Everything in its header but roots,
bloom and amounts comes with the payload attributes, or follows from the parent. The fork decides
which fields exist.

Every index is the block as if it ended there, so on Ethereum its state has the effects of that
end (requests, EIP-7685): the contracts of EIP-7002 and EIP-7251 have dequeued requests and counted
them. The next index continues before that end, so the slots that an end changes are restored
first; a block with queued requests keeps them in a row, for a writer that reads it back. If
nothing is queued, the contracts need not be called, as long as their code is the published one;
and if nothing has run since, they are unchanged. OP chains have no requests. `rules.execution`
computes the requests.

With refunds of the sequencer (Lagoon) a block ends with a transaction that has them. The header of
an index includes it; its rows are beside those of the index, and are part of the block only if it
is sealed there.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Changes, Env, Header, Overlay
from foreblock.errors import StateMissing
from foreblock.ledger.rules.check import EMPTY_REQUESTS_HASH, EMPTY_ROOT, Check
from foreblock.ledger.rules.execution import (
    CONSOLIDATION_REQUESTS,
    WITHDRAWAL_REQUESTS,
    deposits_in,
    hash_of_deposits,
    hash_of_requests,
)
from foreblock.ledger.rules.forks import EthereumFork, Rules
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage import partial_rows as layout
from foreblock.ledger.storage.dev_rows import encode_edits
from foreblock.ledger.storage.mirror_rows import real_index_key
from foreblock.ledger.storage.rows import encode_items
from foreblock.primitives import ZERO_ADDRESS, ZERO_HASH
from foreblock.types import Base, Diff, Flashblock, FlashblockId, StateEdit


def header_of(base: Base, rules: Rules, excess_blob_gas: int = 0) -> Header:
    """The header of this block while nothing is in it; its state root is zero."""
    shanghai = rules.ethereum >= EthereumFork.SHANGHAI
    cancun = rules.ethereum >= EthereumFork.CANCUN
    prague = rules.ethereum >= EthereumFork.PRAGUE
    return Header(
        parent_hash=base.parent_hash,
        beneficiary=base.fee_recipient,
        state_root=ZERO_HASH,
        number=base.block_number,
        gas_limit=base.gas_limit,
        timestamp=base.timestamp,
        extra_data=base.extra_data,
        mix_hash=base.prev_randao,
        base_fee_per_gas=base.base_fee_per_gas,
        withdrawals_root=EMPTY_ROOT if shanghai else None,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=excess_blob_gas if cancun else None,
        parent_beacon_block_root=base.parent_beacon_block_root if cancun else None,
        requests_hash=EMPTY_REQUESTS_HASH if prague else None,
    )


def base_of(header: Header) -> Base:
    """The base of the block of this header."""
    return Base(
        parent_hash=header.parent_hash,
        parent_beacon_block_root=header.parent_beacon_block_root or ZERO_HASH,
        prev_randao=header.mix_hash,
        fee_recipient=header.beneficiary,
        block_number=header.number,
        gas_limit=header.gas_limit,
        timestamp=header.timestamp,
        extra_data=header.extra_data,
        base_fee_per_gas=header.base_fee_per_gas or 0,
    )


def diff_of(
    header: Header, transactions: tuple[bytes, ...], post_exec: bytes | None = None
) -> Diff:
    """The announcement of a block so far, with the transactions that are new in it.

    `post_exec` is the transaction that ends the block, if it ends here.

    It provides no hash if the withdrawals root is not known, which the hash covers.
    """
    return Diff(
        state_root=header.state_root,
        receipts_root=header.receipts_root,
        logs_bloom=header.logs_bloom,
        gas_used=header.gas_used,
        block_hash=ZERO_HASH if header.withdrawals_root == ZERO_HASH else header.hash,
        transactions=transactions,
        withdrawals_root=header.withdrawals_root or ZERO_HASH,
        blob_gas_used=header.blob_gas_used or 0,
        post_exec_tx=post_exec,
    )


class PostExecution(Struct, frozen=True):
    """The transaction that ends a block with refunds, if it ends with this index."""

    transaction: bytes
    receipt: bytes
    before: layout.Position


class ClosedIndex(Struct, frozen=True):
    """The additions of an index to its block, and the header of the block so far."""

    base: Base
    payload_id: bytes
    index: int
    header: Header  # with a zero state root, unless it has state edits
    changes: Changes  # relative to the index before
    transactions: tuple[bytes, ...]
    senders: bytes  # 20 bytes each
    receipts: tuple[bytes, ...]
    before: layout.Position  # what its block had when it was opened
    entries: dict[bytes, bytes]  # that find the transactions by their hashes
    previous: FlashblockId | None
    before_end: bytes | None = None  # a row of `BlockEnd`
    edits: tuple[StateEdit, ...] = ()
    mirrors: bytes | None = None  # on a mirror, the end of the real transactions (`mirror_rows`)
    post_execution: PostExecution | None = None

    def rows(
        self, partial: int, before: tuple[int, ...], received_at_ns: int
    ) -> list[tuple[bytes, bytes]]:
        """The rows of this index as a partial that follows those `before` it."""
        block = self.header.number
        head = layout.PartialRow(
            payload_id=self.payload_id,
            index=self.index,
            received_at_ns=received_at_ns,
            transactions_before=self.before.transactions,
            before=before,
            header=self.header,
        )
        rows = [
            (layout.partial_key(block, partial), head.encode()),
            (layout.transactions_key(block, partial), encode_items(self.transactions)),
            (layout.senders_key(block, partial), layout.encode_senders(self.senders, self.before)),
            (layout.receipts_key(block, partial), encode_items(self.receipts)),
            (layout.by_position_key(block, self.index), layout.encode_numbers((partial,))),
        ]
        if self.before_end is not None:
            rows.append((layout.before_end_key(block, partial), self.before_end))
        if self.edits:
            rows.append((layout.edits_key(block, partial), encode_edits(self.edits)))
        if self.mirrors is not None:
            rows.append((real_index_key(block, partial), self.mirrors))
        if (end := self.post_execution) is not None:
            number = partial | layout.END
            senders = layout.encode_senders(ZERO_ADDRESS, end.before)
            rows += [
                (layout.transactions_key(block, number), encode_items((end.transaction,))),
                (layout.senders_key(block, number), senders),
                (layout.receipts_key(block, number), encode_items((end.receipt,))),
            ]
        return rows

    def flashblock(self) -> Flashblock:
        """Its announcement by a sequencer."""
        header, end = self.header, self.post_execution
        return Flashblock(
            payload_id=self.payload_id,
            index=self.index,
            base=self.base if self.index == 0 else None,
            diff=diff_of(header, self.transactions, None if end is None else end.transaction),
            block_number=header.number,
            previous=self.previous,
            edits=self.edits,
        )


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

    def resume(self, receipts: Sequence[bytes], before_end: bytes | None) -> None:
        """Go on with a block that was read back, whose end is done."""
        self.keep(receipts)
        if before_end is not None:
            self._before = decode_counters(before_end)

    def keep(self, receipts: Sequence[bytes]) -> None:
        """Note the deposits of further transactions."""
        self._deposits += deposits_in(receipts, self._profile, self._check)

    def do(self, *, has_run: bool) -> bytes:
        """Let the block end here; returns the hash of its requests.

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
        try:
            return hash_of_requests(self._deposits, self._overlay, self._env, self._check)
        except StateMissing:  # it can be tried again
            self.take_back()
            raise

    def _is_published(self, contract: bytes) -> bool:
        account = self._overlay.account(contract)
        return account is not None and account.code_hash == _QUEUES[contract]

    def take_back(self) -> None:
        """Let the block continue as if it had not ended."""
        for at, contract in enumerate(_QUEUES if self._before else ()):
            counters = self._before[at * _COUNTERS : (at + 1) * _COUNTERS]
            self._overlay.set(contract, state_diff=dict(enumerate(counters)))
        self._before = ()

    @property
    def row(self) -> bytes | None:
        """The slots that the last end changed, as they were before; None if it changed nothing."""
        if not self._before:
            return None
        return b"".join(counter.to_bytes(_WORD) for counter in self._before)


def decode_counters(row: bytes) -> Counters:
    return tuple(int.from_bytes(row[at : at + _WORD]) for at in range(0, len(row), _WORD))
