"""A small OP chain written index by index, for tests of writers.

`Chain` begins and seals blocks as a sequencer does, without a pool or a schedule: a test chooses
the transactions of each index. Its genesis has contracts that write slots and logs, create others
and destroy themselves.
"""

import json
from pathlib import Path
from typing import Any

from foreblock._engine import (
    Message,
    Store,
    Transaction,
    address_of,
    deposit_transaction,
    keccak256,
    sign_transaction,
)
from foreblock.clock import DrivenClock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.rules.forks import OptimismFork, Rules
from foreblock.ledger.rules.header_rules import base_fee_after
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.ledger.storage.partial_rows import transactions_key
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Base, Flashblock
from support.chains.profiles import JOVIAN, profile
from support.payloads.bytecode import code

CHAIN_ID = 901
KEYS = [bytes([seed]) * 32 for seed in (1, 2, 3)]
SENDERS = [address_of(key) for key in KEYS]
DEPOSITOR = b"\xd0" * 20
NOBODY = b"\x35" * 20
SEQUENCER_VAULT = bytes.fromhex("4200000000000000000000000000000000000011")
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")
PASSER = bytes.fromhex("4200000000000000000000000000000000000016")
HISTORY = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
SCRIBE = b"\x5c" * 20
FACTORY = b"\xfa" * 20
WITNESS = b"\x17" * 20
ETHER = 10**18
PRICE = 100 * 10**9
# Denominator 50 and elasticity 6, from Jovian on with a minimum base fee of 0.
HOLOCENE_DATA = bytes.fromhex("000000003200000006")
JOVIAN_DATA = bytes.fromhex("0100000032000000060000000000000000")

# Writes the word at offset 32 of its input into the slot given at offset 0, and logs the slot as a
# topic.
WRITES = (32, "CALLDATALOAD", 0, "CALLDATALOAD", "SSTORE")
SCRIBES = code(*WRITES, 0, "CALLDATALOAD", 0, 0, "LOG1", "STOP")
# Stores the parent hash under the block's number.
WITNESSES = code(1, "NUMBER", "SUB", "BLOCKHASH", "NUMBER", "SSTORE")
# Creates a contract with its input as init code.
CREATES = code(
    "CALLDATASIZE", 0, 0, "CALLDATACOPY", 0, "CALLDATASIZE", 0, "CALLVALUE", "CREATE2", "STOP"
)  # fmt: skip
# Writes as above, or destroys itself when called without input: the code of created contracts.
_MORTAL = bytes.fromhex(
    code("CALLDATASIZE", 6, "JUMPI", "CALLER", "SELFDESTRUCT", "JUMPDEST", *WRITES, "STOP")[2:]
)
assert _MORTAL[6:7] == b"\x5b", "the jump leads to a JUMPDEST"
# Sets slot 9, then returns the code above, which is appended to it.
MAKES_MORTAL = bytes.fromhex(code(7, 9, "SSTORE")[2:]) + b"".join(
    (
        bytes([0x60, len(_MORTAL), 0x60, 17, 0x5F, 0x39]),  # CODECOPY to 0
        bytes([0x60, len(_MORTAL), 0x5F, 0xF3]),
        b"\x00\x00",
        _MORTAL,
    )
)
MORTAL = keccak256(b"\xff" + FACTORY + bytes(32) + keccak256(MAKES_MORTAL))[12:]
# Before Ecotone a contract could destroy itself in a later transaction than its creation.
CANYON: dict[str, Any] = {
    key: value
    for key, value in JOVIAN.items()
    if key not in ("ecotoneTime", "fjordTime", "graniteTime", "holoceneTime", "isthmusTime",
                   "jovianTime")
}  # fmt: skip


def extra_data(rules: Rules) -> bytes:
    """The extra data of a block under these rules."""
    if rules.includes(OptimismFork.JOVIAN):
        return JOVIAN_DATA
    return HOLOCENE_DATA if rules.includes(OptimismFork.HOLOCENE) else b""


def genesis(config: dict[str, Any] = JOVIAN) -> bytes:
    """The genesis file of the chain."""
    contracts: dict[bytes, dict[str, Any]] = {
        # The scalar 400 for the data footprint, at its position in the attributes deposit.
        L1_BLOCK: {"nonce": "0x1", "storage": {"0x08": hex(400 << 96)}},
        PASSER: {"nonce": "0x1", "code": SCRIBES, "storage": {"0x00": "0x01"}},
        SCRIBE: {"nonce": "0x1", "code": SCRIBES},
        FACTORY: {"nonce": "0x1", "code": CREATES},
        WITNESS: {"nonce": "0x1", "code": WITNESSES},
        # Stores its input, the parent hash, under the block's number.
        HISTORY: {"nonce": "0x1", "code": code(0, "CALLDATALOAD", "NUMBER", "SSTORE")},
    }
    accounts = {sender: {"balance": str(1_000 * ETHER)} for sender in SENDERS}
    alloc = {f"0x{address.hex()}": {"balance": "0"} | each for address, each in contracts.items()}
    alloc |= {f"0x{address.hex()}": each for address, each in accounts.items()}
    return json.dumps(
        {
            "config": config,
            "gasLimit": hex(30_000_000),
            "difficulty": "0x0",
            "extraData": f"0x{extra_data(profile(config).rules(0, 0, merged=True)).hex()}",
            "alloc": alloc,
        }
    ).encode()


class Chain:
    """A chain that is written in a folder and may be closed and opened again."""

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any] = JOVIAN,
        *,
        document: bytes | None = None,
        **options: Any,  # noqa: ANN401, of the writer
    ) -> None:
        """`document` replaces the genesis file of the configuration."""
        self.folder = folder
        self.config = config
        self.genesis = genesis(config) if document is None else document
        self.clock = DrivenClock()
        self.options = options
        self.open()

    def open(self) -> None:
        """Open the store as a starting writer does, and continue its block."""
        kept = self.options.get("keep_partials", 64)
        self.store = Store(str(self.folder), write=True, keep_partials=kept)
        begin_chain(self.store, read_genesis(self.genesis))
        self.writer = LedgerWriter(self.store, self.clock, prune_heights=1, **self.options)
        self.resume_block()

    def resume_block(self) -> None:
        """Continue the pending block, if any."""
        self._block = self.writer.open_block()

    def rewind(self, depth: int) -> None:
        """Make a lower block the latest one."""
        fork = max(self.writer.latest.number - depth, 0)
        with CommitBuilder(self.store) as builder:
            builder.drop(self.block.partials, "its parent was dropped")
            builder.rewind(fork)
            builder.commit()
        self.writer.close()
        self.writer = LedgerWriter(self.store, self.clock, prune_heights=1, **self.options)
        self.resume_block()

    def reopen(self) -> None:
        """Leave all files as they are, as a killed process does, and start again."""
        del self.writer, self._block
        self.store.close()
        self.open()

    @property
    def block(self) -> BlockInProgress:
        """The block in progress, started if necessary."""
        if self._block is None:
            latest = self.writer.latest
            self._block = self.writer.begin(self.base(), payload_id(latest.hash))
        return self._block

    def base(self) -> Base:
        """The first transactions of the next block; on top of the block in progress, if any."""
        block, chain = self._block, self.writer.profile
        parent = self.writer.latest if block is None else self.writer.header_if_sealed(block)
        time = parent.timestamp + chain.time_step
        rules = chain.rules(parent.number + 1, time, merged=True)
        parent_rules = chain.rules(parent.number, parent.timestamp, merged=True)
        return Base(
            parent_hash=parent.hash,
            parent_beacon_block_root=keccak256(b"beacon" + parent.hash),
            prev_randao=keccak256(b"randao" + parent.hash),
            fee_recipient=SEQUENCER_VAULT,
            block_number=parent.number + 1,
            gas_limit=30_000_000,
            timestamp=time,
            extra_data=extra_data(rules),
            base_fee_per_gas=base_fee_after(parent, rules, parent_rules, chain),
        )

    def add(self, *transactions: Transaction) -> Flashblock:
        """Add the next index, with these transactions."""
        self.block.run(transactions)
        return self.writer.extend(self.block)

    def seal(self, *transactions: Transaction) -> Flashblock:
        """Seal the block and begin the next one with these transactions."""
        writer, block = self.writer, self.block
        sealed = writer.header_if_sealed(block)
        following = writer.begin_next(block, sealed, self.base(), payload_id(sealed.hash))
        following.run(transactions)
        flashblock = writer.seal_and_extend(block, sealed, following)
        self._block = following
        return flashblock

    def transactions(self, block: int, partials: tuple[int, ...]) -> list[bytes]:
        """The transactions of these partial blocks of a block."""
        raws: list[bytes] = []
        with self.store.view() as view:
            for partial in partials:
                row = view.row(transactions_key(block, partial))
                assert row is not None
                raws += decode_items(row)
        return raws

    def drop_block(self) -> None:
        """Drop the block in progress, so that another can replace it."""
        batch = self.store.batch()
        batch.drop(list(self.block.partials), "a test gives it up")
        self.store.commit(batch)
        self.resume_block()

    def run_until_idle(self) -> None:
        """Do all the work behind the head."""
        while self.writer.follow_up() or self.store.maintain(1000):
            pass

    def signed(
        self, who: int = 0, to: bytes | None = NOBODY, value: int = 1, data: bytes = b"",
        *, gas: int = 200_000,
    ) -> Transaction:  # fmt: skip
        """A transaction that can be executed next."""
        account = self.block.account(SENDERS[who])
        nonce = 0 if account is None else account.nonce
        message = Message(
            sender=SENDERS[who],
            to=to,
            value=value,
            data=data,
            gas=gas,
            max_fee_per_gas=PRICE,
            max_priority_fee_per_gas=10**9,
        )
        return sign_transaction(message, 2, CHAIN_ID, nonce, KEYS[who])

    def deposit(
        self, to: bytes | None = NOBODY, mint: int = 0, value: int = 0, data: bytes = b""
    ) -> Transaction:
        """A unique deposit."""
        account = self.block.account(DEPOSITOR)
        nonce = 0 if account is None else account.nonce
        return deposit_transaction(
            source_hash=keccak256(self.block.base.parent_hash + nonce.to_bytes(8)),
            sender=DEPOSITOR,
            to=to,
            mint=mint,
            value=value,
            gas_limit=200_000,
            input=data,
        )

    def write(self, contract: bytes, slot: int, value: int, who: int = 0) -> Transaction:
        """A call that sets a slot of one of the contracts."""
        return self.signed(who, contract, 0, slot.to_bytes(32) + value.to_bytes(32))


def payload_id(parent_hash: bytes) -> bytes:
    """A payload id that is a function of the parent."""
    return keccak256(b"payload" + parent_hash)[:8]
