"""All of a sealed block as it is stored, for those who show it.

Transactions are kept as they were signed. To know a sender takes tens of microseconds,
so they are decoded in portions, as many as the reader has time for.
"""

from dataclasses import dataclass

from foreblock._engine import (
    Authorization,
    Block,
    Header,
    Transaction,
    Withdrawal,
    decode_transactions,
    keccak256,
)
from foreblock.ledger.deposit_receipt import deposit_fields
from foreblock.ledger.forks import EthereumFork
from foreblock.ledger.rows import Body
from foreblock.ledger.sealed_block import SealedBlock
from foreblock.ledger.view import LedgerView

__all__ = ["Authorization", "Header", "StoredBlock", "Transaction", "Withdrawal", "read_stored"]


@dataclass(frozen=True, slots=True)
class StoredBlock:
    """A block with everything that is in it."""

    header: Header
    body: Body
    homestead: bool  # whether signatures follow EIP-2
    receipts: tuple[bytes, ...]  # on OP chains, where they tell the nonces of deposits

    @property
    def size(self) -> int:
        """The length of the block's encoding in bytes."""
        body = self.body
        return Block(self.header, body.transactions, body.uncles, body.withdrawals).size

    def transaction_hashes(self) -> list[bytes]:
        """The hashes of all transactions."""
        return list(map(keccak256, self.body.transactions))

    def transactions(self, start: int, stop: int) -> list[Transaction]:
        """Some of the transactions with their senders."""
        raws = self.body.transactions[start:stop]
        return decode_transactions(raws, threads=1, homestead=self.homestead)

    def deposit_fields(self, index: int) -> tuple[int, int] | None:
        """Nonce and receipt version of a deposit."""
        return deposit_fields(self.receipts[index])


def read_stored(view: LedgerView, block: SealedBlock) -> StoredBlock:
    """Everything that a view has of a block."""
    return StoredBlock(
        header=block.header,
        body=view.body(block),
        homestead=block.rules.ethereum >= EthereumFork.HOMESTEAD,
        receipts=view.receipts(block) if block.rules.optimism is not None else (),
    )
