"""Execute a block from a witness alone: its parent's header, and what hashes to what is needed.

A block comes whole, or as the attributes from which a sequencer built it, whose header is then
made here. Either is executed as a follower does it: `rules.verification` for a whole block,
`building.block_in_progress` for attributes. Whether the hash is the expected one is the
caller's to compare. No store, no I/O.

What the witness lacks raises `MissingNode`, `MissingCode` or `MissingHeader`; a block that
breaks a rule raises `BadBlock`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foreblock._engine import Block, Header, Witness
from foreblock.errors import InvalidTransaction, Undecodable
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.parent_state import ParentState, StateRoots
from foreblock.ledger.rules.check import Check
from foreblock.ledger.rules.execution import WorkingState
from foreblock.ledger.rules.fees import FeeParameters, encode_extra_data
from foreblock.ledger.rules.forks import OptimismFork, Rules
from foreblock.ledger.rules.header_rules import base_fee_after
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.verification import check_before_execution, verify
from foreblock.types import Base

FIRST_NUMBER: Final = 1  # of lives of accounts; those in the witness have 0
_NO_PAYLOAD: Final = bytes(8)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The payload attributes from which a sequencer builds a block of an OP chain."""

    timestamp: int
    prev_randao: bytes
    fee_recipient: bytes
    gas_limit: int
    parent_beacon_block_root: bytes | None
    fees: FeeParameters | None  # from Holocene on; none, or zeros: the constants of the chain
    transactions: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class WitnessedBlock:
    """A block with the witness of its execution."""

    profile: ChainProfile
    parent: Header
    content: Attributes | Block
    texts: Sequence[bytes]  # nodes, codes and headers
    expected: bytes  # hash of the block

    @property
    def number(self) -> int:
        return self.parent.number + 1


class _NothingHeld:
    """A witness needs no closing."""

    def close(self) -> None:
        pass


def execute_witnessed(block: WitnessedBlock) -> Header:
    """The header that the block has after its execution, with the state root computed."""
    witness = Witness(block.parent, block.texts)
    if isinstance(block.content, Block):
        return _verified(block, block.content, witness)
    return _built(block, block.content, witness)


def _verified(block: WitnessedBlock, content: Block, witness: Witness) -> Header:
    header, profile = content.header, block.profile
    rules = _rules(header, profile)
    task = check_before_execution(
        content, rules, block.parent, _rules(block.parent, profile), profile
    )
    verify(task, WorkingState(witness.overlay(), witness.trie()), FIRST_NUMBER)
    return header


def _built(block: WitnessedBlock, attributes: Attributes, witness: Witness) -> Header:
    base = _base(block, attributes)
    parent_state = ParentState(
        profile=block.profile,
        parent=block.parent,
        parent_rules=_rules(block.parent, block.profile),
        previous=None,
        view=_NothingHeld(),
        overlay=witness.overlay(),
        roots=StateRoots(witness.trie),
    )
    building = BlockInProgress.begin(parent_state, base, _NO_PAYLOAD)
    check = Check(block.number)
    try:
        building.run(attributes.transactions)
    except Undecodable as broken:
        check.fail("transactions", "signed ones", str(broken))
    except InvalidTransaction as invalid:
        check.fail(f"transaction {invalid.index}", "one that is valid here", invalid.why)
    closed = building.close_index(FIRST_NUMBER)
    return closed.header.replace(state_root=building.roots.root())


def _base(block: WitnessedBlock, attributes: Attributes) -> Base:
    profile, parent = block.profile, block.parent
    rules = profile.rules(block.number, attributes.timestamp, merged=True)
    return Base(
        parent_hash=parent.hash,
        parent_beacon_block_root=attributes.parent_beacon_block_root or bytes(32),
        prev_randao=attributes.prev_randao,
        fee_recipient=attributes.fee_recipient,
        block_number=block.number,
        gas_limit=attributes.gas_limit,
        timestamp=attributes.timestamp,
        extra_data=_extra_data(attributes, rules, profile),
        base_fee_per_gas=base_fee_after(parent, rules, _rules(parent, profile), profile),
    )


def _extra_data(attributes: Attributes, rules: Rules, profile: ChainProfile) -> bytes:
    """The fee parameters of the next block, as in the header; zeros mean the chain's constants."""
    if not rules.includes(OptimismFork.HOLOCENE):
        return b""
    assert rules.optimism is not None
    fees = attributes.fees or FeeParameters(0, 0, 0)
    if not (fees.denominator or fees.elasticity):
        elasticity, denominator = profile.elasticity(rules)
        fees = FeeParameters(denominator, elasticity, fees.minimum_base_fee)
    return encode_extra_data(fees, rules.optimism)


def _rules(header: Header, profile: ChainProfile) -> Rules:
    """The rules of a block; a block that was mined has a difficulty."""
    if header.number == 0:
        return profile.rules_of_genesis(header.timestamp)
    merged = profile.optimism is not None or header.difficulty == 0
    return profile.rules(header.number, header.timestamp, merged=merged)
