"""Chains of one process: equal by their seed, apart from each other, and gone when they end."""

import asyncio
import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from foreblock import DevChain
from support.each_case import each_case

BOB = b"\xb0" * 20
PROGRAM = """
from foreblock import DevChain
with DevChain(seed=7) as chain:
    for value in (1, 2, 3):
        chain.send({bob!r}, value=value)
    chain.advance(60)
    print(chain.seal().hash)
"""


def last_hash(seed: int, rules: str = "optimism", fork: str = "newest") -> bytes:
    with DevChain(rules, fork, seed=seed) as chain:  # type: ignore[arg-type]
        for value in (1, 2, 3):
            chain.send(BOB, value=value)
        chain.advance(60)
        return chain.seal().hash or b""


def test_equal_seeds_give_equal_chains_in_every_process() -> None:
    program = [sys.executable, "-c", PROGRAM.format(bob=BOB)]
    other = subprocess.run(program, capture_output=True, text=True, check=True)
    assert other.stdout == f"0x{last_hash(7).hex()}\n"
    assert other.stderr == ""
    assert last_hash(8) != last_hash(7)


def test_a_branch_does_not_change_what_follows() -> None:
    with DevChain() as chain:
        with chain.snapshot():
            chain.send(BOB, value=9)
        chain.send(BOB, value=1)
        first = chain.block().hash
    with DevChain() as chain:
        chain.send(BOB, value=1)
        assert chain.block().hash == first


def test_equal_seeds_give_equal_faults() -> None:
    def hashes(seed: int, faults: tuple[str, ...]) -> list[bytes | None]:
        with DevChain(mode="clock", seed=seed, faults=faults) as chain:
            found: list[bytes | None] = []
            for _ in range(12):
                chain.send(BOB, value=1)
                chain.advance(2)
                found.append(chain.block().hash)
            return found

    faults = ("tail=0.3", "reorg=0.3")
    assert hashes(1, faults) == hashes(1, faults)
    assert hashes(1, faults) != hashes(1, ())


FORKS = [
    *(("ethereum", fork) for fork in ("paris", "shanghai", "cancun", "prague", "osaka")),
    *(("optimism", fork) for fork in ("bedrock", "canyon", "ecotone", "isthmus", "karst")),
]


@each_case("rules, fork", FORKS)
def test_every_fork_has_blocks(rules: str, fork: str) -> None:
    with DevChain(rules, fork) as chain:  # type: ignore[arg-type]
        chain.send(BOB, value=5)
        with chain.snapshot():
            chain.seal(3)
        assert (chain.balance(BOB), chain.block().number) == (5, 1)


def test_a_chain_takes_no_thread_and_leaves_no_file() -> None:
    with DevChain() as loading:  # what is loaded once
        loading.follow()
    del loading
    gc.collect()
    threads, before = threading.active_count(), open_files()
    for _ in range(3):
        chain = DevChain()
        chain.rpc("foreblock_closeFlashblock")  # waits in a loop
        chain.follow()
        own = [each for each in open_files() if each not in before]
        assert threading.active_count() == threads
        assert {each.partition(":")[0] for each in own} & {"socket", "pipe"} == set()
        folders = {Path(each).parent for each in own if each.endswith(".mdb")}
        assert len(folders) == 2, "of the chain and of its follower"
        del chain  # without being closed
        gc.collect()
        assert not any(each.exists() for each in folders)
    assert open_files() == before


def open_files() -> list[str]:
    """The files that this process has open."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the one that lists them
            found.append(str(each.readlink()))
    return sorted(found)


def test_two_threads_do_not_disturb_each_other() -> None:
    with ThreadPoolExecutor(2) as pool:
        hashes = list(pool.map(last_hash, (7, 7, 8, 8)))
    assert hashes == [last_hash(7)] * 2 + [last_hash(8)] * 2


def test_one_chain_serves_two_threads() -> None:
    with DevChain() as chain, ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(chain.send, BOB, value=1) for _ in range(20)]:
            done.result()
        assert (chain.balance(BOB), chain.block().number) == (20, 20)


def test_it_works_within_a_running_loop() -> None:
    async def test() -> None:
        task = asyncio.current_task()
        with DevChain("ethereum", mode="manual") as chain:
            chain.rpc("foreblock_closeFlashblock")
            chain.send(BOB, value=1)
            chain.rpc("eth_getTransactionByHash", f"0x{'00' * 32}")
            chain.seal()
            assert chain.balance(BOB) == 1
        assert asyncio.current_task() is task
        await asyncio.sleep(0)

    asyncio.run(test())


def test_memory_does_not_grow_while_tests_are_reverted() -> None:
    """Of blocks that were abandoned the newest are kept, up to a bound."""
    with DevChain("ethereum") as chain:
        sizes = []
        for returns in (170, 60):
            for _ in range(returns):
                with chain.snapshot():
                    chain.seal(40)
            sizes.append(chain.store_bytes)
    assert sizes[1] <= sizes[0] * 1.05, sizes


@pytest.mark.heavy
def test_a_thousand_chains_leave_nothing_behind() -> None:
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text("ascii").split()[1])

    for _ in range(200):
        last_hash(1)
    before = resident()
    for _ in range(800):
        last_hash(1)
    # What the allocator keeps varies by 3 MiB; 800 chains that stayed would have far more.
    assert (resident() - before) * 4096 < 5 << 20
