"""Reasons of reverts on the command line: known to the page too, with published selectors."""

import re
from pathlib import Path

import foreblock.page
from foreblock.cli.revert_errors import KNOWN_ERRORS, reason_of
from foreblock.types import keccak256, revert_reason
from support.each_case import each_case

KNOWN_JS = (Path(foreblock.page.__file__).parent / "static" / "known.js").read_text("utf-8")
OWNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def word(value: int | str) -> str:
    return f"{value:064x}" if isinstance(value, int) else value.removeprefix("0x").rjust(64, "0")


def test_the_page_knows_the_same_errors() -> None:
    assert re.findall(r"^error (.*)$", KNOWN_JS, re.MULTILINE) == KNOWN_ERRORS


def test_the_page_has_the_same_texts_of_panics() -> None:
    (table,) = re.findall(r"const PANICS = \{(.*?)\};", KNOWN_JS, re.DOTALL)
    texts = {int(code, 16): text for code, text in re.findall(r'(0x\w\w): "(.*?)"', table)}
    panic = bytes.fromhex("4e487b71")
    known = {code: revert_reason(panic + code.to_bytes(32)) for code in range(256)}
    assert texts == {code: text for code, text in known.items() if "unknown" not in text}


@each_case(
    ("data", "reason"),
    [
        # Selectors as the ERC and OpenZeppelin publish them.
        ("0xe450d38c" + word(OWNER) + word(5) + word(6),
         f"ERC20InsufficientBalance(sender: {OWNER}, balance: 5, needed: 6)"),
        ("0xfb8f41b2" + word(OWNER) + word(0) + word(10**30),
         f"ERC20InsufficientAllowance(spender: {OWNER}, allowance: 0, needed: {10**30})"),
        ("0x7e273289" + word(7), "ERC721NonexistentToken(tokenId: 7)"),
        ("0x118cdaa7" + word(OWNER), f"OwnableUnauthorizedAccount(account: {OWNER})"),
        ("0xe2517d3f" + word(OWNER) + "ab" * 32,
         f"AccessControlUnauthorizedAccount(account: {OWNER}, neededRole: 0x{'ab' * 32})"),
        ("0xd93c0665", "EnforcedPause()"),
        ("0xe450d38c" + word(OWNER), ""),
        ("0x12345678", ""),
        ("0x12", ""),
        ("0x", ""),
        ("0x4e487b71" + word(0x11), "arithmetic underflow or overflow"),
    ],
)  # fmt: skip
def test_reasons(data: str, reason: str) -> None:
    assert reason_of(bytes.fromhex(data[2:])) == reason


@each_case("error", KNOWN_ERRORS)
def test_each_error_is_decoded_with_all_its_arguments(error: str) -> None:
    name, _, arguments = error.rstrip(")").partition("(")
    parts = [each.split(" ") for each in arguments.split(", ") if each]
    types = ",".join(kind for kind, _ in parts)
    selector = keccak256(f"{name}({types})".encode())[:4]
    reason = reason_of(selector + bytes(32 * len(parts)))
    assert re.findall(r"[(,] ?(\w+):", reason) == [called for _, called in parts]
    assert reason.startswith(f"{name}(")
