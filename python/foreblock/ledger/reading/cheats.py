"""Where the state of `latest` is read on a dev chain whose users have set accounts by hand.

Tests set a balance and expect to see it at `latest`, though no block is mined. So the state of
`latest` is that of the newest index of the block in progress that holds nothing but what every
block begins with, and cheats. A number or a hash means the sealed state all the same. If a clock
seals blocks and flashblocks are shown, the seal brings the cheats to `latest`.
"""

from foreblock._engine import View
from foreblock.ledger.reading.blocks import KnownBlocks
from foreblock.ledger.storage.dev_rows import read_dev_state


def read_through(view: View, pending: int, blocks: KnownBlocks) -> int | None:
    """The partial at which the state of `latest` is read, if it is not its own."""
    state = read_dev_state(view)
    if state is None or not state.is_cheated:
        return None
    if state.mining == "clock" and not state.shows_sealed:
        return None
    partials = blocks.partial(view, pending).made_of
    begun = blocks.partial(view, partials[0]).header.transactions_root
    # Those without further transactions come first, and most often are all.
    low, high = 0, len(partials) - 1
    while low < high:
        middle = (low + high + 1) // 2 if high - low < len(partials) - 1 else high
        if blocks.partial(view, partials[middle]).header.transactions_root == begun:
            low = middle
        else:
            high = middle - 1
    return partials[low]
