"""Mnemonics, compared with the published vectors of BIP-39, BIP-32 and the usual dev accounts."""

import hashlib

import pytest

from foreblock.errors import InvalidArgument
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.sequencer.mnemonic import (
    HARDENED,
    TEST_MNEMONIC,
    ExtendedKey,
    dev_accounts,
    seed_of,
)
from support.each_case import each_case

H = HARDENED


def extended(text: str) -> ExtendedKey:
    """The key in a serialised one (BIP-32), with a verified checksum."""
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    number = 0
    for character in text:
        number = number * 58 + alphabet.index(character)
    data = number.to_bytes(82)
    check = hashlib.sha256(hashlib.sha256(data[:78]).digest()).digest()[:4]
    assert check == data[78:]
    return ExtendedKey(secret=data[46:78], chain_code=data[13:45])


def test_the_ten_accounts_that_everybody_knows() -> None:
    accounts = dev_accounts(TEST_MNEMONIC, 10)
    assert [checksum_address(each.address) for each in accounts] == [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
        "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
        "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
        "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
        "0x976EA74026E726554dB657fA54763abd0C3a0aa9",
        "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
        "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f",
        "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
    ]
    key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    assert accounts[0].secret.hex() == key


# The vectors of the reference implementation, with the passphrase TREZOR.
BIP39 = [
    (
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon "
        "about",
        "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e5349553"
        "1f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04",
        "xprv9s21ZrQH143K3h3fDYiay8mocZ3afhfULfb5GX8kCBdno77K4HiA15Tg23wpbeF1pLfs1c5SPmYHrEpTuuRhx"
        "MwvKDwqdKiGJS9XFKzUsAF",
    ),
    (
        "legal winner thank year wave sausage worth useful legal winner thank year wave sausage "
        "worth useful legal will",
        "f2b94508732bcbacbcc020faefecfc89feafa6649a5491b8c952cede496c214a"
        "0c7b3c392d168748f2d4a612bada0753b52a1c7ac53c1e93abd5c6320b9e95dd",
        "xprv9s21ZrQH143K3Lv9MZLj16np5GzLe7tDKQfVusBni7toqJGcnKRtHSxUwbKUyUWiwpK55g1DUSsw76TF1T93V"
        "T4gz4wt5RM23pkaQLnvBh7",
    ),
    (
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon "
        "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon "
        "abandon art",
        "bda85446c68413707090a52022edd26a1c9462295029f2e60cd7c4f2bbd30971"
        "70af7a4d73245cafa9c3cca8d561a7c3de6f5d4a10be8ed2a5e608d68f92fcc8",
        "xprv9s21ZrQH143K32qBagUJAMU2LsHg3ka7jqMcV98Y7gVeVyNStwYS3U7yVVoDZ4btbRNf4h6ibWpY22iRmXq35"
        "qgLs79f312g2kj5539ebPM",
    ),
]


@pytest.mark.parametrize(("mnemonic", "seed", "root"), BIP39)
def test_seeds_and_roots_of_bip_39(mnemonic: str, seed: str, root: str) -> None:
    assert seed_of(mnemonic, "TREZOR").hex() == seed
    assert ExtendedKey.master(bytes.fromhex(seed)) == extended(root)


# Test vectors 1 to 4 of BIP-32; the last two have leading zeros.
SEEDS = [
    "000102030405060708090a0b0c0d0e0f",
    "fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a2"
    "9f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542",
    "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4ac"
    "ba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be",
    "3ddd5602285899a946114506157c7997e5444528f3003f6134712147db19b678",
]
BIP32 = [
    (0, (),
     "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kej"
     "MRNNU3TGtRBeJgk33yuGBxrMPHi"),
    (0, (0 | H,),
     "xprv9uHRZZhk6KAJC1avXpDAp4MDc3sQKNxDiPvvkX8Br5ngLNv1TxvUxt4cV1rGL5hj6KCesnDYUhd7oWgT"
     "11eZG7XnxHrnYeSvkzY7d2bhkJ7"),
    (0, (0 | H, 1),
     "xprv9wTYmMFdV23N2TdNG573QoEsfRrWKQgWeibmLntzniatZvR9BmLnvSxqu53Kw1UmYPxLgboyZQaXwTCg"
     "8MSY3H2EU4pWcQDnRnrVA1xe8fs"),
    (0, (0 | H, 1, 2 | H, 2, 1_000_000_000),
     "xprvA41z7zogVVwxVSgdKUHDy1SKmdb533PjDz7J6N6mV6uS3ze1ai8FHa8kmHScGpWmj4WggLyQjgPie1rF"
     "SruoUihUZREPSL39UNdE3BBDu76"),
    (1, (),
     "xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNq"
     "Pqm55Qn3LqFtT2emdEXVYsCzC2U"),
    (1, (0, 2147483647 | H, 1, 2147483646 | H, 2),
     "xprvA2nrNbFZABcdryreWet9Ea4LvTJcGsqrMzxHx98MMrotbir7yrKCEXw7nadnHM8Dq38EGfSh6dqA9QWT"
     "yefMLEcBYJUuekgW4BYPJcr9E7j"),
    (2, (),
     "xprv9s21ZrQH143K25QhxbucbDDuQ4naNntJRi4KUfWT7xo4EKsHt2QJDu7KXp1A3u7Bi1j8ph3EGsZ9Xvz9"
     "dGuVrtHHs7pXeTzjuxBrCmmhgC6"),
    (2, (0 | H,),
     "xprv9uPDJpEQgRQfDcW7BkF7eTya6RPxXeJCqCJGHuCJ4GiRVLzkTXBAJMu2qaMWPrS7AANYqdq6vcBcBUdJ"
     "CVVFceUvJFjaPdGZ2y9WACViL4L"),
    (3, (0 | H,),
     "xprv9vB7xEWwNp9kh1wQRfCCQMnZUEG21LpbR9NPCNN1dwhiZkjjeGRnaALmPXCX7SgjFTiCTT6bXes17boX"
     "tjq3xLpcDjzEuGLQBM5ohqkao9G"),
    (3, (0 | H, 1 | H),
     "xprv9xJocDuwtYCMNAo3Zw76WENQeAS6WGXQ55RCy7tDJ8oALr4FWkuVoHJeHVAcAqiZLE7Je3vZJHxspZdF"
     "HfnBEjHqU5hG1Jaj32dVoS6XLT1"),
]  # fmt: skip


@each_case(("seed", "path", "key"), BIP32)
def test_keys_of_bip_32(seed: int, path: tuple[int, ...], key: str) -> None:
    assert ExtendedKey.master(bytes.fromhex(SEEDS[seed])).descend(path) == extended(key)


def test_texts_that_look_alike_are_one_mnemonic() -> None:
    """NFKD: a letter with its accent equals the two separate characters."""
    composed, apart = "caf\u00e9 " * 12, "cafe\u0301 " * 12
    assert composed != apart
    assert seed_of(composed) == seed_of(apart)
    assert seed_of(composed, "\u00e9") == seed_of(composed, "e\u0301") != seed_of(composed)


def test_space_around_words_does_not_count() -> None:
    assert seed_of(f"  {TEST_MNEMONIC.replace(' ', '   ')}\n") == seed_of(TEST_MNEMONIC)


@each_case("count", [0, 1, 11, 13, 25])
def test_wrong_count_of_words_is_named(count: int) -> None:
    with pytest.raises(InvalidArgument, match=f"12, 15, 18, 21 or 24 words, this one has {count}"):
        dev_accounts("test " * count, 1)


def test_secrets_are_not_shown() -> None:
    (account,) = dev_accounts(TEST_MNEMONIC, 1)
    assert "ac0974" not in repr(account)
    assert account.secret.hex() not in repr(ExtendedKey.master(account.secret))
    assert repr(account.secret) not in repr(account)


def test_keys_at_another_path() -> None:
    (legacy,) = dev_accounts(TEST_MNEMONIC, 1, "m/44'/60'/0'")
    wanted = ExtendedKey.master(seed_of(TEST_MNEMONIC)).descend(
        (44 | HARDENED, 60 | HARDENED, HARDENED, 0)
    )
    assert legacy.secret == wanted.secret
    for same in ("m/44'/60'/0'/", "m/44h/60H/0'/"):
        assert dev_accounts(TEST_MNEMONIC, 1, same) == (legacy,)


@each_case("path", ["", "44'/60'", "m/x", "m/44''", "m//1", "m/-1", "m/2147483648", "n/1"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidArgument, match="derivation path"):
        dev_accounts(TEST_MNEMONIC, 1, path)
