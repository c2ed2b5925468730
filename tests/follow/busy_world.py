"""The contracts of a busy chain: their addresses, and the transactions that deploy them.

Everything is created by CREATE2 through the deterministic deployer of dev chains, so addresses are
known in advance. Sources and artifacts are in `contracts/`.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from foreblock._engine import Authorization, address_of, keccak256
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.predeploys import DETERMINISTIC_DEPLOYER, MULTICALL, TOKEN
from support.payloads.solidity import call_data

TOKENS = 200  # clones, which a multicall iterates over
PORTION = 50  # clones per transaction
POOL = 10**24  # of each token in a pair
PURSE = 10**24  # initial amount of each token of a sender
MINTED = 4  # tokens that senders hold from the start
LARGEST = 2**256 - 1


class Call(NamedTuple):
    """The parameters of a transaction."""

    to: bytes
    data: bytes = b""
    gas: int = 100_000
    value: int = 0
    authorizations: list[Authorization] | None = None
    fails: bool = False


def number(address: bytes) -> int:
    """An address as a word."""
    return int.from_bytes(address)


def init_code(name: str, *arguments: int) -> bytes:
    """The code that creates a contract."""
    artifact = json.loads((Path(__file__).with_name("contracts") / f"{name}.json").read_text())
    return bytes.fromhex(artifact["initCode"][2:]) + b"".join(
        each.to_bytes(32) for each in arguments
    )


def create2(creator: bytes, salt: int, code: bytes) -> bytes:
    """The address of a CREATE2 contract (EIP-1014)."""
    return keccak256(b"\xff" + creator + salt.to_bytes(32) + keccak256(code))[12:]


def clone_code(target: bytes) -> bytes:
    """The code that creates a clone (ERC-1167)."""
    prefix = bytes.fromhex("3d602d80600a3d3981f3363d3d373d3d3d363d73")
    return prefix + target + bytes.fromhex("5af43d82803e903d91602b57fd5bf3")


def deployed(code: bytes, salt: int = 0) -> bytes:
    """The address of a contract from the deterministic deployer."""
    return create2(DETERMINISTIC_DEPLOYER, salt, code)


def deploy(code: bytes, salt: int = 0, gas: int = 2_500_000) -> Call:
    """Create a contract through the deterministic deployer."""
    return Call(DETERMINISTIC_DEPLOYER, salt.to_bytes(32) + code, gas)


COIN = deployed(init_code("Coin"))
NEXT_COIN = deployed(init_code("Coin"), 1)  # the new implementation of the proxy, and its reversal
PROXY_CODE = init_code("Proxy", number(COIN))
PROXY = deployed(PROXY_CODE)
FACTORY = deployed(init_code("Factory"))
WALLET = deployed(init_code("Wallet"))
ROUTER = deployed(init_code("Router"))
CLONES = [create2(FACTORY, salt, clone_code(COIN)) for salt in range(TOKENS)]
PAIR_CODES = [init_code("Pair", number(CLONES[at]), number(CLONES[at + 1])) for at in (0, 1)]
PAIRS = [deployed(code) for code in PAIR_CODES]
ANYBODY = keccak256(b"anybody")[12:]  # stands for an owner
CONTRACTS = (COIN, NEXT_COIN, PROXY, FACTORY, WALLET, ROUTER, *PAIRS, *CLONES[:MINTED], TOKEN)


def authority(owner: DevAccount) -> DevAccount:
    """The account that delegates for a sender; it sends no transactions."""
    secret = keccak256(b"authority of " + owner.address)
    return DevAccount(address_of(secret), secret)


def each_call(calls: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Multicall3's aggregate3, in which every call must succeed."""
    steps = [(number(to), 0, data) for to, data in calls]
    return call_data("aggregate3((address,bool,bytes)[])", steps)


def mint(to: bytes, amount: int = PURSE) -> bytes:
    """Call data of a token."""
    return call_data("mint(address,uint256)", number(to), amount)


def balances(owner: bytes, tokens: Sequence[bytes] = CLONES) -> bytes:
    """Call data of Multicall3: the balance of an owner in many tokens."""
    return _balances_of_all(ANYBODY, tuple(tokens)).replace(ANYBODY, owner)


@lru_cache(maxsize=4)  # mainly for all tokens: 200 calls take a millisecond to encode
def _balances_of_all(owner: bytes, tokens: tuple[bytes, ...]) -> bytes:
    asked = call_data("balanceOf(address)", number(owner))
    return each_call([(token, asked) for token in tokens])


def setup(senders: Sequence[DevAccount]) -> Iterator[tuple[DevAccount, Call]]:
    """The first transactions, and their senders; the first sender creates everything."""
    first = senders[0]
    codes = [init_code(name) for name in ("Coin", "Factory", "Wallet", "Router")]
    for code in [*codes, PROXY_CODE]:
        yield first, deploy(code)
    yield first, deploy(init_code("Coin"), 1)
    for begin in range(0, TOKENS, PORTION):
        made = call_data("clones(address,uint256,uint256)", number(COIN), begin, PORTION)
        yield first, Call(FACTORY, made, 6_000_000)
    for code in PAIR_CODES:
        yield first, deploy(code)
    held = [*CLONES[:MINTED], PROXY]
    for at in range(0, len(senders), 8):
        owners = [each.address for each in senders[at : at + 8]]
        calls = [(token, mint(owner)) for token in held for owner in owners]
        yield first, Call(MULTICALL, each_call(calls), 8_000_000)
    funds = [(CLONES[at + side], mint(pair, POOL)) for at, pair in enumerate(PAIRS)
             for side in (0, 1)]  # fmt: skip
    synced = [(pair, call_data("sync()")) for pair in PAIRS]
    yield first, Call(MULTICALL, each_call([*funds, *synced]), 3_000_000)
    allow = call_data("approve(address,uint256)", number(ROUTER), LARGEST)
    for sender in senders:
        yield sender, Call(CLONES[0], allow)
        yield sender, Call(CLONES[2], allow)
