"""The start of a block: what happens to the state before its first transaction.

Two system contracts store facts about the block, as their EIPs say, and one OP fork puts
code into the state. Imported, followed, built and simulated blocks all start here. What a
block does after its transactions is in `execution`.
"""

from importlib import resources
from typing import Final

from foreblock._engine import Env, Header, Overlay
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules

BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")  # EIP-4788
HISTORY_STORAGE: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")  # EIP-2935
HISTORY_WINDOW: Final = 8191  # blocks whose hashes it has, in a ring of slots
# OP, forced into the state by Canyon's first block.
CREATE2_DEPLOYER: Final = bytes.fromhex("13b0d85ccb8bf860b6b79af3029fca081ae9bef2")


def start_calls(header: Header, rules: Rules) -> list[tuple[bytes, bytes]]:
    """The system calls of a block's start, in order: contract and input."""
    calls = []
    if header.parent_beacon_block_root is not None:
        calls.append((BEACON_ROOTS, header.parent_beacon_block_root))
    if rules.ethereum >= EthereumFork.PRAGUE:
        calls.append((HISTORY_STORAGE, header.parent_hash))
    return calls


def start_block(
    overlay: Overlay, env: Env, header: Header, rules: Rules, parent_rules: Rules
) -> None:
    """Apply the start of a block to its parent's state.

    A call does nothing where its contract has no code, and its outcome is ignored.
    """
    for contract, data in start_calls(header, rules):
        overlay.system_call(env, contract, data)
    canyon = OptimismFork.CANYON
    if rules.includes(canyon) and not parent_rules.includes(canyon):
        overlay.set(CREATE2_DEPLOYER, code=_create2_deployer_code())


def _create2_deployer_code() -> bytes:
    here = resources.files("foreblock.ledger.rules")
    text = here.joinpath("create2_deployer.hex").read_text("ascii")
    return bytes.fromhex(text)
