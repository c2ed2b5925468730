"""cast rpc with the methods of development chains, and other commands that read their effect."""

from foundry import cast, cast_json
from given import ACCOUNTS, CHAIN_ID, ETHER, NOBODY, TOKEN, end, same, seal_at_once, step

us = ACCOUNTS[0]
WHALE = "0x" + "ab" * 20
PLACE = "0x" + "cd" * 20


def change_accounts() -> None:
    cast("rpc", "anvil_setBalance", WHALE, hex(5 * ETHER))
    same(cast("balance", "--ether", WHALE), "5.000000000000000000")
    cast("rpc", "anvil_setNonce", WHALE, "0x9")
    same(cast("nonce", WHALE), "9")
    cast("rpc", "anvil_setCode", PLACE, TOKEN["code"])
    same(cast("code", PLACE), TOKEN["code"])
    slot = cast("index", "address", WHALE, "0")
    cast("rpc", "anvil_setStorageAt", PLACE, slot, f"0x{77:064x}")
    same(cast("call", PLACE, "balanceOf(address)(uint256)", WHALE), "77")


def impersonate() -> None:
    cast("rpc", "anvil_impersonateAccount", WHALE)
    told = ("send", "--json", "--unlocked", "--from", WHALE, PLACE)
    receipt = cast_json(*told, "transfer(address,uint256)", NOBODY, "7")
    same((receipt["status"], receipt["from"]), ("0x1", WHALE))
    same(cast("call", PLACE, "balanceOf(address)(uint256)", NOBODY), "7")
    cast("rpc", "anvil_stopImpersonatingAccount", WHALE)


def mine() -> None:
    before = int(cast("block-number"))
    cast("rpc", "evm_mine")
    cast("rpc", "anvil_mine", "0x5", "0x3c")
    same(int(cast("block-number")) - before, 6)
    ages = [int(cast("block", str(before + n), "--field", "timestamp")) for n in (5, 6)]
    same(ages[1] - ages[0], 60)
    later = ages[1] + 86400
    cast("rpc", "evm_setNextBlockTimestamp", str(later))
    cast("rpc", "evm_mine")
    same(int(cast("block", "--field", "timestamp")), later)
    cast("rpc", "evm_increaseTime", "3600")
    cast("rpc", "evm_mine")
    same(int(cast("block", "--field", "timestamp")) >= later + 3600, True)


def snapshot() -> None:
    number, balance = cast("block-number"), cast("balance", us.address)
    taken = cast_json("rpc", "evm_snapshot")
    cast("send", "--private-key", us.key, NOBODY, "--value", "1ether")
    same(int(cast("block-number")), int(number) + 1)
    same(cast("rpc", "evm_revert", taken), "true")
    same((cast("block-number"), cast("balance", us.address)), (number, balance))
    cast("send", "--private-key", us.key, NOBODY, "--value", "1ether")


def wait_for_mining() -> None:
    cast("rpc", "evm_setAutomine", "false")
    before = cast("nonce", us.address)
    hash_ = cast("send", "--async", "--private-key", us.key, NOBODY, "--value", "1")
    same(cast("nonce", us.address), before)
    same(cast_json("tx", "--json", hash_).get("blockNumber"), None)
    cast("rpc", "evm_mine")
    same(cast_json("receipt", "--json", hash_)["status"], "0x1")
    cast("rpc", "evm_setAutomine", "true")


def show_the_node() -> None:
    same(cast_json("rpc", "anvil_nodeInfo")["environment"]["chainId"], CHAIN_ID)


seal_at_once()
with step("setBalance, setNonce, setCode, setStorageAt"):
    change_accounts()
with step("impersonateAccount"):
    impersonate()
with step("mine and time"):
    mine()
with step("snapshot and revert"):
    snapshot()
with step("setAutomine"):
    wait_for_mining()
with step("nodeInfo"):
    show_the_node()
end()
