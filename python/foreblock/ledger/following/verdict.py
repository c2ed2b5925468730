"""Verify a flashblock: compare its claims about its block with the execution here.

Pure. A message is first compared with itself and its predecessor, which is cheap, then with
the header that its transactions lead to here. A state root, withdrawals root or block hash of
zero is not provided, and not compared; the sealed header reveals what is wrong there.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from foreblock._engine import Header, decode_transaction
from foreblock.errors import Undecodable as UndecodableBytes
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.l1 import ATTRIBUTES_DEPOSITOR, L1_BLOCK
from foreblock.ledger.rules.transaction_rules import DEPOSIT, TRANSACTION
from foreblock.primitives import ZERO_HASH, format_data
from foreblock.types import Base, Diff, Flashblock

# More flashblocks than any builder puts into a block: Base has 11, others up to 30.
MOST_INDICES: Final = 1024
_U64: Final = 1 << 64
_DEPOSIT: Final = bytes([DEPOSIT])


class Applied(Struct, frozen=True):
    """It is true, and part of its block."""


class Diverged(Struct, frozen=True):
    """Its claim differs from the execution here."""

    field: str
    expected: str  # what was found here
    found: str  # what it says

    def __str__(self) -> str:
        return f"{self.field}: expected {self.expected}, found {self.found}"


class Undecodable(Struct, frozen=True):
    """One of its transactions is none."""

    why: str

    def __str__(self) -> str:
        return self.why


class Unsupported(Struct, frozen=True):
    """It needs what this chain or this engine does not have."""

    what: str

    def __str__(self) -> str:
        return self.what


class Overrun(Struct, frozen=True):
    """It exceeds the bounds of what is not proven."""

    why: str

    def __str__(self) -> str:
        return f"overrun: {self.why}"


class Wanting(Struct, frozen=True):
    """It needs state that is not known yet, and is tried again when that is learned."""

    wanted: MissingState
    spoiled: bool = False  # its block has seen parts of it, and must be discarded

    def __str__(self) -> str:
        return f"{len(self.wanted)} keys of the state are not known yet"


Refusal = Diverged | Undecodable | Unsupported | Overrun | Wanting
Verdict = Applied | Refusal


def malformed(message: Flashblock, *, is_optimism: bool = True) -> str | None:
    """The field that no sequencer of such a chain can have meant, if there is one."""
    base, diff = message.base, message.diff
    if (message.index == 0) != (base is not None):
        return "base"
    if base is not None and base.block_number != message.block_number:
        return "metadata.block_number"
    if not 0 < message.block_number < _U64:
        return "metadata.block_number"
    if message.index >= MOST_INDICES:
        return "index"
    field = None if base is None else _malformed_base(base)
    if base is not None and is_optimism and not _brings_attributes(diff.transactions):
        field = field or "diff.transactions[0]"
    return field or _malformed_diff(diff)


def _malformed_base(base: Base) -> str | None:
    if not 0 < base.gas_limit < _U64:
        return "base.gas_limit"
    if not base.timestamp < _U64:
        return "base.timestamp"
    return None


def _brings_attributes(transactions: tuple[bytes, ...]) -> bool:
    """True if a block begins with the attributes deposit, as every OP block does."""
    if not transactions or transactions[0][0] != DEPOSIT:
        return False
    try:
        first = decode_transaction(transactions[0])
    except UndecodableBytes:
        return False
    return (first.sender, first.to) == (ATTRIBUTES_DEPOSITOR, L1_BLOCK)


def _malformed_diff(diff: Diff) -> str | None:
    if not diff.gas_used < _U64:
        return "diff.gas_used"
    if not diff.blob_gas_used < _U64:
        return "diff.blob_gas_used"
    return None


def check_growth(
    diff: Diff, before: Diff | None, gas_limit: int, refunded: int = 0
) -> Diverged | None:
    """Check that gas and logs only grow from one flashblock to the next, up to the gas limit.

    `refunded` is gas that the new transactions are not charged for.
    """
    gas_used, blob_gas_used, bloom = 0, 0, 0
    if before is not None:
        gas_used, blob_gas_used = before.gas_used, before.blob_gas_used
        bloom = int.from_bytes(before.logs_bloom)
    if not gas_used <= diff.gas_used <= gas_limit:
        return Diverged("gas_used", f"{gas_used} to {gas_limit}", str(diff.gas_used))
    if not blob_gas_used <= diff.blob_gas_used <= gas_limit:
        return Diverged("blob_gas_used", f"{blob_gas_used} to {gas_limit}", str(diff.blob_gas_used))
    if bloom & ~int.from_bytes(diff.logs_bloom):
        return Diverged("logs_bloom", "all bits of the flashblock before", "fewer")
    # Before any signer is recovered, which takes as long as to run the transaction.
    signed = sum(not raw.startswith(_DEPOSIT) for raw in diff.transactions)
    least = max(gas_used + signed * TRANSACTION - refunded, gas_used)
    if diff.gas_used < least:
        return Diverged("gas_used", f"{least} at least", str(diff.gas_used))
    return None


def is_provided(value: bytes) -> bool:
    """True if a feed provides this hash or root."""
    return value != ZERO_HASH


def hash_holds(header: Header, diff: Diff, rules: Rules) -> bool:
    """True if a message's hash, if provided, is that of this header with the fields it claims.

    True as well if the hash covers a withdrawals root that neither side knows.
    """
    if not is_provided(diff.block_hash):
        return True
    claimed = header.replace(
        state_root=diff.state_root,
        receipts_root=diff.receipts_root,
        logs_bloom=diff.logs_bloom,
        gas_used=diff.gas_used,
    )
    if _counts_blob_gas(rules):
        claimed = claimed.replace(blob_gas_used=diff.blob_gas_used)
    if rules.includes(OptimismFork.ISTHMUS):
        if is_provided(diff.withdrawals_root):
            claimed = claimed.replace(withdrawals_root=diff.withdrawals_root)
        elif claimed.withdrawals_root == ZERO_HASH:
            return True
    if claimed.hash == diff.block_hash:
        return True
    # The hash may cover a state root that the message does not provide.
    return claimed.replace(state_root=header.state_root).hash == diff.block_hash


def _counts_blob_gas(rules: Rules) -> bool:
    """True if the blob gas of a header depends on its transactions."""
    if rules.optimism is not None:
        return rules.includes(OptimismFork.JOVIAN)
    return rules.ethereum >= EthereumFork.CANCUN


def judge(
    message: Flashblock,
    header: Header,
    rules: Rules,
    state_root: Callable[[], bytes] | None = None,
) -> Applied | Diverged:
    """Compare a message with the header of its block here.

    `state_root` computes the root of its state, where that can be done.
    """
    diff = message.diff
    holds = hash_holds(header, diff, rules)
    if not holds and state_root is not None and not is_provided(diff.state_root):
        holds = hash_holds(header.replace(state_root=state_root()), diff, rules)
    if not holds:
        return _diverged("block_hash", header.hash, diff.block_hash)
    fields: list[tuple[str, int | bytes, int | bytes]] = [
        ("gas_used", header.gas_used, diff.gas_used),
        ("receipts_root", header.receipts_root, diff.receipts_root),
        ("logs_bloom", header.logs_bloom, diff.logs_bloom),
    ]
    # Before these forks the header has fixed values.
    if _counts_blob_gas(rules):
        fields.append(("blob_gas_used", header.blob_gas_used or 0, diff.blob_gas_used))
    found = header.withdrawals_root or ZERO_HASH
    are_known = is_provided(found) and is_provided(diff.withdrawals_root)
    if rules.includes(OptimismFork.ISTHMUS) and are_known:
        fields.append(("withdrawals_root", found, diff.withdrawals_root))
    for field, here, said in fields:
        if here != said:
            return _diverged(field, here, said)
    if state_root is not None and is_provided(diff.state_root):
        root = state_root()
        if root != diff.state_root:
            return _diverged("state_root", root, diff.state_root)
    return Applied()


def _diverged(field: str, here: int | bytes, said: int | bytes) -> Diverged:
    return Diverged(field, _show(here), _show(said))


def _show(fact: int | bytes) -> str:
    return format_data(fact) if isinstance(fact, bytes) else str(fact)
