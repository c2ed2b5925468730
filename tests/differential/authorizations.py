"""Signed authorizations of EIP-7702: valid ones, and skipped ones."""

from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from foreblock._engine import keccak256
from support.payloads.signing import address, rlp, sign

Json = dict[str, Any]

KEYS: Final = (1, 2, 3)
AUTHORITIES: Final = tuple("0x" + address(key).hex() for key in KEYS)
MAGIC: Final = b"\x05"
NOWHERE: Final = "0x" + "00" * 20  # removes a delegation


@cache
def authorization(key: int, chain_id: int, to: str, nonce: int) -> Json:
    """Return an authorization signed by `key`: its account runs the code at `to`."""
    signed = rlp([chain_id, bytes.fromhex(to[2:]), nonce])
    parity, r, s = sign(key, keccak256(MAGIC + signed))
    numbers = {"chainId": chain_id, "nonce": nonce, "yParity": parity, "r": r, "s": s}
    return {name: hex(number) for name, number in numbers.items()} | {"address": to}


@st.composite
def authorization_lists(draw: st.DrawFn, chain_id: int, contracts: list[str]) -> list[Json]:
    """One to three of them, mostly with a valid nonce and chain."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        made = authorization(
            draw(st.sampled_from(KEYS)),
            draw(st.sampled_from([0, chain_id, chain_id, chain_id + 1])),
            draw(st.sampled_from([*contracts, NOWHERE, AUTHORITIES[0]])),
            draw(st.sampled_from([0, 0, 0, 1, 2, 2**64 - 1])),
        )
        broken: Json = {}
        if not draw(st.integers(0, 9)):
            broken = draw(
                st.sampled_from([{"yParity": "0x2"}, {"r": "0x0"}, {"s": hex(2**256 - 1)}])
            )
        found.append(made | broken)
    return found
