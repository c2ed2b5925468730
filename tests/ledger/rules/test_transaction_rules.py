import hashlib

import pytest

from foreblock._engine import Message, sign_transaction
from foreblock.ledger.rules.transaction_rules import (
    BLOB_BYTES,
    CELLS,
    checksum_address,
    created_address,
    without_sidecar,
)
from support.each_case import each_case
from support.executing import execute
from support.payloads.dev_state import ACCOUNTS, DevState
from support.payloads.signing import Item, rlp

# The examples of EIP-55.
EXAMPLES = [
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


@each_case("text", EXAMPLES)
def test_checksum(text: str) -> None:
    assert checksum_address(bytes.fromhex(text[2:])) == text


CREATOR = bytes.fromhex("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")


@pytest.mark.parametrize(
    ("nonce", "address"),
    [
        (0, "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"),
        (1, "343c43a37d37dff08ae8c4a11544c718abb4fcf8"),
        (2, "f778b86fa74e846c4f0a1fbd1335fe81c00a0c91"),
    ],
)
def test_known_addresses(nonce: int, address: str) -> None:
    """Of a creator that is used in many explanations of the rule."""
    assert created_address(CREATOR, nonce).hex() == address


@each_case("nonce", [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**63])
def test_the_engine_puts_contracts_there(nonce: int) -> None:
    state, account = DevState(), ACCOUNTS[0]
    state.overlay.set(account.address, nonce=nonce)
    message = Message(sender=account.address, gas=100_000, gas_price=10**10)
    transaction = sign_transaction(message, 0, 31337, nonce, account.secret)
    (executed,) = execute(state.overlay, state.env, [transaction])
    assert executed.receipt.status
    assert state.overlay.account(created_address(account.address, nonce)) is not None


BODY = [b"\1"] * 14
PLAIN = b"\3" + rlp(BODY)
BLOBS = [bytes([at]) * BLOB_BYTES for at in range(2)]
COMMITMENTS = [bytes([at]) * 48 for at in range(2)]
HASHES = tuple(b"\1" + hashlib.sha256(each).digest()[1:] for each in COMMITMENTS)
PROOF = b"\7" * 48


def sent(*sidecar: Item) -> bytes:
    return b"\3" + rlp([BODY, *sidecar])


@pytest.mark.parametrize(
    "encoded",
    [
        sent(BLOBS, COMMITMENTS, [PROOF] * 2),
        sent(b"\1", BLOBS, COMMITMENTS, [PROOF] * 2 * CELLS),
    ],
    ids=["EIP-4844", "EIP-7594"],
)
def test_the_transaction_is_kept_and_the_hashes_follow_from_commitments(encoded: bytes) -> None:
    assert without_sidecar(encoded) == (PLAIN, HASHES)


def test_one_without_a_sidecar_is_what_it_is() -> None:
    assert without_sidecar(PLAIN) == (PLAIN, None)


@each_case(
    ("encoded", "why"),
    [
        (sent(BLOBS, COMMITMENTS), "expected blobs, commitments and proofs"),
        (sent(BLOBS, COMMITMENTS[:1], [PROOF] * 2), "expected 2 commitments, found 1"),
        (sent(BLOBS, COMMITMENTS, [PROOF]), "expected 2 proofs, found 1"),
        (sent(b"\1", BLOBS, COMMITMENTS, [PROOF] * 2), "expected 256 proofs, found 2"),
        (sent(b"\2", BLOBS, COMMITMENTS, [PROOF] * 2), "version 1"),
        (sent([b"short"], COMMITMENTS[:1], [PROOF]), "blobs of 131072 bytes"),
        (sent([[b"a"]], COMMITMENTS[:1], [PROOF]), "a list of strings"),
        (sent([b""] * 9, [], []), "more than 8 items"),
        (b"\3" + rlp([b""] * 15), "more than 14 items"),
        (PLAIN + b"\0", "one RLP list"),
        (PLAIN[:-1], "it ends too early"),
        (b"\3", "it ends too early"),
    ],
)
def test_another_sidecar_is_refused_in_words(encoded: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        without_sidecar(encoded)
