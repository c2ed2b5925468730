"""Sends an ether with web3.py, and shows it a flashblock later.

Start `foreblock dev` first.

    receipt with status 1
    at pending: 1
    at latest: 1
"""

import os
import time

from eth_account import Account
from web3 import HTTPProvider, Web3
from web3.middleware import SignAndSendRawMiddlewareBuilder

account = Account.from_key("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6")
w3 = Web3(HTTPProvider(os.environ.get("RPC_URL", "http://127.0.0.1:8545")))
w3.eth.default_block = "pending"  # of balances, nonces, code, storage and calls
w3.eth.default_account = account.address
w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)

to = Account.create().address
sent = w3.eth.send_transaction({"to": to, "value": 10**18})
receipt = w3.eth.wait_for_transaction_receipt(sent, poll_latency=0.05)
print("receipt with status", receipt["status"])
print("at pending:", w3.from_wei(w3.eth.get_balance(to), "ether"))

while receipt["blockNumber"] > w3.eth.block_number:
    time.sleep(0.2)
print("at latest:", w3.from_wei(w3.eth.get_balance(to, "latest"), "ether"))
