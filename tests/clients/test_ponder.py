"""ponder, an indexer, on a chain of `foreblock dev`: one contract from the first block on.

`make clients` installs it and runs this. The chain replaces blocks while ponder follows it, so
indexed transfers move to other blocks; in the end ponder must agree with the chain.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foreblock._engine import Message, sign_transaction
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.client_libraries import HERE, environment, program_of
from support.servers.dev_processes import Network, dev_chain
from support.servers.waiting import PATIENCE, until

TOKEN = json.loads((HERE / "token.json").read_text("utf-8"))
TRANSFER = bytes.fromhex("a9059cbb")
TO = b"\x44" * 20
GWEI = 10**9
REORGS = ("--faults=reorg=0.2", "--seed=2750")  # with this seed, 5 to 13 blocks apart

Row = dict[str, str]


class Sender:
    """A development account that deploys a token and transfers units of it."""

    def __init__(self, network: Network) -> None:
        self.network = network
        (self.account,) = dev_accounts(TEST_MNEMONIC, 1)
        self.nonce = 0
        created = self._sealed(self._send(None, bytes.fromhex(TOKEN["initCode"][2:])))
        self.token: str = created["contractAddress"]

    def transfer(self, value: int) -> str:
        """The hash of a transfer, whose block is sealed."""
        data = TRANSFER + TO.rjust(32, b"\0") + value.to_bytes(32)
        sent = self._send(bytes.fromhex(self.token[2:]), data)
        self._sealed(sent)
        return sent

    def _send(self, to: bytes | None, data: bytes) -> str:
        message = Message(
            sender=self.account.address, to=to, value=0, data=data, gas=1_000_000,
            max_fee_per_gas=100 * GWEI, max_priority_fee_per_gas=GWEI,
        )  # fmt: skip
        signed = sign_transaction(message, 2, 31337, self.nonce, self.account.secret)
        self.nonce += 1
        sent: str = self.network.ask("eth_sendRawTransaction", "0x" + signed.raw.hex())
        return sent

    def _sealed(self, sent: str) -> Any:  # noqa: ANN401, it is JSON
        def receipt() -> Any:  # noqa: ANN401, it is JSON
            found = self.network.ask("eth_getTransactionReceipt", sent)
            is_sealed = found and int(found["blockNumber"], 16) <= self.network.latest()
            return found if is_sealed else None

        return until(receipt, "a transaction is in a sealed block")


def transfers(network: Network, token: str) -> list[Row]:
    """The transfers of the chain in ponder's form."""
    wanted = {"address": token, "fromBlock": "0x0", "toBlock": "latest"}
    logs = network.ask("eth_getLogs", wanted)
    blocks = [(int(each["blockNumber"], 16), int(each["data"], 16)) for each in logs]
    return [
        {
            "hash": each["transactionHash"],
            "blockHash": each["blockHash"],
            "block": str(block),
            "value": str(value),
            "balance": str(sum(moved for then, moved in blocks if then <= block)),
        }
        for each, (block, value) in zip(logs, blocks, strict=True)
    ]


@contextmanager
def ponder(folder: Path, url: str, token: str) -> Iterator[str]:
    """ponder in a folder outside of the checkout; yields its address."""
    program = program_of("ponder")
    shutil.copytree(HERE / "ponder", folder, dirs_exist_ok=True)
    for name in ("token.json", "package.json"):
        shutil.copy(HERE / name, folder)
    (folder / "node_modules").symlink_to(HERE / "node_modules")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with (folder / "log").open("w") as log, subprocess.Popen(
        [program, "start", "--schema=clients", "--hostname=127.0.0.1", f"--port={port}"],
        cwd=folder, stdout=log, stderr=subprocess.STDOUT,
        env=environment(URL=url, TOKEN=token, START="0", PONDER_TELEMETRY_DISABLED="1"),
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def shown(address: str) -> list[Row]:
    """The transfers shown by ponder; None while it starts."""
    try:
        with urllib.request.urlopen(address + "/transfers", timeout=PATIENCE) as answer:  # noqa: S310
            rows: list[Row] = json.load(answer)
            return rows
    except OSError:
        return []


def places(rows: list[Row]) -> dict[str, str]:
    """The block of each transfer."""
    return {row["hash"]: row["blockHash"] for row in rows}


def test_ponder_indexes_a_contract_through_reorgs(tmp_path: Path) -> None:
    program_of("ponder")
    with dev_chain("--test-listen=", *REORGS) as dev:
        sender = Sender(dev.main)
        sent = [sender.transfer(1)]
        with ponder(tmp_path, dev.main.url + "/eth", sender.token) as address:
            until(lambda: sent[0] in places(shown(address)), "ponder has indexed a transfer")
            before: dict[str, str] = {}

            def moved() -> bool:
                """Return whether an indexed transfer has moved to another block."""
                sent.append(sender.transfer(len(sent) + 1))
                now = places(shown(address))
                found = any(now.get(each, place) != place for each, place in before.items())
                before.update(now)
                return found

            def complete() -> bool:
                chain = transfers(dev.main, sender.token)
                return len(chain) == len(sent) and shown(address) == chain

            until(moved, "ponder has followed a reorg")
            until(complete, "ponder shows what the chain has")
