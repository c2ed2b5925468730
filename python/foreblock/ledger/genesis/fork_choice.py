"""The fork choice that comes with a published chain: its head, safe and finalized blocks.

The file holds one `engine_forkchoiceUpdated` request as a consensus client would send it.
"""

from dataclasses import dataclass

from foreblock.errors import BadForkChoice
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.primitives import ZERO_HASH


@dataclass(frozen=True, slots=True)
class ForkChoice:
    """Three block hashes; zeros in the file mean none."""

    head: bytes
    safe: bytes | None
    finalized: bytes | None


def read_fork_choice(text: bytes) -> ForkChoice:
    """The fork choice in this JSON text, or `BadForkChoice`."""
    root = JsonValue.parse(text, BadForkChoice)
    method = root.need("method")
    if not str(method.value).startswith("engine_forkchoiceUpdatedV"):
        method.refuse("expected engine_forkchoiceUpdatedV…")
    state = root.need("params").at(0)
    return ForkChoice(
        head=state.need("headBlockHash").hash(),
        safe=_unless_zero(state.need("safeBlockHash").hash()),
        finalized=_unless_zero(state.need("finalizedBlockHash").hash()),
    )


def _unless_zero(block_hash: bytes) -> bytes | None:
    return None if block_hash == ZERO_HASH else block_hash
