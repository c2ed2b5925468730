"""web3.py: a contract deployed, used and observed, by accounts of the node and by a key.

contract, transact, estimate_gas, call, get_logs, filters, sign, construct_sign_and_send
"""

from collections.abc import Iterator
from contextlib import contextmanager

from web3 import HTTPProvider, Web3
from web3.exceptions import ContractCustomError, ContractLogicError
from web3.middleware import SignAndSendRawMiddlewareBuilder

from given import ACCOUNTS, NOBODY, RPC_URL, TOKEN, Json, end, same, step

w3 = Web3(HTTPProvider(RPC_URL))
to = Web3.to_checksum_address(NOBODY)


def receipt_of(hash_: bytes) -> Json:
    receipt = w3.eth.wait_for_transaction_receipt(hash_, timeout=30, poll_latency=0.05)
    same(receipt["status"], 1)
    return receipt


def deploy() -> Json:
    w3.eth.default_account = w3.eth.accounts[0]
    same(w3.eth.accounts[0], ACCOUNTS[0].address)
    made = w3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["initCode"])
    receipt = receipt_of(made.constructor().transact())
    return w3.eth.contract(receipt["contractAddress"], abi=TOKEN["abi"])


def use(token: Json) -> None:
    same(token.functions.symbol().call(), "TOK")
    gas = token.functions.transfer(to, 1).estimate_gas()
    receipt = receipt_of(token.functions.transfer(to, 1).transact())
    same(receipt["gasUsed"] <= gas, True)
    same(token.functions.balanceOf(to).call(), 1)
    same(token.functions.balanceOf(to).call(block_identifier=receipt["blockNumber"]), 1)
    same(token.functions.balanceOf(to).call(block_identifier=receipt["blockNumber"] - 1), 0)
    (event,) = token.events.Transfer().process_receipt(receipt)
    same(event["args"]["value"], 1)


def be_refused(token: Json) -> None:
    selector = Web3.keccak(text="InsufficientBalance(address,uint256,uint256)")[:4]
    with expected(ContractCustomError) as caught:
        token.functions.transfer(to, 10**9).call()
    same(caught[0].data[:10], "0x" + selector.hex())
    for do in (token.functions.failWithReason().call, token.functions.failWithReason().transact):
        with expected(ContractLogicError) as caught:
            do()
        same(caught[0].message, "execution reverted: not today")


@contextmanager
def expected(kind: type[Exception]) -> Iterator[list[Json]]:
    """Expect an exception of this kind, and return it."""
    caught: list[Json] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    else:
        raise AssertionError(f"no {kind.__name__}")


def listen(token: Json) -> None:
    filter_ = token.events.Transfer.create_filter(from_block="latest", argument_filters={"to": to})
    blocks = w3.eth.filter("latest")
    hashes = [token.functions.transfer(to, value).transact() for value in (2, 3)]
    receipts = [receipt_of(each) for each in hashes]
    found = {event["args"]["value"] for event in filter_.get_new_entries()}
    same({2, 3} <= found, True)
    same(receipts[1]["blockHash"] in blocks.get_new_entries(), True)
    w3.eth.uninstall_filter(filter_.filter_id)
    logs = token.events.Transfer.get_logs(from_block=0)
    same([event["args"]["value"] for event in logs], [1, 2, 3])


def sign() -> None:
    account = w3.eth.account.from_key(ACCOUNTS[1].key)
    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    before = w3.eth.get_balance(to)
    for _ in range(3):
        receipt_of(w3.eth.send_transaction({"from": account.address, "to": to, "value": 5}))
    same(w3.eth.get_balance(to) - before, 15)
    same(w3.eth.get_transaction_count(account.address), 3)
    raw = account.sign_transaction({
        "to": to, "value": 1, "gas": 21000, "nonce": 3, "chainId": w3.eth.chain_id,
        "maxFeePerGas": 3 * w3.eth.gas_price, "maxPriorityFeePerGas": w3.eth.max_priority_fee,
    })  # fmt: skip
    receipt_of(w3.eth.send_raw_transaction(raw.raw_transaction))
    signature = w3.eth.sign(ACCOUNTS[0].address, text="words")
    same(len(signature), 65)


def inspect() -> None:
    receipt = receipt_of(w3.eth.send_transaction({"from": w3.eth.accounts[2], "to": to}))
    block = w3.eth.get_block(receipt["blockHash"], full_transactions=True)
    same(block["transactions"][-1]["hash"], receipt["transactionHash"])
    same(w3.eth.get_block(block["number"])["hash"], block["hash"])
    same(w3.eth.fee_history(2, "latest", [50])["baseFeePerGas"][0] > 0, True)
    same(w3.eth.get_proof(ACCOUNTS[0].address, [], "latest")["nonce"] > 0, True)
    same("gasUsed" in w3.eth.create_access_list({"from": ACCOUNTS[0].address, "to": to}), True)
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_balance(to))
        batch.add(w3.eth.get_block("latest"))
        balance, latest = batch.execute()
    same((balance, latest["number"] >= block["number"]), (w3.eth.get_balance(to), True))


token = deploy()
with step("transact, call, estimate_gas"):
    use(token)
with step("reverts with their reasons"):
    be_refused(token)
with step("filters and get_logs"):
    listen(token)
with step("send_transaction by a key, sign"):
    sign()
with step("blocks, fees, proofs, batches"):
    inspect()
end()
