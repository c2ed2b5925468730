"""The limits on samples of a long run. Values in, sentences out."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from foreblock.ledger.storage.upkeep import PRUNE_HEIGHTS
from soak.life import KEEP_STATES, Sample

KEEP_PARTIALS: Final = 64  # blocks, the writer's default
BEHIND: Final = 3 + PRUNE_HEIGHTS  # blocks that pruning may lag
GATHERED: Final = 3  # blocks that may wait for the store's maintenance, under load
INDICES: Final = 11  # flashblocks of a block
# blocks after which partial blocks and trie nodes are removed as fast as they are added
WARM_UP: Final = 200
FULL: Final = 300  # blocks after which all data with a retention limit is full
MEMORY_MIB: Final = 8.0  # more than this is growth, for any length of the run
OBJECTS: Final = 1.05
# between the intervals with the largest and the smallest growth of the store per transaction
GROWTH_RATIO: Final = 1.25
PLATEAU: Final = 1.1  # of pages with temporarily kept data, once all of it is there
FREE_BYTES: Final = 16 << 20  # of the file; freed pages are reused


def findings(samples: Sequence[Sample]) -> Iterator[str]:
    """Return the violations; a short run shows fewer than a long one."""
    for sample in samples:
        yield from _pruned(sample)
        if sample.file_bytes > sample.store_bytes + FREE_BYTES:
            yield f"of {sample.file_bytes} bytes of the file, {sample.store_bytes} are in use"
    steady = [sample for sample in samples if sample.block >= WARM_UP]
    if len(steady) < 3:
        return
    first, *_, last = steady
    if last.memory_mib - first.memory_mib > MEMORY_MIB:
        yield f"memory grew from {first.memory_mib:.1f} to {last.memory_mib:.1f} MiB"
    full = [sample.objects for sample in samples if sample.block >= FULL]
    if full and full[-1] > full[0] * OBJECTS:
        yield f"objects grew from {full[0]} to {full[-1]}"
    past = [sample.pages_of_past for sample in samples if sample.block >= FULL]
    if past and past[-1] > past[0] * PLATEAU:
        yield f"data of limited retention grew from {past[0]} to {past[-1]} pages"
    steps = [growth(*pair) for pair in itertools.pairwise(samples) if pair[0].block >= FULL]
    if steps and max(steps) > GROWTH_RATIO * min(steps):
        yield f"the store grew by {min(steps):.0f} to {max(steps):.0f} bytes per transaction"


def growth(before: Sample, after: Sample) -> float:
    """Bytes of the store per transaction between two samples."""
    grown = after.store_bytes - before.store_bytes
    return grown / (after.transactions - before.transactions)


def _pruned(sample: Sample) -> Iterator[str]:
    oldest = sample.block - KEEP_PARTIALS - BEHIND
    if sample.earliest < sample.block - KEEP_STATES - GATHERED:
        yield f"at block {sample.block}, block {sample.earliest} still has a state"
    for what, block in (
        ("places", sample.oldest_place),
        ("rows of partials", sample.oldest_row),
        ("partials", sample.oldest_partial),
    ):
        if block < oldest:
            yield f"at block {sample.block}, block {block} still has {what}"
    most = sample.block + 1 + (KEEP_PARTIALS + BEHIND + 1) * INDICES
    if sample.hash_rows > most:
        yield f"at block {sample.block}, {sample.hash_rows} hashes are known, {most} at most should"
