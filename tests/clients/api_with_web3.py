"""web3.py's logs, filters, proofs, access lists and traces, over HTTP.

    python api_with_web3.py URL PRIVATE_KEY [SCENARIO ...]

The scenarios and their results are those of api_with_viem.mjs, which documents them; subscriptions
are in subscribe_with_web3.py. At the path /eth web3.py has its defaults, otherwise its default
block is `pending`.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import urlsplit

from eth_account import Account
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3RPCError
from web3.middleware import SignAndSendRawMiddlewareBuilder

from telling import tell
from with_web3 import CONTRACT, slot_of

Json = Any
T = TypeVar("T")

POLL = 0.02


def until(condition: Callable[[], T]) -> T:
    """Return the result of the condition once it is truthy."""
    while not (found := condition()):
        time.sleep(POLL)
    return found


def nobody() -> str:
    address: str = Account.create().address
    return address


def values_of(events: Json) -> list[int]:
    return [each["args"]["value"] for each in events]


@dataclass(frozen=True)
class Given:
    """A client, an account with its key, and the newest block."""

    w3: Web3
    us: str
    top: str

    def receipt_of(self, sent: Json) -> Json:
        return self.w3.eth.wait_for_transaction_receipt(sent, poll_latency=POLL)

    def deploy(self) -> Json:
        """Deploy a token, whose deployer has a thousand units."""
        factory = self.w3.eth.contract(abi=CONTRACT["abi"], bytecode=CONTRACT["initCode"])
        address = self.receipt_of(factory.constructor().transact())["contractAddress"]
        return self.w3.eth.contract(address, abi=CONTRACT["abi"])

    def transfer(self, token: Json, to: str, value: int) -> Json:
        """Transfer units of the token, and return the receipt."""
        return self.receipt_of(token.functions.transfer(to, value).transact())

    def sealed(self, receipt: Json) -> Json:
        """The receipt of a sealed block."""
        until(lambda: self.w3.eth.block_number >= receipt["blockNumber"])
        return self.w3.eth.get_transaction_receipt(receipt["transactionHash"])


def logs(given: Given) -> Json:
    w3 = given.w3
    start = w3.eth.block_number
    token = given.deploy()
    to = nobody()
    receipts = [given.transfer(token, to, value) for value in (1, 2)]
    receipts.append(given.transfer(token, nobody(), 3))

    def ask(**filters: str) -> Json:
        return token.events.Transfer.get_logs(
            argument_filters=filters, from_block=start, to_block=given.top
        )

    found = ask()
    raw = w3.eth.get_logs({"address": token.address, "fromBlock": start, "toBlock": given.top})
    last = given.sealed(receipts[2])
    in_block = w3.eth.get_logs({"address": token.address, "blockHash": last["blockHash"]})
    return {
        "all": values_of(found),
        "places": [each["transactionHash"] for each in found]
        == [each["transactionHash"] for each in receipts],
        "received": values_of(ask(to=to)),
        "events": [int.from_bytes(each["data"]) for each in raw],
        "nothing": values_of(ask(to=token.address)),
        "inBlock": any(
            int.from_bytes(each["data"]) == 3 and each["logIndex"] == last["logs"][0]["logIndex"]
            for each in in_block
        ),
    }


def filter_(given: Given) -> Json:
    w3 = given.w3
    token = given.deploy()
    to = nobody()
    installed = token.events.Transfer.create_filter(from_block=w3.eth.block_number)
    given.transfer(token, to, 1)
    given.sealed(given.transfer(token, to, 2))
    changes: list[int] = []

    def both() -> bool:
        changes.extend(values_of(installed.get_new_entries()))
        return len(changes) >= 2

    until(both)
    again = values_of(installed.get_new_entries())
    every = values_of(installed.get_all_entries())
    uninstalled = w3.eth.uninstall_filter(installed.filter_id)
    try:
        afterwards = str(w3.eth.get_filter_changes(installed.filter_id))
    except Web3RPCError as error:
        afterwards = error.rpc_response["error"]["message"]
    return {
        "changes": changes,
        "again": again,
        "logs": every,
        "uninstalled": uninstalled,
        "afterwards": afterwards,
    }


def heads(given: Given) -> Json:
    installed = given.w3.eth.filter("latest")
    hashes: list[Json] = []

    def three() -> bool:
        hashes.extend(installed.get_new_entries())
        return len(hashes) >= 3

    until(three)
    return chained([given.w3.eth.get_block(each) for each in hashes])


def chained(blocks: Json) -> Json:
    """Return whether blocks are consecutive, by hash and by number."""
    pairs = list(pairwise(blocks))
    return {
        "chained": all(second["parentHash"] == first["hash"] for first, second in pairs),
        "numbers": all(second["number"] == first["number"] + 1 for first, second in pairs),
    }


def pool(given: Given) -> Json:
    installed = given.w3.eth.filter("pending")
    sent = given.w3.eth.send_transaction({"to": nobody(), "value": 1})
    seen: list[Json] = []

    def found() -> bool:
        seen.extend(installed.get_new_entries())
        return sent in seen

    until(found)
    return seen.count(sent)


def proof(given: Given) -> Json:
    w3 = given.w3
    token = given.deploy()
    to = nobody()
    number = given.sealed(given.transfer(token, to, 1))["blockNumber"]
    keys = [int(slot_of(each), 16) for each in (given.us, to, token.address)]
    found = w3.eth.get_proof(token.address, keys, number)
    return {
        "balance": found["balance"],
        "nonce": found["nonce"],
        "code": found["codeHash"] == w3.keccak(hexstr=CONTRACT["code"]),
        "values": [int.from_bytes(each["value"]) for each in found["storageProof"]],
        "root": w3.keccak(found["accountProof"][0]) == w3.eth.get_block(number)["stateRoot"],
        "storageRoots": all(
            w3.keccak(each["proof"][0]) == found["storageHash"] for each in found["storageProof"]
        ),
    }


def access_list(given: Given) -> Json:
    token = given.deploy()
    to = nobody()
    data = token.encode_abi("transfer", [to, 1])
    call: Json = {"from": given.us, "to": token.address, "data": data}
    found: Json = given.w3.eth.create_access_list(call, given.top)
    only, *others = found["accessList"]
    return {
        "token": only["address"] == token.address and not others,
        "slots": [slot_of(each) in only["storageKeys"] for each in (given.us, to)],
        "gas": found["gasUsed"] > 21_000,
    }


def trace(given: Given) -> Json:
    token = given.deploy()
    receipt = given.sealed(given.transfer(token, nobody(), 1))
    debug = given.w3.geth.debug
    call: Json = debug.trace_transaction(receipt["transactionHash"], {"tracer": "callTracer"})
    steps: Json = debug.trace_transaction(receipt["transactionHash"])
    operations = [each["op"] for each in steps["structLogs"]]
    return {
        "call": {
            "type": call["type"],
            "selector": bytes(call["input"][:4]),
            "output": int.from_bytes(call["output"]),
            "calls": len(call.get("calls", ())),
        },
        "gas": call["gasUsed"] == steps["gas"] == receipt["gasUsed"],
        "steps": {
            "failed": steps["failed"],
            "stores": operations.count("SSTORE"),
            "events": operations.count("LOG3"),
        },
    }


def parity(given: Given) -> Json:
    """`trace_transaction`, in the form of Parity."""
    token = given.deploy()
    receipt = given.sealed(given.transfer(token, nobody(), 1))
    (found,) = given.w3.tracing.trace_transaction(receipt["transactionHash"])
    return {
        "type": found["type"],
        "callType": found["action"]["callType"],
        "from": found["action"]["from"] == given.us,
        "to": found["action"]["to"] == token.address,
        "output": int.from_bytes(found["result"]["output"]),
        "place": found["traceAddress"],
        "block": found["blockNumber"] == receipt["blockNumber"],
    }


def ordinary(given: Given) -> Json:
    w3 = given.w3
    token = given.deploy()
    to = nobody()
    first = w3.eth.get_transaction_count(given.us, "latest")
    code = w3.eth.get_code(token.address, "latest").to_0x_hex() == CONTRACT["code"]
    found: Json = {"code": code, "reads": [], "nonces": [], "blocks": []}
    for value in (1, 2, 3):
        receipt = given.transfer(token, to, value)
        number = receipt["blockNumber"]
        read = token.functions.balanceOf(to).call(block_identifier="latest")
        then = token.functions.balanceOf(to).call(block_identifier=number)
        nonce = w3.eth.get_transaction_count(given.us, "latest")
        found["reads"].append(read)
        found["nonces"].append(nonce - first)
        same = w3.eth.get_block(number)["hash"] == receipt["blockHash"]
        found["blocks"].append(same and then == read)
    return found


SCENARIOS: dict[str, Callable[[Given], Json]] = {
    "logs": logs,
    "filter": filter_,
    "heads": heads,
    "pool": pool,
    "proof": proof,
    "accessList": access_list,
    "trace": trace,
    "parity": parity,
    "ordinary": ordinary,
}


def main() -> None:
    url, key, *named = sys.argv[1:]
    account = Account.from_key(key)
    w3 = Web3(HTTPProvider(url, exception_retry_configuration=None))
    top = "latest" if urlsplit(url).path == "/eth" else "pending"
    w3.eth.default_block = top
    w3.eth.default_account = account.address
    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    tell(SCENARIOS, named, Given(w3, account.address, top))


if __name__ == "__main__":
    main()
