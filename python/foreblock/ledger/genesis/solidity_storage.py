"""Where Solidity keeps things in a contract's storage, for contracts that no constructor fills.

Only what a genesis needs: entries of mappings by address, and short texts.
"""

from foreblock._engine import keccak256

SHORT_STRING_BYTES = 31  # what one slot holds beside the length


def mapping_slot(slot: int, address: bytes) -> int:
    """The slot of an address's entry in the mapping declared at `slot`."""
    return int.from_bytes(keccak256(address.rjust(32, b"\0") + slot.to_bytes(32)))


def short_string(text: str) -> int:
    """The value of a slot that holds a text of at most 31 bytes: left-aligned, length doubled."""
    data = text.encode()
    assert len(data) <= SHORT_STRING_BYTES
    return int.from_bytes(data.ljust(SHORT_STRING_BYTES, b"\0") + bytes([2 * len(data)]))
