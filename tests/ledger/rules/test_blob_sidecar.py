"""Blob transactions with their sidecars, as clients send them."""

import hashlib

import pytest

from foreblock.ledger.rules.transaction_rules import BLOB_BYTES, CELLS, without_sidecar
from support.each_case import each_case
from support.payloads.signing import Item, rlp

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
