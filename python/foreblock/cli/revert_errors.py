"""Reasons of reverts, with the custom errors of common contracts.

The page has the same errors in `page/static/known.js`; a test keeps both equal.
"""

from typing import Final, NamedTuple

from foreblock.errors import Undecodable
from foreblock.ledger.rules.transaction_rules import checksum_address
from foreblock.types import decode_output, keccak256, revert_reason

SELECTOR: Final = 4  # bytes

# ERC-6093, then errors of OpenZeppelin's contracts and of L1Block.
KNOWN_ERRORS: Final = """
ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)
ERC20InvalidSender(address sender)
ERC20InvalidReceiver(address receiver)
ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)
ERC20InvalidApprover(address approver)
ERC20InvalidSpender(address spender)
ERC721InvalidOwner(address owner)
ERC721NonexistentToken(uint256 tokenId)
ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)
ERC721InvalidSender(address sender)
ERC721InvalidReceiver(address receiver)
ERC721InsufficientApproval(address operator, uint256 tokenId)
ERC721InvalidApprover(address approver)
ERC721InvalidOperator(address operator)
ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 tokenId)
ERC1155InvalidSender(address sender)
ERC1155InvalidReceiver(address receiver)
ERC1155MissingApprovalForAll(address operator, address owner)
ERC1155InvalidApprover(address approver)
ERC1155InvalidOperator(address operator)
ERC1155InvalidArrayLength(uint256 idsLength, uint256 valuesLength)
OwnableUnauthorizedAccount(address account)
OwnableInvalidOwner(address owner)
AccessControlUnauthorizedAccount(address account, bytes32 neededRole)
ReentrancyGuardReentrantCall()
InvalidInitialization()
NotInitializing()
EnforcedPause()
SafeERC20FailedOperation(address token)
AddressEmptyCode(address target)
FailedCall()
NotDepositor()
""".strip().splitlines()


class CustomError(NamedTuple):
    """A declared error: its name, and the types and names of its arguments."""

    name: str
    arguments: tuple[tuple[str, str], ...]

    @property
    def types(self) -> str:
        return ",".join(kind for kind, _ in self.arguments)


def _declared(line: str) -> CustomError:
    name, _, rest = line.rstrip(")").partition("(")
    pairs = (each.split(" ") for each in rest.split(", ") if each)
    return CustomError(name, tuple((kind, called) for kind, called in pairs))


def _by_selector() -> dict[bytes, CustomError]:
    found = map(_declared, KNOWN_ERRORS)
    return {keccak256(f"{each.name}({each.types})".encode())[:SELECTOR]: each for each in found}


def reason_of(output: bytes) -> str:
    """The reason in the data of a revert: a text, a panic or a known error; empty otherwise."""
    if text := revert_reason(output):
        return text
    known = _by_selector().get(output[:SELECTOR])
    if known is None:
        return ""
    try:
        values = decode_output(f"{known.name}()({known.types})", output[SELECTOR:])
    except Undecodable:
        return ""
    named = zip(known.arguments, values, strict=True)
    shown = [f"{name}: {_shown(kind, value)}" for (kind, name), value in named]
    return f"{known.name}({', '.join(shown)})"


def _shown(kind: str, value: object) -> str:
    if isinstance(value, bytes):
        return checksum_address(value) if kind == "address" else f"0x{value.hex()}"
    return str(value)
