"""web3.py in an application, against a network of `foreblock dev`.

    python dev_with_web3.py URL PRIVATE_KEY [SCENARIO ...]

The scenarios and their results are those of dev_with_viem.mjs, which documents them. web3.py reads
at `latest` by default; here its default block is `pending`.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import rlp
from eth_account import Account
from web3 import HTTPProvider, Web3
from web3.exceptions import ContractLogicError, TransactionNotFound
from web3.middleware import SignAndSendRawMiddlewareBuilder
from web3.utils import get_create_address

from telling import tell
from with_web3 import CONTRACT, ETHER, failure, result

Json = Any
T = TypeVar("T")

MULTICALL3 = Web3.to_checksum_address("0xca11bde05977b3631167028862be2a173976ca11")
GAS_PRICE_ORACLE = Web3.to_checksum_address("0x420000000000000000000000000000000000000f")
TEST_TOKEN = Web3.to_checksum_address("0x7e57000000000000000000000000000000000020")
BOB = Web3.to_checksum_address("0x0000000000000000000000000000000000000b0b")
FAILING: list[tuple[str, tuple[object, ...]]] = [
    ("transfer", (BOB, 5000)),
    ("failWithReason", ()),
    ("panic", ()),
]


def function(name: str, takes: list[str], gives: str) -> Json:
    """An entry of an ABI."""
    inputs = [{"name": "", "type": each} for each in takes]
    outputs = [{"name": "", "type": gives}]
    kind = {"type": "function", "stateMutability": "view"}
    return {"name": name, "inputs": inputs, "outputs": outputs, **kind}


ORACLE_ABI = [
    function("l1BaseFee", [], "uint256"),
    function("getL1Fee", ["bytes"], "uint256"),
    function("getL1GasUsed", ["bytes"], "uint256"),
    function("getOperatorFee", ["uint256"], "uint256"),
]
MULTICALL_ABI = [
    {
        "name": "aggregate3",
        "type": "function",
        "stateMutability": "payable",
        "inputs": [
            {
                "name": "calls",
                "type": "tuple[]",
                "components": [
                    {"name": "target", "type": "address"},
                    {"name": "allowFailure", "type": "bool"},
                    {"name": "callData", "type": "bytes"},
                ],
            }
        ],
        "outputs": [
            {
                "name": "",
                "type": "tuple[]",
                "components": [
                    {"name": "success", "type": "bool"},
                    {"name": "returnData", "type": "bytes"},
                ],
            }
        ],
    }
]


@dataclass(frozen=True)
class Given:
    """The environment of every scenario: a connection, and an account with its key."""

    w3: Web3
    account: Json


def nobody() -> str:
    address: str = Account.create().address
    return address


def until(condition: Callable[[], T | None]) -> T:
    """Return the result of the condition once it is truthy."""
    while not (found := condition()):
        time.sleep(0.01)
    return found


def block_begins(w3: Web3) -> None:
    """Wait until a block begins, so that the next steps have its two seconds."""
    number = w3.eth.get_block("pending")["number"]
    until(lambda: w3.eth.get_block("pending")["number"] > number)


def receipt_of(w3: Web3, hash: Json) -> Json:
    """The receipt, as soon as it is available."""
    return w3.eth.wait_for_transaction_receipt(hash, poll_latency=0.01)


def deploy(w3: Web3) -> Json:
    """Deploy a token, whose deployer has a thousand units."""
    factory = w3.eth.contract(abi=CONTRACT["abi"], bytecode=CONTRACT["initCode"])
    receipt = receipt_of(w3, factory.constructor().transact())
    return w3.eth.contract(receipt["contractAddress"], abi=CONTRACT["abi"])


def status(receipt: Json) -> str:
    """In viem's form."""
    return "success" if receipt["status"] == 1 else "reverted"


def connect(given: Given) -> Json:
    w3 = given.w3
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block("pending"))
        batch.add(w3.eth.get_block("latest"))
        pending, latest = batch.execute()
    return {
        "chainId": w3.eth.chain_id,
        "pending": pending["number"] - latest["number"],
        "follows": pending["parentHash"] == latest["hash"],
    }


def transfer(given: Given) -> Json:
    w3, own = given.w3, given.account.address
    to = nobody()
    block_begins(w3)
    before = w3.eth.get_transaction_count(own, "latest")
    sent = w3.eth.send_transaction({"to": to, "value": ETHER})

    def seen() -> Json:
        with w3.batch_requests() as batch:
            batch.add(w3.eth.get_block("latest"))
            for block in ("pending", "latest"):
                batch.add(w3.eth.get_balance(to, block))
                batch.add(w3.eth.get_transaction_count(own, block))
            batch.add(w3.eth.get_transaction_receipt(sent))
            try:
                latest, *found, receipt = batch.execute()
            except TransactionNotFound:
                return None
        return {
            "status": status(receipt),
            "gasUsed": receipt["gasUsed"],
            "ahead": receipt["blockNumber"] - latest["number"],
            "balances": found[::2],
            "nonces": [nonce - before for nonce in found[1::2]],
        }

    preconfirmed = until(seen)
    number = w3.eth.get_transaction_receipt(sent)["blockNumber"]
    until(lambda: w3.eth.block_number >= number)
    sealed = w3.eth.get_block(number)
    receipt = w3.eth.get_transaction_receipt(sent)
    return {
        "preconfirmed": preconfirmed,
        "sealed": w3.eth.get_balance(to, "latest"),
        "inBlock": sent in sealed["transactions"] and sealed["hash"] == receipt["blockHash"],
    }


def wait(given: Given) -> Json:
    w3 = given.w3
    block_begins(w3)
    sent = w3.eth.send_transaction({"to": nobody(), "value": 1})
    receipt = w3.eth.wait_for_transaction_receipt(sent)
    return {"status": status(receipt), "beforeSeal": receipt["blockNumber"] > w3.eth.block_number}


def row(given: Given) -> Json:
    w3 = given.w3
    to = nobody()
    first = w3.eth.get_transaction_count(given.account.address)
    hashes = [w3.eth.send_transaction({"to": to, "value": 1}) for _ in range(5)]
    receipts = [receipt_of(w3, each) for each in hashes]
    return {
        "nonces": [w3.eth.get_transaction(each)["nonce"] - first for each in hashes],
        "statuses": list(map(status, receipts)),
        "received": w3.eth.get_balance(to),
    }


def contract(given: Given) -> Json:
    w3, own = given.w3, given.account.address
    nonce = w3.eth.get_transaction_count(own)
    token, to = deploy(w3), nobody()
    moving = token.functions.transfer(to, 400)
    simulated = moving.call()
    (event,) = token.events.Transfer().process_receipt(receipt_of(w3, moving.transact()))
    args = event["args"]
    return {
        "address": token.address == get_create_address(own, nonce),
        "code": w3.eth.get_code(token.address).to_0x_hex() == CONTRACT["code"],
        "simulated": simulated,
        "symbol": token.functions.symbol().call(),
        "balances": [token.functions.balanceOf(each).call() for each in (own, to)],
        "event": [args["from"] == own and "us", args["to"] == to and "them", args["value"]],
    }


def reverts(given: Given) -> Json:
    token = deploy(given.w3)

    def told(ask: Callable[[], object]) -> Json:
        try:
            ask()
        except ContractLogicError as error:
            found = failure(bytes.fromhex(error.data[2:]))
            own = given.account.address.lower()
            return {**found, "args": ["us" if each == own else each for each in found["args"]]}
        return None

    functions = [token.get_function_by_name(name)(*args) for name, args in FAILING]
    return {
        "calls": [told(each.call) for each in functions],
        "estimates": [told(each.estimate_gas) for each in functions],
    }


def multicall(given: Given) -> Json:
    w3 = given.w3
    token = w3.eth.contract(TEST_TOKEN, abi=CONTRACT["abi"])
    asked = [("symbol", ()), ("balanceOf", (given.account.address,)), ("transfer", (nobody(), 1))]
    calls = [(TEST_TOKEN, True, token.encode_abi(name, list(args))) for name, args in asked]
    found = w3.eth.contract(MULTICALL3, abi=MULTICALL_ABI).functions.aggregate3(calls).call()
    return [
        result(name, returned) if success else "failure"
        for (name, _), (success, returned) in zip(asked, found, strict=True)
    ]


def fees(given: Given) -> Json:
    w3 = given.w3
    gas = w3.eth.estimate_gas({"from": given.account.address, "to": nobody(), "value": 1})
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block("pending"))
        batch.add(w3.eth.fee_history(2, "pending", [10, 90]))
        pending, history = batch.execute()
    base_fee, tip = pending["baseFeePerGas"], w3.eth.max_priority_fee
    named = ("baseFeePerGas", "gasUsedRatio", "reward")
    return {
        "gas": gas,
        "enough": 2 * base_fee + tip >= history["baseFeePerGas"][-1],
        "tip": tip > 0,
        "price": w3.eth.gas_price > base_fee,
        "newest": history["oldestBlock"] + 1 == pending["number"],
        "lengths": [len(history[each]) for each in named],
    }


def pending_block(given: Given) -> Json:
    w3 = given.w3
    block_begins(w3)
    sent = w3.eth.send_transaction({"to": nobody(), "value": 7})

    def seen() -> Json:
        with w3.batch_requests() as batch:
            batch.add(w3.eth.get_block("pending", full_transactions=True))
            batch.add(w3.eth.get_transaction_receipt(sent))
            try:
                return batch.execute()
            except TransactionNotFound:
                return None

    block, receipt = until(seen)
    first, *others = block["transactions"]
    (ours,) = [each for each in others if each["hash"] == sent]
    return {
        "first": {"type": hex(first["type"]), "from": first["from"]},
        "ours": {"fromUs": ours["from"] == given.account.address, "value": ours["value"]},
        "sameBlock": receipt["blockHash"] == block["hash"] == ours["blockHash"],
    }


def oracle(given: Given) -> Json:
    w3 = given.w3
    ask = w3.eth.contract(GAS_PRICE_ORACLE, abi=ORACLE_ABI).functions
    request = transfer_of_one_wei(w3, nobody(), w3.eth.get_transaction_count(given.account.address))
    raw = unsigned(request)
    found = {
        "baseFee": ask.l1BaseFee().call(),
        "fee": ask.getL1Fee(raw).call(),
        "gas": ask.getL1GasUsed(raw).call(),
    }
    receipt = receipt_of(w3, w3.eth.send_raw_transaction(signed(given, request)))
    told = {"baseFee": "l1GasPrice", "fee": "l1Fee", "gas": "l1GasUsed"}
    return {
        **{name: found[name] == int(receipt[field], 16) for name, field in told.items()},
        "operator": ask.getOperatorFee(21_000).call(),
    }


def transfer_of_one_wei(w3: Web3, to: str, nonce: int) -> Json:
    return {
        "chainId": w3.eth.chain_id,
        "nonce": nonce,
        "maxPriorityFeePerGas": w3.eth.max_priority_fee,
        "maxFeePerGas": 2 * w3.eth.gas_price,
        "gas": 21_000,
        "to": to,
        "value": 1,
    }


def unsigned(request: Json) -> bytes:
    """A transaction of type 2 before signing."""
    *numbers, to, value = request.values()
    fields: Json = [*numbers, bytes.fromhex(to[2:]), value, b"", []]
    encoded: bytes = rlp.encode(fields)
    return b"\x02" + encoded


def signed(given: Given, request: Json) -> bytes:
    raw: bytes = given.account.sign_transaction(request).raw_transaction
    return raw


def latency(given: Given) -> Json:
    """Milliseconds from a send to its balance at `pending`; sends are spread over the interval."""
    w3 = given.w3
    nonce = w3.eth.get_transaction_count(given.account.address)
    took = []
    for sent in range(30):
        to = nobody()
        raw = signed(given, transfer_of_one_wei(w3, to, nonce + sent))
        time.sleep(sent * 67 % 200 / 1000)
        begun = time.perf_counter()
        w3.eth.send_raw_transaction(raw)
        until(lambda: w3.eth.get_balance(to))  # noqa: B023
        took.append(time.perf_counter() - begun)
    return round(statistics.median(took) * 1000)


SCENARIOS: dict[str, Callable[[Given], Json]] = {
    "connect": connect,
    "transfer": transfer,
    "wait": wait,
    "row": row,
    "contract": contract,
    "reverts": reverts,
    "multicall": multicall,
    "fees": fees,
    "pendingBlock": pending_block,
    "oracle": oracle,
    "latency": latency,
}


def main() -> None:
    url, key, *named = sys.argv[1:]
    w3 = Web3(HTTPProvider(url, exception_retry_configuration=None))
    account = Account.from_key(key)
    w3.eth.default_block = "pending"
    w3.eth.default_account = account.address
    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    tell(SCENARIOS, named, Given(w3, account))


if __name__ == "__main__":
    main()
