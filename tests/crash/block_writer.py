"""A process that writes a deterministic chain, index by index, until it is killed.

Run as `python -m crash.block_writer FOLDER`. It continues from the state of the store. After each
commit it prints a line with the index and its hash. The contents of an index depend only on its
position; work behind the head is random.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from foreblock._engine import Transaction
from foreblock.types import Flashblock
from support.chains.writing import FACTORY, MAKES_MORTAL, MORTAL, PASSER, SCRIBE, Chain

INDICES = 4


def next_index(chain: Chain) -> Flashblock:
    """The index that follows the committed ones."""
    if not chain.block.partials:
        return chain.add(chain.deposit(mint=10**18))
    if chain.block.index == INDICES:
        return chain.seal(chain.deposit(PASSER, data=chain.block.number.to_bytes(32) * 2))
    for transaction in transactions(chain, chain.block.number, chain.block.index):
        chain.block.run([transaction])
    return chain.add()


def transactions(chain: Chain, block: int, index: int) -> Iterator[Transaction]:
    """Each is made after the previous ones have been executed."""
    random = Random(f"{block}.{index}")
    for _ in range(random.randrange(4)):
        who = random.randrange(3)
        match random.randrange(5):
            case 0:
                yield chain.signed(who, value=random.randrange(5))
            case 1:
                yield chain.write(SCRIBE, random.randrange(8), random.randrange(3), who)
            case 2:
                yield chain.write(MORTAL, random.randrange(8), random.randrange(3), who)
            case 3:
                yield chain.signed(who, FACTORY, 0, MAKES_MORTAL)
            case _:
                yield chain.signed(who, MORTAL, 0)


def main(folder: Path) -> None:
    chain, random = Chain(folder, keep_partials=2), Random()
    while True:
        flashblock = next_index(chain)
        place = f"{flashblock.block_number}.{flashblock.index}"
        sys.stdout.write(f"{place} {flashblock.diff.block_hash.hex()}\n")
        sys.stdout.flush()
        for _ in range(random.choice([0, 0, 1, 5])):
            chain.writer.follow_up()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
