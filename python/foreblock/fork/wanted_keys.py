"""Keys that are fetched together: those of the start, and likely ones with missed ones. No I/O."""

from typing import Final

from foreblock.follow.worker_state import called_among
from foreblock.ledger.following.missing_state import FEE_VAULTS, L1_SLOTS
from foreblock.ledger.rules.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    HISTORY_STORAGE,
    HISTORY_WINDOW,
    WITHDRAWAL_REQUESTS,
)
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.l1 import L1_BLOCK
from foreblock.ledger.storage.open_store import profile_in
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import ZERO_ADDRESS
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.settings import ChainSettings, ReplayedBlock
from foreblock.types import Header, decode_header, decode_transactions

AHEAD: Final = 128  # slots of a system contract's ring that are fetched together


def needed_at_start(chain: ChainSettings, config: bytes, header: Header) -> StateKeys:
    """The keys that every local block needs, and the development accounts."""
    made = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
    accounts = {each.address for each in made} | {ZERO_ADDRESS}
    slots: dict[bytes, frozenset[int]] = {}
    rules = profile_in(config).rules(header.number + 1, header.timestamp, merged=True)
    if rules.optimism is not None:
        accounts |= {*FEE_VAULTS, L1_BLOCK}
        slots[L1_BLOCK] = frozenset(L1_SLOTS)
    elif rules.ethereum >= EthereumFork.PRAGUE:
        for contract in (WITHDRAWAL_REQUESTS, CONSOLIDATION_REQUESTS):
            slots[contract] = frozenset(range(4))
    if rules.ethereum >= EthereumFork.CANCUN:
        ring = slots_around(header.timestamp % HISTORY_WINDOW)
        slots[BEACON_ROOTS] = ring.union(each + HISTORY_WINDOW for each in ring)
    if rules.ethereum >= EthereumFork.PRAGUE:
        slots[HISTORY_STORAGE] = slots_around(header.number % HISTORY_WINDOW)
    return StateKeys(frozenset(accounts | slots.keys()), slots, codes_of=frozenset(slots))


def named_in(replayed: ReplayedBlock) -> StateKeys:
    """The accounts that the transactions of a block name, with their code."""
    transactions = decode_transactions(replayed.transactions)
    beneficiary = decode_header(replayed.header).beneficiary
    named = frozenset((beneficiary, *(each.sender for each in transactions)))
    called = frozenset(each.to for each in transactions if each.to)
    return StateKeys(named | called, codes_of=called)


def likely_with(needed: StateKeys) -> StateKeys:
    """Keys that are likely to be needed with these: codes, and slots that later blocks write."""
    rings = ring_slots(needed).slots
    slots = {at: frozenset().union(*map(slots_around, each)) for at, each in rings.items()}
    return StateKeys(slots=slots, codes_of=called_among(needed))


def ring_slots(needed: StateKeys) -> StateKeys:
    """The slots among these keys that blocks overwrite in turn."""
    rings = needed.slots.keys() & {BEACON_ROOTS, HISTORY_STORAGE}
    return StateKeys(slots={address: needed.slots[address] for address in rings})


def slots_around(slot: int) -> frozenset[int]:
    """The slots around one in the ring of a system contract: those of the next blocks, mostly."""
    ring, at = divmod(slot, HISTORY_WINDOW)
    first = ring * HISTORY_WINDOW + at // AHEAD * AHEAD
    return frozenset(range(first, min(first + AHEAD, (ring + 1) * HISTORY_WINDOW)))
