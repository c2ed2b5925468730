"""Malicious feeds, each as fast as it is read, in a separate process.

The query of the address selects the kind: `ws://127.0.0.1:PORT/?noise=`, since logs keep its names.
"""

import json
import logging
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

import brotli  # type: ignore[import-untyped]
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

MEGABYTE = 10**6
DEEP = b'{"diff":' * 50_000
HASH = "0x" + "5a" * 32


def noise(connection: ServerConnection) -> None:
    """Random bytes."""
    while True:
        connection.send(os.urandom(2_000))


def truncated(connection: ServerConnection) -> None:
    """Truncated flashblocks, as text and as brotli."""
    whole = _flashblock(1, 0).encode()
    compressed = brotli.compress(whole)
    while True:
        connection.send(whole[: random.randrange(len(whole))].decode())
        connection.send(compressed[: random.randrange(len(compressed))])


def bombs(connection: ServerConnection) -> None:
    """Small messages that expand."""
    # A few hundred bytes that expand to 256 megabytes.
    blank = brotli.compress(b" " * (256 * MEGABYTE), quality=1)
    # As many transactions as fit into a message of the maximum size.
    crowd = brotli.compress(
        b'{"payload_id":"0x0102030405060708","index":1,"metadata":{"block_number":1},"diff":'
        b'{"transactions":[' + b",".join([b'"0x00"'] * 2_000_000) + b"]}}",
        quality=1,
    )
    while True:
        connection.send(blank)
        connection.send(crowd)
        connection.send(DEEP)


def absurd(connection: ServerConnection) -> None:
    """Numbers of no real chain."""
    numbers = (0, 1, 2**63, 2**64 - 1, 2**64, 10**40, -1, 1e300)
    while True:
        number, index = random.choice(numbers), random.choice(numbers)
        connection.send(_flashblock(number, index, gas=hex(random.getrandbits(300))))


def plausible(connection: ServerConnection) -> None:
    """Plausible flashblocks, each of another job, on unknown parents."""
    while True:
        connection.send(_flashblock(random.randrange(1, 9), random.choice((0, 1, 5))))


def huge(connection: ServerConnection) -> None:
    """Messages of 100 megabytes."""
    while True:
        connection.send(bytes(100 * MEGABYTE))


def endless(connection: ServerConnection) -> None:
    """An endless message, in pieces."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield b"x" * 1_000

    connection.send(pieces())


def silent(connection: ServerConnection) -> None:
    """Nothing."""
    for _ in connection:
        pass


def slamming(connection: ServerConnection) -> None:
    """An immediate close."""
    connection.close()


def pongs(connection: ServerConnection) -> None:
    """Unsolicited pongs, as short as possible."""
    _send_frames(connection, b"\x8a\x00" * 20_000)


def pings(connection: ServerConnection) -> None:
    """Pings that have to be answered, as long as possible."""
    _send_frames(connection, (b"\x89\x7d" + b"x" * 125) * 2_000)


def blanks(connection: ServerConnection) -> None:
    """Empty messages."""
    _send_frames(connection, b"\x81\x00" * 20_000)


def frameless(connection: ServerConnection) -> None:
    """Bytes that are not frames."""
    _send_frames(connection, b"\xff" * 100_000)


KINDS: dict[str, Callable[[ServerConnection], None]] = {
    each.__name__: each
    for each in (
        noise, truncated, bombs, absurd, plausible, huge, endless, silent, slamming,
        pongs, pings, blanks, frameless,
    )
}  # fmt: skip


def _send_frames(connection: ServerConnection, frames: bytes) -> None:
    with suppress(OSError):
        while True:
            connection.socket.sendall(frames)


def _flashblock(number: float, index: float, gas: str = "0x5208") -> str:
    base = {
        "parent_hash": f"0x{os.urandom(32).hex()}", "parent_beacon_block_root": HASH,
        "prev_randao": HASH, "fee_recipient": "0x" + "00" * 20, "gas_limit": "0x3938700",
        "block_number": hex(number) if isinstance(number, int) and number >= 0 else number,
        "timestamp": "0x65", "extra_data": "0x", "base_fee_per_gas": gas,
    }  # fmt: skip
    diff = {
        "state_root": HASH, "receipts_root": HASH, "logs_bloom": "0x" + "00" * 256,
        "gas_used": gas, "block_hash": f"0x{os.urandom(32).hex()}", "withdrawals": [],
        "withdrawals_root": HASH, "transactions": [f"0x02{os.urandom(100).hex()}"] * 20,
    }  # fmt: skip
    message = {
        "payload_id": f"0x{os.urandom(8).hex()}", "index": index, "diff": diff,
        "metadata": {"block_number": number},
    }  # fmt: skip
    return json.dumps(message | ({"base": base} if index == 0 else {}))


def _serve_client(connection: ServerConnection) -> None:
    assert connection.request is not None
    with suppress(ConnectionClosed):
        KINDS[connection.request.path.strip("/?=")](connection)


def _serve(told: Connection) -> None:
    logging.disable()  # the behaviour of clients is not of interest here
    with serve(_serve_client, "127.0.0.1", 0, compression=None, max_size=None) as server:
        told.send(server.socket.getsockname()[1])
        server.serve_forever()


@contextmanager
def poison() -> Iterator[dict[str, str]]:
    """The addresses, by kind."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        port = here.recv()
        yield {kind: f"ws://127.0.0.1:{port}/?{kind}=" for kind in KINDS}
    finally:
        process.kill()
        process.join()
