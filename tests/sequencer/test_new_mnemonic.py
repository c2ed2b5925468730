"""New mnemonics: the vectors of BIP-39, and anvil's words for numbers."""

import pytest

from foreblock.errors import InvalidArgument
from foreblock.sequencer.mnemonic import mnemonic_of, random_mnemonic, seeded_mnemonic
from support.each_case import each_case

# Of the reference implementation.
VECTORS = [
    ("00" * 16, "abandon " * 11 + "about"),
    ("7f" * 16, "legal winner thank year wave sausage worth useful legal winner thank yellow"),
    ("80" * 16, "letter advice cage absurd amount doctor acoustic avoid letter advice cage above"),
    ("ff" * 16, "zoo " * 11 + "wrong"),
    ("00" * 24, "abandon " * 17 + "agent"),
    ("ff" * 32, "zoo " * 23 + "vote"),
    (
        "9e885d952ad362caeb4efe34a8e91bd2",
        "ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic",
    ),
]
# Of `anvil --mnemonic-seed-unsafe N`, version 1.7.1.
ANVIL = {
    0: "leisure need topic clown code attend earn lounge baby omit vault crunch",
    1: "gesture car maximum regret pudding merry fatal electric sea grab crack social",
    42: "pen brief eager pepper brass detect problem vital physical tent assume damp",
    43: "walk ritual first relax marriage bird gift raise rapid piano pupil remember",
}


@each_case(("entropy", "words"), VECTORS)
def test_words_stand_for_bytes(entropy: str, words: str) -> None:
    assert mnemonic_of(bytes.fromhex(entropy)) == words


@pytest.mark.parametrize(("seed", "words"), ANVIL.items())
def test_a_number_gives_anvil_s_words(seed: int, words: str) -> None:
    assert seeded_mnemonic(seed) == words


@each_case("count", [12, 15, 18, 21, 24])
def test_random_words_are_as_many_as_asked_for_and_new(count: int) -> None:
    found = random_mnemonic(count)
    assert len(found.split()) == count
    assert found != random_mnemonic(count)


def test_what_gives_no_words_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="12, 15, 18, 21 or 24 words, not 13"):
        random_mnemonic(13)
    for seed in (-1, 2**64):
        with pytest.raises(InvalidArgument, match="at most 2"):
            seeded_mnemonic(seed)
