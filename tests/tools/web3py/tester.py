"""web3.py with the methods of development chains by make_request, as in tests.

evm_snapshot, evm_revert, evm_mine, evm_increaseTime, anvil_setBalance, impersonation
"""

from web3 import HTTPProvider, Web3

from given import ETHER, NOBODY, RPC_URL, TOKEN, Json, end, same, seal_at_once, step

w3 = Web3(HTTPProvider(RPC_URL))
to = Web3.to_checksum_address(NOBODY)
WHALE = Web3.to_checksum_address("0x" + "ab" * 20)


def do(method: str, *params: Json) -> Json:
    reply = w3.provider.make_request(method, list(params))
    same(reply.get("error"), None)
    return reply["result"]


def send(call: Json) -> Json:
    return w3.eth.wait_for_transaction_receipt(w3.eth.send_transaction(call), timeout=30)


def snapshot() -> None:
    us, other = w3.eth.accounts[:2]
    before = w3.eth.block_number, w3.eth.get_balance(us), w3.eth.get_transaction_count(us)
    taken = do("evm_snapshot")
    for value in (1, 2):
        send({"from": us, "to": other, "value": value})
    same(do("evm_revert", taken), True)
    now = w3.eth.block_number, w3.eth.get_balance(us), w3.eth.get_transaction_count(us)
    same(now, before)
    same(do("evm_revert", taken), False)
    same(send({"from": us, "to": other, "value": 3})["status"], 1)


def move_time() -> None:
    then = w3.eth.get_block("latest")
    do("evm_increaseTime", 86400)
    do("evm_mine")
    now = w3.eth.get_block("latest")
    same((now["number"], now["timestamp"] - then["timestamp"] >= 86400), (then["number"] + 1, True))
    do("evm_setNextBlockTimestamp", now["timestamp"] + 1000)
    receipt = send({"from": w3.eth.accounts[0], "to": to, "value": 1})
    timestamp = w3.eth.get_block(receipt["blockNumber"])["timestamp"]
    same(timestamp, now["timestamp"] + 1000)
    do("anvil_mine", hex(10))
    same(w3.eth.block_number, receipt["blockNumber"] + 10)


def set_state() -> None:
    do("anvil_setBalance", WHALE, hex(100 * ETHER))
    same(w3.eth.get_balance(WHALE), 100 * ETHER)
    made = w3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["initCode"])
    receipt = send(made.constructor().build_transaction({"from": w3.eth.accounts[0]}))
    token = w3.eth.contract(receipt["contractAddress"], abi=TOKEN["abi"])
    slot = Web3.solidity_keccak(["uint256", "uint256"], [int(WHALE, 16), 0]).to_0x_hex()
    do("anvil_setStorageAt", token.address, slot, f"0x{500:064x}")
    same(token.functions.balanceOf(WHALE).call(), 500)
    do("hardhat_impersonateAccount", WHALE)
    receipt = w3.eth.wait_for_transaction_receipt(
        token.functions.transfer(to, 200).transact({"from": WHALE}), timeout=30
    )
    same((receipt["status"], receipt["from"]), (1, WHALE))
    same([token.functions.balanceOf(each).call() for each in (WHALE, to)], [300, 200])
    do("hardhat_stopImpersonatingAccount", WHALE)


def mine_by_hand() -> None:
    do("evm_setAutomine", False)
    us = w3.eth.accounts[2]
    hashes = [w3.eth.send_transaction({"from": us, "to": to, "value": 1}) for _ in range(3)]
    same(w3.eth.get_transaction_count(us), 0)
    same(w3.eth.get_transaction_count(us, "pending"), 3)
    do("evm_mine")
    receipts = [w3.eth.get_transaction_receipt(each) for each in hashes]
    same(len({each["blockNumber"] for each in receipts}), 1)
    do("evm_setAutomine", True)


seal_at_once()
with step("snapshot and revert"):
    snapshot()
with step("time and blocks"):
    move_time()
with step("setBalance, setStorageAt, impersonation"):
    set_state()
with step("setAutomine and mine"):
    mine_by_hand()
end()
