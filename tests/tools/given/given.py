"""The environment of a flow in Python: a chain, its accounts, a token, and step reporting.

The runner sets the variables that are read here (run.py in the parent folder). It imports the
standard library only, because every family has a separate environment.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

Json = Any

RPC_URL = os.environ["RPC_URL"]
WS_URL = os.environ["WS_URL"]
TARGET = os.environ["TARGET"]  # like-anvil, eth or anvil
CHAIN_ID = int(os.environ["CHAIN_ID"])
OUT = Path(os.environ["OUT"])  # a folder of this run alone
CLIENTS = Path(__file__).resolve().parents[2] / "clients"
TOKEN: Json = json.loads((CLIENTS / "token.json").read_text("utf-8"))
NOBODY = "0x" + "44" * 20
ETHER = 10**18
LONGEST = 500  # characters of a reason
_failures: list[str] = []


class Account(NamedTuple):
    """An account of the default mnemonic of development chains."""

    address: str
    key: str


ACCOUNTS = (
    Account(
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    ),
    Account(
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    ),
    Account(
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
        "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    ),
    Account(
        "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
        "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    ),
)


def ok(step: str) -> None:
    """Report a successful step."""
    sys.stdout.write(f"ok {step}\n")
    sys.stdout.flush()


def failed(step: str, why: object) -> None:
    """Report a failed step; the others continue."""
    said = " ".join(str(why).split()) or type(why).__name__
    shown = said if len(said) <= LONGEST else f"{said[: LONGEST // 2]} … {said[-LONGEST // 2 :]}"
    sys.stdout.write(f"failed {step}: {shown}\n")
    sys.stdout.flush()
    _failures.append(step)


@contextmanager
def step(name: str) -> Iterator[None]:
    """A reported step; an error in it ends only this step."""
    try:
        yield
    except Exception as error:  # noqa: BLE001, it is what tools raise
        failed(name, error)
    else:
        ok(name)


def end() -> None:
    """The end of a flow."""
    sys.exit(bool(_failures))


def same(found: object, expected: object) -> None:
    """Fail with both values if they differ."""
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def ask(method: str, *params: Json) -> Json:
    """The result of a JSON-RPC request, made without a tool."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    asked = urllib.request.Request(  # noqa: S310, it is the chain of this run
        RPC_URL, json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answered:  # noqa: S310
        reply = json.loads(answered.read())
    if "error" in reply:
        raise RuntimeError(f"{method}: {reply['error']}")
    return reply["result"]


def seal_at_once() -> None:
    """Let transactions seal blocks: tests with cheats read their effect at `latest`."""
    if TARGET == "eth":
        ask("evm_setAutomine", True)


def run(
    command: Sequence[str | Path], variables: Mapping[str, str] | None = None, cwd: Path = OUT
) -> str:
    """Return a command's output; on failure, show its messages."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, **(variables or {})},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{done.stdout}{done.stderr}")
    return done.stdout
