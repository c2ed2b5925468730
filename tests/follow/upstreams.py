"""Upstreams in separate processes: geth over a chain, anvil.

Each yields its URL while it serves. Missing programs and data skip a test with a reason; outside of
tests the same reason ends the run.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from differential.geth import geth
from foreblock.bench.rpc.peers import find
from support.servers.dev_processes import RpcError, exchange
from support.servers.like_anvil import CHECKOUT, anvil, running

NO_GETH = "geth is not installed; bench/peers.sh installs it"


def geth_program() -> Path:
    """Return geth's path; skip the test if it is not installed."""
    program = find("geth", CHECKOUT / "build" / "peers")
    if program is None:
        pytest.skip(NO_GETH)
    return Path(program)


@contextmanager
def geth_upstream(files: Path, folder: Path) -> Iterator[str]:
    """geth over a chain in a folder with `genesis.json` and `chain.rlp`, with all its states."""
    with geth(str(geth_program()), files, folder, names_heads=True) as url:
        yield url


@contextmanager
def anvil_upstream(*flags: str) -> Iterator[str]:
    """anvil with its own chain, or with a fork of another one (`--fork-url URL`)."""
    with running(anvil(*flags)) as found:
        yield f"http://{found.addresses[0]}"


def ask(url: str, method: str, *params: object) -> Any:  # noqa: ANN401, JSON
    """The result of one request; `RpcError` for an error."""
    (answer,) = ask_all(url, [(method, params)])
    if "error" in answer:
        raise RpcError(answer["error"])
    return answer["result"]


def ask_all(url: str, requests: Sequence[tuple[str, Sequence[object]]]) -> list[dict[str, Any]]:
    """The responses to a batch, in the order of its requests."""
    body = [
        {"jsonrpc": "2.0", "id": at, "method": method, "params": list(params)}
        for at, (method, params) in enumerate(requests)
    ]
    host, _, path = url.removeprefix("http://").partition("/")
    answers: list[dict[str, Any]] = json.loads(exchange(host, f"/{path}", json.dumps(body)).body)
    return sorted(answers, key=lambda each: int(each["id"]))
