"""A feed of flashblocks with given numbers of transactions, at the rate of a real one.

The chain is built before the measurement, by the dev sequencer with a driven clock, so sending
costs next to nothing. Sizes alternate from index to index; index 0 holds only the deposit, as on
a public chain.

    python -m foreblock.bench.preconf.feeder FOLDER PORT BLOCKS SIZE...
"""

import asyncio
import itertools
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.bench.preconf.client_process import print_results, wait_to_begin
from foreblock.bench.preconf.clients import CHAIN_ID, sign_load
from foreblock.clock import SECOND_NS, DrivenClock
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import encode
from foreblock.feed.server import FeedServer
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE, genesis_text
from foreblock.ledger.storage.dev_rows import DevState
from foreblock.ledger.storage.open_store import open_to_write
from foreblock.sequencer.dev_genesis import DEFAULT_TIMESTAMP, dev_genesis
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.load import Load
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.sequencer.sequencer import Sequencer
from foreblock.service.log_output import configure
from foreblock.service.running import HOST
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock, Transaction

ACCOUNTS: Final = 20
LINGER_SECONDS: Final = 1.0  # after the last message
LOOK_SECONDS: Final = 0.005  # between two checks for clients
MILLISECOND_NS: Final = 10**6


class Timed(NamedTuple):
    """A flashblock and its time after the first."""

    after_ns: int
    flashblock: Flashblock


def build(folder: Path, blocks: int, sizes: Sequence[int]) -> list[Timed]:
    """The flashblocks of a chain; its genesis is written to the folder."""
    chain = ChainSettings(accounts=ACCOUNTS)
    genesis = dev_genesis(chain)
    with open_to_write(str(folder), genesis) as store:
        (folder / GENESIS_FILE).write_bytes(genesis_text(genesis))
        clock, timed = DrivenClock(DEFAULT_TIMESTAMP * SECOND_NS, 0), list[Timed]()

        def publish(flashblock: Flashblock) -> None:
            timed.append(Timed(clock.monotonic_ns(), flashblock))

        writer = LedgerWriter(store, clock)
        sequencer = Sequencer(writer, clock, chain, DevState(bytes(32)), FeedSink(publish))
        slots = blocks * round(chain.block_time * SECOND_NS) // (chain.interval_ms * MILLISECOND_NS)
        counts = list(itertools.islice(itertools.cycle(sizes), slots))
        waiting = iter(_transactions(sum(counts)))
        for count in counts:
            for transaction in itertools.islice(waiting, count):
                sequencer.submit(transaction)
            _run(sequencer, clock, chain.interval_ms * MILLISECOND_NS)
        writer.close()
    return timed


def _transactions(count: int) -> Iterator[Transaction]:
    load = Load(count, dev_accounts(TEST_MNEMONIC, ACCOUNTS), CHAIN_ID)
    return iter(sign_load(load, count, count))


def _run(sequencer: Sequencer, clock: DrivenClock, span_ns: int) -> None:
    """Advance the clock and run what is due."""
    end = clock.monotonic_ns() + span_ns
    while (due := sequencer.next_due_ns) <= end:
        clock.advance(max(due - clock.monotonic_ns(), 0))
        sequencer.tick()
    clock.advance(end - clock.monotonic_ns())


async def _serve(port: int, timed: Sequence[Timed]) -> list[tuple[int, ...]]:
    """Send each flashblock at its time; return the time, position and size of each."""
    messages = [(each, encode(each.flashblock)) for each in timed]
    server, loop = FeedServer(FeedServerOptions(resumable=False)), asyncio.get_running_loop()
    await server.start(socket.create_server((HOST, port)))
    await loop.run_in_executor(None, wait_to_begin)
    while not server.clients:  # noqa: ASYNC110, clients set no event
        await asyncio.sleep(LOOK_SECONDS)
    begun, sent = loop.time(), list[tuple[int, ...]]()
    for (after_ns, flashblock), message in messages:
        await asyncio.sleep(max(0.0, begun + after_ns / SECOND_NS - loop.time()))
        at_ns = time.monotonic_ns()
        server.publish_bytes(message)
        count = len(flashblock.diff.transactions)
        sent.append((at_ns, flashblock.block_number, flashblock.index, count))
    await asyncio.sleep(LINGER_SECONDS)
    await server.stop()
    return sent


def main() -> None:
    """Print time, block, index and number of transactions of each flashblock that was sent."""
    configure("error")
    folder, port, blocks, *sizes = sys.argv[1:]
    timed = build(Path(folder), int(blocks), list(map(int, sizes)))
    print_results(asyncio.run(_serve(int(port), timed)))


if __name__ == "__main__":
    main()
