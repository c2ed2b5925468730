"""A chain of full blocks, written by the ledger itself: flashblocks of transfers and tokens."""

from pathlib import Path

from foreblock.sequencer.predeploys import TOKEN
from support.chains.paying_chain import PayingChain
from support.payloads.dev_state import BOB
from support.payloads.solidity import call_data

INDICES = 10
PER_INDEX = 200  # transactions, so 2,000 a block
WHO = 8  # accounts that pay in turn


def write_busy_chain(folder: Path, blocks: int) -> None:
    """Write this many sealed blocks of 2,000 transactions each, a fourth of them with a log."""
    chain = PayingChain(folder)
    transfer = call_data("transfer(address,uint256)", BOB, 1)
    chain.begin()
    for _ in range(blocks):
        for _ in range(INDICES):
            chain.extend(
                *[
                    chain.signed(TOKEN, 0, transfer, who=place % WHO, gas=80_000)
                    if place % 4 == 0
                    else chain.signed(BOB, 1, who=place % WHO, gas=21_000)
                    for place in range(PER_INDEX)
                ]
            )
            chain.ran.clear()
        chain.begin()
    chain.close()
