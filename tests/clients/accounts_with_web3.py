"""web3.py with the accounts of the node: sends and signs through them, and verifies the result.

    python accounts_with_web3.py URL POSITION

The scenarios are those of accounts_with_viem.mjs.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from web3 import HTTPProvider, Web3
from web3.exceptions import Web3RPCError

from telling import show

STRANGER = "0x00000000000000000000000000000000000A11cE"
NOBODY = "0x0000000000000000000000000000000000000B0b"
MAIL = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "chainId", "type": "uint256"},
        ],
        "Person": [{"name": "wallet", "type": "address"}, {"name": "numbers", "type": "uint256[]"}],
        "Mail": [{"name": "to", "type": "Person[2]"}, {"name": "contents", "type": "string"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Post", "chainId": 31337},
    "message": {
        "to": [
            {"wallet": NOBODY, "numbers": []},
            {"wallet": STRANGER, "numbers": [1, 2**255]},
        ],
        "contents": "Grüße",
    },
}

url, position = sys.argv[1:]
w3 = Web3(HTTPProvider(url))
account = w3.eth.accounts[int(position)]


def status_of(sent: Any) -> str:  # noqa: ANN401, a library's own
    receipt = w3.eth.wait_for_transaction_receipt(sent, poll_latency=0.02)
    return "success" if receipt["status"] == 1 else "reverted"


def send(_: int = 0, sender: str = account, value: int = 1) -> Any:  # noqa: ANN401
    return w3.eth.send_transaction({"from": sender, "to": NOBODY, "value": value})


def at_once() -> object:
    with ThreadPoolExecutor(10) as threads:
        hashes = list(threads.map(send, range(20)))
    return len({status_of(each) for each in hashes}) == 1 and len(set(hashes))


def impersonates() -> list[str]:
    w3.provider.make_request("hardhat_impersonateAccount", [STRANGER])
    status = status_of(send(sender=STRANGER, value=0))
    w3.provider.make_request("hardhat_stopImpersonatingAccount", [STRANGER])
    try:
        send(sender=STRANGER, value=0)
    except Web3RPCError as refused:
        return [status, refused.rpc_response["error"]["message"]]
    return [status, "sent"]


signed, typed = w3.eth.sign(account, text="Hello"), w3.eth.sign_typed_data(account, MAIL)
show(
    {
        "sends": status_of(send()),
        "atOnce": at_once(),
        "message": Account.recover_message(encode_defunct(text="Hello"), signature=signed)
        == account,
        "typedData": Account.recover_message(encode_typed_data(full_message=MAIL), signature=typed)
        == account,
        "impersonates": impersonates(),
    }
)
