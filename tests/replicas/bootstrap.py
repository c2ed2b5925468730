"""An empty replica beside a store of 1 GB (7): it copies the store, and gives the same responses.

The chain is older than its log, so the stream lacks part of the replica's data. Clients switch
between nodes meanwhile; from the replica's first response on they must see the same blocks.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import lmdb

from foreblock._engine import keccak256
from replicas.damage import HERE
from replicas.fleet import fleet, writer, writing
from replicas.node import NAME, Node
from replicas.stopped import judge_fleet
from replicas.wanderer import Wanderers
from support.servers.nats_servers import free_port

Say = Callable[[str], None]
SIZE = 1 << 30
CODE = 24_576  # bytes of the longest code
MAP_SIZE = 8 << 30
BOUND = 10.0  # seconds


def run_bootstrap(folder: Path, say: Say, size: int = SIZE) -> list[str]:
    """From the start of the command to the first response."""
    _begin_without_log(folder, size)
    port = free_port()
    options = ("--load=100", f"--snapshot-listen=127.0.0.1:{port}")
    fetching = f"--snapshot-from=http://127.0.0.1:{port}"
    with (
        fleet(folder, HERE, *options, copies=1, replicas=0, standby=False) as made,
        Wanderers(lambda: made.nodes, 2, 0).wandering() as seen,
        ExitStack() as opened,
    ):
        node = made.add_replica(HERE[0], folder, fetching)
        opened.callback(node.kill)
        began = time.monotonic()
        node.start()
        node.wait()
        took, first = time.monotonic() - began, node.commit()
        node.wait(commit=writing(made).commit() + 10)
        say(f"{size / 1e9:.2f} GB: first response {took:.1f} s after the start, commit {first}")
        wrong, told = judge_fleet(made, seen)
        say(told)
    return wrong if took <= BOUND else [*wrong, f"it took {took:.1f} s (bound {BOUND:g})"]


def _begin_without_log(folder: Path, size: int) -> None:
    """Begin a chain in the writer's folder without a log, with codes of this size beside it."""
    options = [each for each in writer([], 1) if not each.startswith("--log")]
    node = Node("writer0", HERE[0], folder / "writer0", options)
    node.start()
    node.wait(commit=20)
    node.stop()
    with lmdb.open(str(folder / "writer0" / "data" / NAME), map_size=MAP_SIZE, max_dbs=32) as store:
        codes = store.open_db(b"codes", create=False)
        with store.begin(write=True) as writing_codes:
            for _ in range(size // CODE):
                code = secrets.token_bytes(CODE)
                writing_codes.put(keccak256(code), code, db=codes)
