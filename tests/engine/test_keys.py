"""Keys, signatures and deposits through the engine interface."""

import pytest

from foreblock._engine import (
    Message,
    Receipt,
    address_of,
    decode_receipt,
    decode_transaction,
    decode_transactions,
    deposit_transaction,
    estimated_compressed_size,
    public_key,
    sign_transaction,
)
from foreblock.errors import InvalidArgument, Undecodable

# The first account of the mnemonic shared by development tools.
SECRET = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
OWNER = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
TO = b"\xc1" * 20


def test_a_secret_has_the_address_that_everybody_knows() -> None:
    assert address_of(SECRET) == OWNER
    assert public_key(SECRET)[0] in (2, 3)
    with pytest.raises(InvalidArgument, match="secret key"):
        address_of(bytes(32))


@pytest.mark.parametrize("kind", [0, 1, 2, 4])
def test_what_is_signed_decodes_to_its_signer(kind: int) -> None:
    message = Message(sender=bytes(20), to=TO, value=5, gas=21_000, gas_price=7)
    signed = sign_transaction(message, kind, 31337, 3, SECRET)
    assert decode_transaction(signed.raw) == signed
    assert (signed.sender, signed.type, signed.nonce) == (OWNER, kind, 3)


def test_known_senders_are_taken_as_they_are() -> None:
    message = Message(sender=bytes(20), to=TO, gas=21_000, gas_price=7)
    raw = sign_transaction(message, 2, 1, 0, SECRET).raw
    assert decode_transactions([raw], senders=[OWNER]) == decode_transactions([raw])
    assert decode_transactions([raw], senders=[TO])[0].sender == TO
    with pytest.raises(InvalidArgument, match="2 senders of 1 transactions"):
        decode_transactions([raw], senders=[TO, TO])
    with pytest.raises(Undecodable):
        decode_transactions([raw[:-1]], senders=[TO])


def test_a_deposit_has_no_signature_and_is_its_own_encoding() -> None:
    deposit = deposit_transaction(
        source_hash=b"\7" * 32,
        sender=OWNER,
        to=None,
        mint=3,
        value=2,
        gas_limit=100,
        input=b"\1\2",
    )
    assert decode_transaction(deposit.raw) == deposit
    assert (deposit.type, deposit.sender, deposit.to) == (0x7E, OWNER, None)
    with pytest.raises(InvalidArgument, match="128 bits"):
        deposit_transaction(
            source_hash=bytes(32),
            sender=OWNER,
            to=TO,
            mint=1 << 128,
            value=0,
            gas_limit=0,
            input=b"",
        )


@pytest.mark.parametrize(
    "receipt",
    [
        Receipt(type=0, cumulative_gas_used=1, status=True),
        Receipt(type=0, cumulative_gas_used=1, post_state=b"\5" * 32),
        Receipt(type=2, cumulative_gas_used=1 << 40, status=False),
        Receipt(
            type=0x7E,
            cumulative_gas_used=9,
            status=True,
            logs=[(TO, [b"\1" * 32], b"data"), (TO, [], b"")],
            deposit_nonce=4,
            deposit_receipt_version=1,
        ),
    ],
)
def test_receipts_are_read_as_they_were_written(receipt: Receipt) -> None:
    encoded = receipt.encode()
    assert decode_receipt(encoded) == receipt
    for damaged in (encoded[:-1], encoded + b"\0", b"", b"\x7e", bytes([0x80]) + encoded):
        with pytest.raises(Undecodable):
            decode_receipt(damaged)


def test_the_estimated_size_is_that_of_the_specification() -> None:
    # OP stack specification, Fjord: at least 100 bytes; 836500 x flz - 42585600 beyond.
    assert estimated_compressed_size(b"") == 100_000_000
    # 256 different bytes compress to 264: eight runs of literals.
    assert estimated_compressed_size(bytes(range(256))) == 836_500 * 264 - 42_585_600
