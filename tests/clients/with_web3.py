"""web3.py in an application, against an endpoint.

    python with_web3.py URL [SCENARIO ...]

Runs in a separate environment (requirements.txt in this folder), so it imports nothing of
foreblock. The scenarios and their results are those of with_viem.mjs, which documents them. web3.py
decodes the failures of calls; of simulated calls it returns the data, and the ABI decodes that.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eth_abi.abi import decode
from eth_utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector
from web3 import HTTPProvider, Web3
from web3.exceptions import ContractLogicError, Web3RPCError

from telling import tell

Json = Any

CONTRACT = json.loads(Path(__file__).with_name("token.json").read_text("utf-8"))
ALICE = Web3.to_checksum_address("0x00000000000000000000000000000000000a11ce")
BOB = Web3.to_checksum_address("0x0000000000000000000000000000000000000b0b")
TOKEN = Web3.to_checksum_address("0x000000000000000000000000000000000070ce11")
ZERO = Web3.to_checksum_address("0x" + "00" * 20)
ETHER = 10**18

token = Web3().eth.contract(TOKEN, abi=CONTRACT["abi"])
OF_SOLIDITY = {
    bytes.fromhex("08c379a0"): ("Error", ["string"]),
    bytes.fromhex("4e487b71"): ("Panic", ["uint256"]),
}


def slot_of(account: str) -> str:
    """The slot of an account in a mapping in slot 0."""
    key: str = Web3.solidity_keccak(["uint256", "uint256"], [int(account, 16), 0]).to_0x_hex()
    return key


# The token, with a thousand units for Alice.
TOKEN_STATE = {TOKEN: {"code": CONTRACT["code"], "stateDiff": {slot_of(ALICE): f"0x{1000:064x}"}}}
FAILING = [
    ("transfer", (BOB, 5000)),
    ("failWithReason", ()),
    ("panic", ()),
    ("failWithoutReason", ()),
    ("runIntoInvalid", ()),
]


def call(name: str, *args: object) -> Json:
    """A call of the token by Alice."""
    return {"from": ALICE, "to": TOKEN, "data": token.encode_abi(name, list(args))}


def result(name: str, returned: bytes) -> Json:
    """Decode the result of a function of the token."""
    (output,) = token.get_function_by_name(name).abi["outputs"]
    return decode([output["type"]], returned)[0]


def transfers(logs: Json) -> list[Json]:
    """Transfers among logs, of a token or of ether."""
    event = token.events.Transfer()
    signature = event_abi_to_log_topic(event.abi)
    found = [event.process_log(log) for log in logs if log["topics"][0] == signature]
    return [{"token": each["address"], **each["args"]} for each in found]


def failure(returned: bytes) -> Json:
    """The name and text of a failure; None without data."""
    selector, rest = returned[:4], returned[4:]
    if selector in OF_SOLIDITY:
        name, types = OF_SOLIDITY[selector]
        return {"error": name, "args": list(decode(types, rest))}
    for each in CONTRACT["abi"]:
        if each["type"] == "error" and function_abi_to_4byte_selector(each) == selector:
            types = [item["type"] for item in each["inputs"]]
            return {"error": each["name"], "args": list(decode(types, rest))}
    return None


def data_of_failure(simulated: Json) -> bytes:
    """The revert data in either dialect: the return data of the call, or the data of its error."""
    error = simulated["error"]
    if isinstance(error, str):
        return bytes(simulated["returnData"])
    return bytes.fromhex(error.get("data", "0x")[2:])


def transfer(w3: Web3) -> Json:
    payload: Json = {
        "blockStateCalls": [
            {
                "stateOverrides": {ALICE: {"balance": 2 * ETHER}},
                "calls": [{"from": ALICE, "to": BOB, "value": ETHER}],
            }
        ],
        "traceTransfers": True,
    }
    (block,) = w3.eth.simulate_v1(payload, "latest")
    (simulated,) = block["calls"]
    return {
        "number": block["number"],
        "gasUsed": block["gasUsed"],
        "status": status(simulated),
        "transfers": transfers(simulated["logs"]),
    }


def status(simulated: Json) -> str:
    """In viem's form."""
    return "success" if simulated["status"] == 1 else "failure"


def token_(w3: Web3) -> Json:
    reads = [("balanceOf", ALICE), ("balanceOf", BOB), ("symbol",)]
    payload: Json = {
        "blockStateCalls": [
            {"stateOverrides": TOKEN_STATE, "calls": [call("transfer", BOB, 400)]},
            {"calls": [call(*each) for each in reads]},
        ]
    }
    first, second = w3.eth.simulate_v1(payload, "latest")
    (moved,) = first["calls"]
    return {
        "transferred": result("transfer", moved["returnData"]),
        "transfers": transfers(moved["logs"]),
        "then": [
            result(name, found["returnData"])
            for (name, *_), found in zip(reads, second["calls"], strict=True)
        ],
    }


def failures(w3: Web3) -> Json:
    calls = [call(name, *args) for name, args in FAILING]
    payload: Json = {"blockStateCalls": [{"stateOverrides": TOKEN_STATE, "calls": calls}]}
    (block,) = w3.eth.simulate_v1(payload, "latest")
    return [
        {"status": status(each), "told": failure(data_of_failure(each))} for each in block["calls"]
    ]


def blocks(w3: Web3) -> Json:
    payload: Json = {
        "blockStateCalls": [
            {
                "blockOverrides": {
                    "number": 13,
                    "timestamp": 5000,  # web3.py uses the field names of a block
                    "gasLimit": 20_000_000,
                    "feeRecipient": BOB,
                    "baseFeePerGas": 9,
                },
                "stateOverrides": {ALICE: {"balance": ETHER, "nonce": 7}},
                "calls": [
                    {"from": ALICE, "to": BOB, "maxFeePerGas": 20, "maxPriorityFeePerGas": 2}
                ],
            },
            {"calls": []},
        ],
        "returnFullTransactions": True,
        "validation": True,
    }
    first, second = w3.eth.simulate_v1(payload, "latest")
    (made,) = first["transactions"]
    fields = ("number", "timestamp", "gasLimit", "miner", "baseFeePerGas")
    return {
        **{name: first[name] for name in fields},
        "transaction": {
            name: made[name] for name in ("from", "to", "nonce", "gasPrice", "maxFeePerGas")
        },
        "follows": second["parentHash"] == first["hash"]
        and second["number"] == first["number"] + 1,
    }


def refused(w3: Web3) -> Json:
    calls = [{"from": ALICE, "to": BOB, "value": ETHER}]
    payload: Json = {"blockStateCalls": [{"calls": calls}]}
    try:
        w3.eth.simulate_v1(payload, "latest")
    except Web3RPCError as error:
        return {"code": error.rpc_response["error"]["code"]}
    return None


def call_(w3: Web3) -> Json:
    contract = w3.eth.contract(TOKEN, abi=CONTRACT["abi"])

    def ask(name: str, args: Json) -> Json:
        function = contract.get_function_by_name(name)(*args)
        return function.call({"from": ALICE}, state_override=TOKEN_STATE)

    def failed(name: str, args: Json) -> Json:
        try:
            return ask(name, args)
        except ContractLogicError as error:
            data = error.data
            told = data if isinstance(data, str) and data.startswith("0x") else "0x"
            return failure(bytes.fromhex(told[2:]))

    return {
        "balance": ask("balanceOf", (ALICE,)),
        "failures": [failed(*each) for each in FAILING[:4]],
    }


def reads(w3: Web3) -> Json:
    return {
        "chainId": w3.eth.chain_id,
        "latest": w3.eth.block_number,
        "hash": w3.eth.get_block("latest")["hash"],
        "nobody": w3.eth.get_balance(ZERO),
    }


SCENARIOS: dict[str, Callable[[Web3], Json]] = {
    each.__name__.removesuffix("_"): each
    for each in (transfer, token_, failures, blocks, refused, call_, reads)
}


def main() -> None:
    url, *named = sys.argv[1:]
    tell(SCENARIOS, named, Web3(HTTPProvider(url, exception_retry_configuration=None)))


if __name__ == "__main__":
    main()
