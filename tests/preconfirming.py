"""A chain whose blocks come index by index, written as a sequencer would and told by hand.

Genesis has an account with ether, the predeploys that execution looks at, the system
contracts, and a counter: a contract that adds what it is sent to its slot 0 and logs the
sum. Signatures are the engine's own; nothing here looks at how blocks are read.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bytecode import code
from foreblock._engine import (
    Header,
    Message,
    Store,
    Transaction,
    address_of,
    deposit_transaction,
    keccak256,
    sign_transaction,
)
from foreblock.clock import DrivenClock
from foreblock.ledger.block_in_progress import BlockInProgress
from foreblock.ledger.genesis import read_genesis
from foreblock.ledger.header_rules import base_fee_after
from foreblock.ledger.ledger_writer import LedgerWriter
from foreblock.ledger.start import begin_chain
from foreblock.ledger.tip import rules_of
from foreblock.model import Base, Flashblock
from profiles import JOVIAN

ETHER: Final = 10**18
START_NS: Final = 10**12  # of the clock that deadlines count by
SECRET: Final = b"\x46" * 32
SENDER: Final = address_of(SECRET)
PAID: Final = b"\x35" * 20
COUNTER: Final = b"\xc0" * 20
DEPOSITOR: Final = bytes.fromhex("deaddeaddeaddeaddeaddeaddeaddeaddead0001")  # OP, L1 attributes
SEQUENCER: Final = bytes.fromhex("4200000000000000000000000000000000000011")  # OP, fee recipient
L1_BLOCK: Final = bytes.fromhex("4200000000000000000000000000000000000015")
MESSAGE_PASSER: Final = bytes.fromhex("4200000000000000000000000000000000000016")
HISTORY: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")

# The code printed in EIP-2935 and EIP-4788.
HISTORY_CODE: Final = (
    "0x3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257"
    "611fff81430311604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
)
BEACON_ROOTS_CODE: Final = (
    "0x3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762"
    "001fff810690815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f359062"
    "001fff015500"
)
COUNTER_CODE: Final = code(
    0, "SLOAD", "CALLVALUE", "ADD", 0, "SSTORE", 0, "SLOAD", 0, "MSTORE", 32, 0, "LOG0"
)


def genesis() -> bytes:
    """The genesis file."""
    account: dict[str, Any] = {"balance": "0", "nonce": "0x1"}
    alloc = {
        SENDER: {"balance": str(1_000 * ETHER)},
        COUNTER: account | {"code": COUNTER_CODE},
        L1_BLOCK: account | {"storage": {"0x08": hex(400 << 96)}},
        MESSAGE_PASSER: account | {"code": COUNTER_CODE, "storage": {"0x00": "0x01"}},
        HISTORY: account | {"code": HISTORY_CODE},
        BEACON_ROOTS: account | {"code": BEACON_ROOTS_CODE},
    }
    return json.dumps(
        {
            "config": JOVIAN,
            "timestamp": "0x3e8",
            "gasLimit": "0x1c9c380",
            "difficulty": "0x0",
            "extraData": "0x0100000032000000060000000000000000",
            "alloc": {"0x" + address.hex(): value for address, value in alloc.items()},
        }
    ).encode()


class PreconfirmingChain:
    """A chain and the block on its top, each step of which the test calls for."""

    def __init__(self, folder: Path, *, keep_partials: int = 64) -> None:
        self.store = Store(str(folder), write=True, keep_partials=keep_partials)
        self.genesis = genesis()
        begin_chain(self.store, read_genesis(self.genesis))
        self.clock = DrivenClock(monotonic_ns=START_NS)
        self.writer = LedgerWriter(self.store, self.clock, keep_partials=keep_partials)
        self.block: BlockInProgress | None = None
        self.nonce = 0

    def close(self) -> None:
        """Let go of the store."""
        self.writer.close()
        self.store.close()

    def begin(self) -> Flashblock:
        """The first index of the next block: its deposit. The block before is sealed."""
        former, parent = self.block, self.writer.latest
        if former is None:
            self.block = self.writer.begin(self._base(parent), _payload_id(parent))
            self.block.run(self._deposit())
            return self.writer.extend(self.block)
        sealed = self.writer.header_if_sealed(former)
        payload_id = _payload_id(sealed)
        self.block = self.writer.begin_next(former, sealed, self._base(sealed), payload_id)
        self.block.run(self._deposit())
        return self.writer.seal_and_extend(former, sealed, self.block)

    def extend(self, transactions: Sequence[Transaction] = ()) -> Flashblock:
        """The next index of the block, with these transactions."""
        assert self.block is not None, "begin it first"
        for transaction in transactions:
            self.block.run(transaction)
        return self.writer.extend(self.block)

    def pay(self, to: bytes | None = PAID, value: int = 1, data: bytes = b"") -> Transaction:
        """The sender's next transaction."""
        message = Message(
            sender=SENDER,
            to=to,
            value=value,
            data=data,
            gas=200_000,
            max_fee_per_gas=10**11,
            max_priority_fee_per_gas=10**9,
        )
        self.nonce += 1
        return sign_transaction(message, 2, JOVIAN["chainId"], self.nonce - 1, SECRET)

    def _base(self, parent: Header) -> Base:
        rules = rules_of(parent, 0, self.writer.profile)
        return Base(
            parent_hash=parent.hash,
            parent_beacon_block_root=keccak256(b"beacon" + parent.hash),
            prev_randao=keccak256(b"randao" + parent.hash),
            fee_recipient=SEQUENCER,
            block_number=parent.number + 1,
            gas_limit=parent.gas_limit,
            timestamp=parent.timestamp + 2,
            extra_data=parent.extra_data,
            base_fee_per_gas=base_fee_after(parent, rules, rules, self.writer.profile),
        )

    def _deposit(self) -> Transaction:
        assert self.block is not None, "there is a block"
        return deposit_transaction(
            source_hash=keccak256(b"source" + self.block.base.parent_hash),
            sender=DEPOSITOR,
            to=PAID,
            mint=0,
            value=0,
            gas_limit=1_000_000,
            input=b"attributes",
        )


def _payload_id(parent: Header) -> bytes:
    return b"\x04" + parent.hash[:7]
