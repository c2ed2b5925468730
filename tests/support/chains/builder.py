"""Build valid blocks: execute the given transactions and fill in the header.

The results are as correct as the engine, so a chain built here proves nothing about execution;
published chains do that. It serves tests of everything else: damage, resuming, and forks that no
published chain covers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foreblock._engine import (
    Block,
    Header,
    Store,
    decode_transactions,
    ommers_hash,
    transactions_root,
    withdrawals_root,
)
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.rules.check import EMPTY_ROOT
from foreblock.ledger.rules.execution import Task, WorkingState, execute
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.header_rules import (
    base_fee_after,
    excess_blob_gas_after,
    next_difficulty,
)
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.ledger.storage.chain_head import ChainHead, read_chain_head
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.types import Withdrawal


class ChainBuilder:
    """A chain in its own store, and its blocks."""

    def __init__(self, folder: Path, genesis: bytes) -> None:
        self.store = Store(str(folder), write=True)
        self.profile = read_genesis(genesis).profile
        self.blocks: list[Block] = []
        begin_chain(self.store, read_genesis(genesis))

    @property
    def tip(self) -> ChainHead:
        """The end of the chain."""
        with self.store.view() as view:
            return read_chain_head(view, self.profile)

    def add(
        self,
        transactions: Sequence[bytes] = (),
        uncles: Sequence[Header] = (),
        withdrawals: Sequence[Withdrawal] = (),
        **fields: Any,  # noqa: ANN401, they are header fields of any type
    ) -> Block:
        """Build the next block, ten seconds after the last one, and store it."""
        block = self.build(transactions, uncles, withdrawals, **fields)
        chain = Chain(self.store, self.profile)
        chain.add(block)
        chain.commit()
        chain.close()
        self.blocks.append(block)
        return block

    def build(
        self,
        transactions: Sequence[bytes] = (),
        uncles: Sequence[Header] = (),
        withdrawals: Sequence[Withdrawal] = (),
        **fields: Any,  # noqa: ANN401, as above
    ) -> Block:
        """Build a valid next block without storing it."""
        tip = self.tip
        time = fields.pop("timestamp", tip.header.timestamp + 10)
        rules = tip.rules_of_next(time, self.profile)
        shanghai = rules.ethereum >= EthereumFork.SHANGHAI
        header = self._unexecuted(tip, rules, time).replace(
            ommers_hash=ommers_hash(uncles), transactions_root=transactions_root(transactions)
        )
        if shanghai:
            header = header.replace(withdrawals_root=withdrawals_root(withdrawals))
        header = header.replace(**fields)
        paid = withdrawals if shanghai else None
        header = self._executed(Block(header, transactions, uncles, paid), rules, tip)
        return Block(header.replace(**fields), transactions, uncles, paid)

    def _unexecuted(self, tip: ChainHead, rules: Rules, time: int) -> Header:
        parent = tip.header
        header = Header(
            parent_hash=parent.hash,
            beneficiary=b"\xc0" * 20,
            state_root=EMPTY_ROOT,
            number=parent.number + 1,
            gas_limit=parent.gas_limit,
            timestamp=time,
            difficulty=0 if rules.merged else next_difficulty(parent, time, rules.ethereum),
        )
        if rules.ethereum >= EthereumFork.LONDON:
            fee = base_fee_after(parent, rules, tip.rules, self.profile)
            first = parent.base_fee_per_gas is None
            header = header.replace(
                base_fee_per_gas=fee, gas_limit=parent.gas_limit * (2 if first else 1)
            )
        if rules.ethereum >= EthereumFork.SHANGHAI:
            header = header.replace(withdrawals_root=EMPTY_ROOT)
        if rules.ethereum >= EthereumFork.CANCUN:
            header = header.replace(
                blob_gas_used=0,
                excess_blob_gas=excess_blob_gas_after(parent, time, self.profile, rules),
                parent_beacon_block_root=bytes([header.number % 256]) * 32,
            )
        if rules.includes(OptimismFork.HOLOCENE):
            header = header.replace(extra_data=parent.extra_data)
        return header

    def _executed(self, block: Block, rules: Rules, tip: ChainHead) -> Header:
        """Return the header with all fields that execution determines."""
        homestead = rules.ethereum >= EthereumFork.HOMESTEAD
        transactions = decode_transactions(block.transactions, homestead=homestead)
        with self.store.view() as view:
            overlay = view.state(tip.header.number).overlay()
            scratch = WorkingState(overlay, self.store.trie(), self.store.batch().next)
            task = Task(block, transactions, rules, tip.rules, self.profile)
            execution = execute(task, scratch)
            header = execution.header.replace(state_root=scratch.root())
            if execution.requests_hash is not None:
                header = header.replace(requests_hash=execution.requests_hash)
            if rules.includes(OptimismFork.ISTHMUS):
                header = header.replace(withdrawals_root=scratch.storage_root(MESSAGE_PASSER))
        if rules.includes(OptimismFork.JOVIAN):
            return header.replace(blob_gas_used=execution.data_footprint)
        if rules.ethereum >= EthereumFork.CANCUN:
            blobs = sum(len(each.blob_versioned_hashes or ()) for each in transactions)
            return header.replace(blob_gas_used=blobs * GAS_PER_BLOB)
        return header
