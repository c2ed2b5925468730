"""The writer of a dev chain under load, killed repeatedly, with clients throughout.

No pre-confirmed transaction is lost, no sealed block is altered, no client sees an older commit
after a newer one, and a started block is finished under the same payload id. At the end the whole
chain is executed again, every root verified.

`FOREBLOCK_DEV_KILLS` sets the number of kills; `make check NAME=crash` uses many.
"""

import os
import time
from contextlib import closing
from pathlib import Path
from random import Random

from crash.witness import Witness, watching
from foreblock._engine import Store
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings
from support.chains.dev_chain import sealed_blocks
from support.servers.asking import asker
from support.servers.dev_processes import SOLO, Dev, dev_chain
from support.servers.waiting import until

KILLS = int(os.environ.get("FOREBLOCK_DEV_KILLS", "3"))
SEED = os.environ.get("FOREBLOCK_SEED")
KILLS_OF_ONE = 4  # the delay before a restart doubles with each: then everything is restarted
SLOT = 0.2  # seconds; the last one ends LEEWAY before a whole second
LEEWAY = 0.075


def moment(random: Random) -> float:
    """The time of a kill: random, or while a flashblock is probably being committed."""
    now = time.time()
    if random.random() < 0.5:
        return now + random.random() * SLOT
    left = SLOT - (now + LEEWAY) % SLOT
    return now + left + random.random() * 0.02


def kill_writer(dev: Dev, witness: Witness, random: Random, killed: int) -> int:
    """Kill the writer after `killed` once it has made progress, or occasionally before."""
    before = witness.commit
    until(lambda: dev.pids("writer") not in ([], [killed]), "another writer")
    if random.random() < 0.8:
        until(lambda: witness.commit > before or witness.complaints, "a new commit")
    at = moment(random)
    while time.time() < at:
        os.sched_yield()
    return dev.kill("writer")


def verify(folder: Path, scratch: Path) -> int:
    """Execute all sealed blocks of a store on another one; return the number of transactions."""
    genesis = dev_genesis(ChainSettings())
    with Store(str(folder)) as store:
        blocks = sealed_blocks(store)
    with Store(str(scratch), write=True) as store:
        begin_chain(store, genesis)
        verified = Chain(store, genesis.profile)
        for block in blocks:
            verified.add(block)
        verified.close()
    return sum(len(block.transactions) for block in blocks)


def seen(witness: Witness) -> set[str]:
    """The transactions that were pending in blocks that are now sealed."""
    sealed = max(witness.sealed)
    blocks = list(witness.pending.items())
    return {each for block, them in blocks if block <= sealed for each in them}


def test_nothing_is_lost_however_often_the_writer_is_killed(tmp_path: Path) -> None:
    random, witness = Random(SEED), Witness()
    options = (f"--data={tmp_path / 'data'}", "--load=100", *SOLO)
    kills = killed = 0
    while kills < KILLS:
        with dev_chain(*options) as dev, watching(dev, witness):
            for _ in range(min(KILLS_OF_ONE, KILLS - kills)):
                killed = kill_writer(dev, witness, random, killed)
                kills += 1
            pending = max(witness.pending)
            # A delayed reader may see a later block sealed, and not this one.
            until(lambda: max(witness.sealed) >= pending or witness.complaints, "it is sealed")  # noqa: B023
            if kills == KILLS:
                until(lambda: len(seen(witness)) > 100 or witness.complaints, "load is seen")
    assert witness.complaints == []
    sealed = max(witness.sealed)
    assert {len(jobs) for jobs in witness.jobs.values()} == {1}, "a block was begun twice"

    opened = Ledger.open(str(tmp_path / "data" / "main"))
    with closing(opened) as ledger, asker(ledger) as client:
        chain = [client.ask("eth_getBlockByNumber", hex(it), False) for it in range(sealed + 1)]
    for number, block in witness.sealed.items():
        assert chain[number] == block
    in_blocks = {each for block in chain for each in block["transactions"]}
    assert seen(witness) <= in_blocks
    assert verify(tmp_path / "data" / "main", tmp_path / "scratch") >= len(in_blocks)
