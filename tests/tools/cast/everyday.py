"""cast in a shell: consecutive sends, calls, traces, logs, proofs, the pool.

send (--unlocked, --sync, --create), call (--trace), run, estimate, logs (--subscribe), proof,
storage, access-list, tx, receipt, block, tx-pool
"""

import os
import subprocess
from collections.abc import Iterable
from queue import Queue
from threading import Thread

from foundry import VARIABLES, cast, cast_json
from given import ACCOUNTS, NOBODY, OUT, TOKEN, WS_URL, Json, end, same, step

TRANSFER = "transfer(address,uint256)"
EVENT = "Transfer(address indexed,address indexed,uint256)"
us, unlocked, other, _ = ACCOUNTS
BY = ("--private-key", us.key)
PATIENCE = 30


def send(*arguments: str) -> Json:
    """The receipt of a successful transaction."""
    receipt = cast_json("send", "--json", *arguments)
    same(receipt["status"], "0x1")
    return receipt


def deploy() -> str:
    address: str = send(*BY, "--create", TOKEN["initCode"])["contractAddress"]
    return address


def balance(token: str) -> int:
    return int(cast("call", token, "balanceOf(address)(uint256)", NOBODY).split()[0])


def send_in_a_row(token: str) -> None:
    receipts.extend(send(*BY, token, TRANSFER, NOBODY, str(value)) for value in (1, 2))
    same(balance(token), 3)


def send_unlocked() -> None:
    before = int(cast("balance", NOBODY))
    send("--unlocked", "--from", unlocked.address, NOBODY, "--value", "1ether")
    same(int(cast("balance", NOBODY)) - before, 10**18)


def send_and_wait() -> None:
    receipt = send(*BY, "--sync", NOBODY, "--value", "1")
    block = cast_json("block", "--json", receipt["blockHash"])
    same(receipt["transactionHash"] in block["transactions"], True)


def run_again() -> None:
    said = cast("run", receipts[1]["transactionHash"])
    gas = int(receipts[1]["gasUsed"], 16)
    same(("Transaction successfully executed." in said, f"Gas used: {gas}" in said), (True, True))


def trace(token: str) -> None:
    said = cast("call", "--trace", "--from", us.address, token, TRANSFER, NOBODY, "1")
    same("Transaction successfully executed." in said, True)


def look_at(token: str) -> None:
    """Check a sent transaction and its effects."""
    hash_ = receipts[1]["transactionHash"]
    same(cast_json("tx", "--json", hash_)["hash"], hash_)
    same(cast("receipt", hash_, "gasUsed"), str(int(receipts[1]["gasUsed"], 16)))
    same(int(cast("estimate", "--from", us.address, token, TRANSFER, NOBODY, "1")) > 21000, True)
    same(cast("code", token), TOKEN["code"])
    slot = cast("index", "address", NOBODY, "0")
    same(int(cast("storage", token, slot), 16), 3)


def find_logs(token: str) -> None:
    first = str(int(receipts[0]["blockNumber"], 16))
    found = cast_json("logs", "--json", "--from-block", first, "--address", token, EVENT)
    same([int(each["data"], 16) for each in found], [1, 2])
    same(
        [each["transactionHash"] for each in found],
        [each["transactionHash"] for each in receipts],
    )


def follow_logs(token: str) -> None:
    hashes: Queue[str] = Queue()

    def read(lines: Iterable[str]) -> None:
        for line in lines:
            if "transactionHash:" in line:
                hashes.put(line.split()[1])

    with subprocess.Popen(
        ["cast", "logs", "--subscribe", "--address", token, "--rpc-url", WS_URL],  # noqa: S607
        stdout=subprocess.PIPE, text=True, env={**os.environ, **VARIABLES}, cwd=OUT,
    ) as following:  # fmt: skip
        assert following.stdout is not None
        Thread(target=read, args=(following.stdout,), daemon=True).start()
        sent: list[str] = []
        while hashes.empty() and len(sent) < PATIENCE:  # it does not report when it has subscribed
            sent.append(send(*BY, token, TRANSFER, NOBODY, "1")["transactionHash"])
        sent.append(send(*BY, token, TRANSFER, NOBODY, "1")["transactionHash"])
        seen: list[str] = []
        try:
            while sent[-1] not in seen:
                seen.append(hashes.get(timeout=PATIENCE))
        finally:
            following.terminate()
    same(seen, sent[-len(seen) :])


def prove(token: str) -> None:
    number = cast("block-number")
    found = cast_json("proof", "--block", number, token, *slots())
    same(sum(int(each["value"], 16) for each in found["storageProof"]), 1000)
    root = cast("block", number, "--field", "stateRoot")
    same(cast("keccak", found["accountProof"][0]), root)
    same(cast("codehash", token), cast("keccak", TOKEN["code"]))


def list_accesses(token: str) -> None:
    asked = ("access-list", "--json", "--from", us.address, token, TRANSFER, NOBODY, "1")
    (only,) = cast_json(*asked)["accessList"]
    same((only["address"], sorted(only["storageKeys"])), (token, sorted(slots())))


def slots() -> list[str]:
    return [cast("index", "address", each, "0") for each in (us.address, NOBODY)]


def look_at_the_pool() -> None:
    nonce = int(cast("nonce", other.address)) + 5
    told = ("--private-key", other.key, "--nonce", str(nonce), "--gas-limit", "21000")
    cast("send", "--async", *told, NOBODY)
    same(int(cast_json("tx-pool", "status")["queued"], 16), 1)
    queued = cast_json("tx-pool", "content")["queued"]
    same({sender.lower(): list(theirs) for sender, theirs in queued.items()},
         {other.address.lower(): [str(nonce)]})  # fmt: skip
    same("21000 gas" in cast("tx-pool", "inspect"), True)


receipts: list[Json] = []
token = deploy()
with step("send twice"):
    send_in_a_row(token)
with step("send --unlocked"):
    send_unlocked()
with step("send --sync"):
    send_and_wait()
with step("run"):
    run_again()
with step("call --trace"):
    trace(token)
with step("tx, receipt, estimate, code, storage"):
    look_at(token)
with step("logs"):
    find_logs(token)
with step("logs --subscribe"):
    follow_logs(token)
with step("proof"):
    prove(token)
with step("access-list"):
    list_accesses(token)
with step("tx-pool"):
    look_at_the_pool()
end()
