"""Execute a recorded stretch from its file alone: the proof that nothing is missing in it.

Every block is executed on what the file proves of the anchor's state, and must have the hash
that its successor names, its receipts and its gas. No network is used, and no clock: the same
file gives the same result everywhere.
"""

import tempfile
from pathlib import Path
from typing import Final

from foreblock.errors import BadRecording, StateMissing
from foreblock.ledger.importing.importer import LearnedChain
from foreblock.ledger.storage.open_store import FetchedState, Store
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.primitives import format_data
from foreblock.recording.proof_walk import UnknownNode, prove_account, prove_slot
from foreblock.recording.state_file import RecordedState
from foreblock.types import Block
from foreblock.upstream.block_json import rebuild_block, rebuild_header

ROUNDS: Final = 64  # that one block may take


def run_offline(state: RecordedState, config: bytes, name: str) -> int:
    """Execute all blocks; return their number. Raises `BadRecording`, `BadBlock`."""
    with (
        tempfile.TemporaryDirectory(prefix="foreblock-") as folder,
        Store(str(Path(folder) / "store"), write=True, sync=False) as store,
    ):
        chain = LearnedChain(store, state.anchor_header, config)
        for block_hash, answer in state.blocks.items():
            block = rebuild_block(answer)
            if block.hash != block_hash:
                raise BadRecording(name, 0, f"block {format_data(block_hash)} is another one")
            _run(state, chain, block, name)
    return len(state.blocks)


def _run(state: RecordedState, chain: LearnedChain, block: Block, name: str) -> None:
    for _ in range(ROUNDS):
        try:
            chain.add(block)
        except StateMissing as missing:
            try:
                _learn(state, chain.learned, StateKeys.of(missing.misses))
            except (UnknownNode, KeyError):
                number = block.header.number
                why = f"the state that block {number} needs is not all there"
                raise BadRecording(name, 0, why) from None
        else:
            return
    raise BadRecording(name, 0, f"block {block.header.number} needs more and more state")


def _learn(state: RecordedState, learned: FetchedState, wanted: StateKeys) -> None:
    """Learn what is wanted; raises `UnknownNode` or `KeyError` for what was not recorded."""
    anchor = state.anchor_header
    for address in wanted.accounts | wanted.slots.keys():
        account = prove_account(anchor.state_root, address, state.nodes)
        slots = [
            (slot, list(prove_slot(account.storage_root, slot, state.nodes)[1].nodes))
            for slot in sorted(wanted.slots.get(address, ()))
        ]
        learned.prove(anchor.state_root, address, list(account.nodes), slots)
    for code_hash in wanted.codes:
        learned.put_code(state.codes[code_hash])
    if wanted.blocks:
        hashes = _ancestors(state)
        for number in wanted.blocks:
            learned.put_block(number, hashes[number])


def _ancestors(state: RecordedState) -> dict[int, bytes]:
    """The hashes of blocks before the anchor, each named by its child."""
    header = state.anchor_header
    hashes = {header.number - 1: header.parent_hash}
    while (below := state.headers.get(header.parent_hash)) is not None:
        header = rebuild_header(below)
        hashes[header.number - 1] = header.parent_hash
    return hashes
