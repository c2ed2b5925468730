"""forge: consecutive contract creations, scripts of eight transactions, tests on a fork of the
chain.

create, create --unlocked, script --broadcast (--slow, --unlocked, --resume), test --fork-url
"""

import json
import shutil
from pathlib import Path

from foundry import cast, cast_json, forge
from given import ACCOUNTS, CLIENTS, NOBODY, OUT, RPC_URL, Account, Json, end, same, step

PROJECT = OUT / "project"
SCRIPT = ("script", "script/Eight.s.sol", "--sig", "run(address,bytes32)", NOBODY)
CONTRACT = "src/Token.sol:Token"
creator, scripter, unlocked, sender = ACCOUNTS


def lay_out() -> None:
    """A project outside of the checkout, for forge's artifacts."""
    shutil.copytree(Path(__file__).with_name("project"), PROJECT)
    (PROJECT / "src").mkdir()
    shutil.copy(CLIENTS / "Token.sol", PROJECT / "src")
    settings = PROJECT / "foundry.toml"
    compiler = Path(__file__).resolve().parents[1] / "given" / "solc.mjs"
    settings.write_text(f'{settings.read_text("utf-8")}solc = "{compiler}"\n', "utf-8")


def do(*arguments: str, **variables: str) -> str:
    return forge(PROJECT, *arguments, **variables)


def create(*by: str) -> str:
    """The address of a token deployed by forge."""
    made: Json = json.loads(do("create", "--json", "--broadcast", *by, CONTRACT))
    address: str = made["deployedTo"]
    return address


def balance(token: str, account: str) -> int:
    return int(cast("call", token, "balanceOf(address)(uint256)", account).split()[0])


def create_in_a_row() -> None:
    made = [create("--private-key", creator.key) for _ in range(3)]
    same(len(set(made)), 3)
    same([balance(each, creator.address) for each in made], [1000] * 3)


def create_unlocked() -> None:
    same(balance(create("--unlocked", "--from", unlocked.address), unlocked.address), 1000)


def script(salt: int, *by: str) -> None:
    """Eight transactions, all successful, with their effects."""
    do(*SCRIPT, f"0x{salt:064x}", "--rpc-url", RPC_URL, "--broadcast", *by)
    (saved,) = PROJECT.glob("broadcast/*/*/run-latest.json")
    told: Json = json.loads(saved.read_text("utf-8"))
    same([each["status"] for each in told["receipts"]], ["0x1"] * 8)
    first, second = told["transactions"][:2]
    same([first["transactionType"], second["transactionType"]], ["CREATE", "CREATE2"])
    same(balance(first["contractAddress"], NOBODY), 15)


def resume() -> None:
    """Nothing remains to be sent, and nothing is sent."""
    before = cast("nonce", unlocked.address)
    script(4, "--unlocked", "--sender", unlocked.address, "--resume")
    same(cast("nonce", unlocked.address), before)


def send(by: Account, token: str, value: int) -> int:
    """The block number of a transfer."""
    told = ("send", "--json", "--private-key", by.key, token)
    receipt = cast_json(*told, "transfer(address,uint256)", NOBODY, str(value))
    return int(receipt["blockNumber"], 16)


def test_on_a_fork() -> None:
    token = create("--private-key", sender.key)
    numbers = [send(sender, token, value) for value in (1, 2, 3)]
    variables = {
        "TOKEN": token, "OWNER": sender.address, "TO": NOBODY,
        "FIRST": str(numbers[0]), "LAST": str(numbers[-1]),
    }  # fmt: skip
    told: Json = json.loads(do("test", "--json", "--fork-url", RPC_URL, **variables))
    (suite,) = told.values()
    results: Json = suite["test_results"]
    same(len(results), 4)
    for name, each in sorted(results.items()):
        with step(f"test --fork-url, {name}"):
            same((each["status"], each["reason"]), ("Success", None))


lay_out()
with step("create three times"):
    create_in_a_row()
with step("create --unlocked"):
    create_unlocked()
with step("script twice"):
    script(1, "--private-key", scripter.key)
    script(2, "--private-key", scripter.key)
with step("script --slow"):
    script(3, "--private-key", scripter.key, "--slow")
with step("script --unlocked --sender"):
    script(4, "--unlocked", "--sender", unlocked.address)
with step("script --resume"):
    resume()
with step("test --fork-url"):
    test_on_a_fork()
end()
