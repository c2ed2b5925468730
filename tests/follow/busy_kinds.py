"""The kinds of transactions of a busy chain: their effects and weights.

A kind is a function of the seeded generator, the number of the transaction, and its sender.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from follow.busy_world import (
    CLONES,
    COIN,
    FACTORY,
    MINTED,
    NEXT_COIN,
    PAIRS,
    PROXY,
    ROUTER,
    WALLET,
    Call,
    authority,
    balances,
    clone_code,
    deploy,
    mint,
    number,
)
from foreblock._engine import Authorization, keccak256, sign_digest
from foreblock.ledger.rules.verification import MESSAGE_PASSER
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.predeploys import MULTICALL, TOKEN
from support.payloads.signing import rlp
from support.payloads.solidity import call_data

NOWHERE = bytes(20)  # removes a delegation
RECIPIENTS = 2_000
FIRST_SALT = 1_000_000  # of contracts deployed during the load


@dataclass(slots=True)
class Act:
    """One transaction under construction."""

    pick: random.Random
    number: int
    sender: DevAccount
    chain_id: int
    delegated: dict[bytes, int] = field(default_factory=dict)  # nonces of authorities

    def recipient(self) -> bytes:
        """A recipient, often one that was paid before."""
        return keccak256(b"busy %d" % self.pick.randrange(RECIPIENTS))[12:]

    def pay(self) -> bytes:
        """Call data of a token's transfer."""
        amount = self.pick.randrange(1, 10**15)
        return call_data("transfer(address,uint256)", number(self.recipient()), amount)


def ether(act: Act) -> Call:
    return Call(act.recipient(), value=act.pick.randrange(1, 10**12), gas=21_000)


def token(act: Act) -> Call:
    return Call(TOKEN, act.pay())


def clone(act: Act) -> Call:
    return Call(act.pick.choice(CLONES[:MINTED]), act.pay())


def proxy(act: Act) -> Call:
    return Call(PROXY, act.pay())


def cold_token(act: Act) -> Call:
    """A token that may never have been touched."""
    return Call(act.pick.choice(CLONES), mint(act.recipient(), 1 + act.number), 150_000)


def swap(act: Act) -> Call:
    forth = act.pick.random() < 0.5
    paid, first, second = (CLONES[0], *PAIRS) if forth else (CLONES[2], *PAIRS[::-1])
    data = call_data(
        "sell(address,uint256,address,address,bool)", number(paid), act.pick.randrange(1, 10**15),
        number(first), number(second), int(forth),
    )  # fmt: skip
    return Call(ROUTER, data, 500_000)


def new_clone(act: Act) -> Call:
    """CREATE2 at a unique address."""
    return deploy(clone_code(COIN), FIRST_SALT + act.number, 150_000)


def mayfly(act: Act) -> Call:
    """Created and destroyed in one transaction, at one of few addresses."""
    data = call_data("mayfly(uint256)", act.pick.randrange(4))
    return Call(FACTORY, data, 250_000, value=act.pick.randrange(100))


def delegate(act: Act) -> Call:
    """An account delegates to a wallet's code; occasionally it removes the delegation
    (EIP-7702).
    """
    owner = authority(act.sender)
    target = NOWHERE if act.pick.random() < 0.2 else WALLET
    nonce = act.delegated.get(owner.address, 0)
    act.delegated[owner.address] = nonce + 1
    digest = keccak256(b"\x05" + rlp([act.chain_id, target, nonce]))
    r, s, v = _split(sign_digest(digest, owner.secret))
    signed = Authorization(act.chain_id, target, nonce, v - 27, r, s)
    steps = [
        (number(PROXY), 0, mint(act.recipient(), 1)),
        (number(CLONES[0]), 0, mint(owner.address, 1)),
    ]
    data = call_data("run((address,uint256,bytes)[])", steps)
    return Call(owner.address, data, 400_000, authorizations=[signed])


def _split(signature: bytes) -> tuple[int, int, int]:
    return int.from_bytes(signature[:32]), int.from_bytes(signature[32:64]), signature[64]


def withdrawal(act: Act) -> Call:
    data = call_data(
        "initiateWithdrawal(address,uint256,bytes)", number(act.recipient()), 100_000,
        act.pick.randbytes(act.pick.randrange(80)),
    )  # fmt: skip
    return Call(MESSAGE_PASSER, data, 200_000, value=act.pick.randrange(1, 10**9))


def allowance(act: Act) -> Call:
    """Half of them set a slot to zero, which removes a leaf from a trie."""
    spender = number(keccak256(b"spender %d" % act.pick.randrange(8))[12:])
    amount = act.pick.choice((0, 1 + act.number))
    data = call_data("approve(address,uint256)", spender, amount)
    return Call(act.pick.choice(CLONES[:MINTED]), data)


def multicall(act: Act) -> Call:
    return Call(MULTICALL, balances(act.recipient()), 4_000_000)


def upgrade(act: Act) -> Call:
    to = act.pick.choice((COIN, NEXT_COIN))
    return Call(PROXY, call_data("upgradeTo(address)", number(to)))


def failing(act: Act) -> Call:
    """Pays more than its balance."""
    data = call_data("transfer(address,uint256)", number(act.recipient()), 2**200)
    return Call(CLONES[0], data, fails=True)


Kind = Callable[[Act], Call]
# Weights, with a sum of about a hundred.
KINDS: dict[Kind, int] = {
    ether: 12, token: 10, clone: 14, proxy: 14, cold_token: 6, swap: 14, new_clone: 4, mayfly: 6,
    delegate: 5, withdrawal: 5, allowance: 8, multicall: 1, upgrade: 1, failing: 3,
}  # fmt: skip
NAMES = tuple(kind.__name__ for kind in KINDS)
