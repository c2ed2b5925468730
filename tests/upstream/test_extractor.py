"""The extractor: its bytes match its source, and in the EVM it reads slots like its model."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from foreblock.follow import extractor
from foreblock.follow.requests import ReadByCall
from foreblock.types import keccak256
from support.servers.asking import Asker

# All opcodes of the listings.
OPCODES = {
    "ADD": 0x01, "LT": 0x10, "EQ": 0x14, "AND": 0x16, "SHR": 0x1C, "CALLDATALOAD": 0x35,
    "CALLDATASIZE": 0x36, "CALLDATACOPY": 0x37, "RETURNDATASIZE": 0x3D, "POP": 0x50,
    "MSTORE": 0x52, "SLOAD": 0x54, "JUMPI": 0x57, "GAS": 0x5A, "JUMPDEST": 0x5B, "PUSH1": 0x60,
    "RETURN": 0xF3, "STATICCALL": 0xFA, "REVERT": 0xFD,
    **{f"DUP{n}": 0x7F + n for n in range(1, 17)}, **{f"SWAP{n}": 0x8F + n for n in range(1, 17)},
}  # fmt: skip
ADDRESSES = [bytes([n]) * 20 for n in range(0xA1, 0xA9)]


def listings() -> list[str]:
    """The source in the comments before each constant."""
    source = Path(extractor.__file__).read_text("utf-8")
    found = re.findall(r"((?:^#.*\n)+)^(?:READER|DISPATCHER): Final", source, re.MULTILINE)
    return [
        "\n".join(line[4:] for line in each.splitlines() if line[:4] == "#   ") for each in found
    ]


def assemble(listing: str) -> bytes:
    """Assemble a listing: opcodes up to the first bracket, labels after JUMPDEST and PUSH1."""
    code, labels, uses = bytearray(), {}, []
    for line in listing.splitlines():
        words = iter(re.split(r" {3,}|\[", line)[0].split())
        for word in words:
            code.append(OPCODES[word])
            if word == "JUMPDEST":
                labels[next(words)] = len(code) - 1
            elif word == "PUSH1":
                value = next(words)
                if not value.isdecimal():
                    uses.append((len(code), value))
                code.append(int(value) if value.isdecimal() else 0)
    for place, label in uses:
        code[place] = labels[label]
    return bytes(code)


def test_the_bytes_are_the_source() -> None:
    assert [assemble(each) for each in listings()] == [extractor.READER, extractor.DISPATCHER]
    assert keccak256(b"foreblock extractor")[12:] == extractor.DISPATCHER_ADDRESS


slots = st.dictionaries(
    st.sampled_from(ADDRESSES),
    st.lists(st.integers(0, 2**256 - 1) | st.integers(0, 5), min_size=1, max_size=20, unique=True),
    min_size=1,
)


@given(slots, st.integers(0, 2**256 - 1))
def test_our_evm_reads_what_is_there(
    preconf: Asker, wanted: dict[bytes, list[int]], seed: int
) -> None:
    """Storage overrides accounts in the same call, some of it with zeros."""

    def value(address: bytes, slot: int) -> int:
        return int.from_bytes(keccak256(address + slot.to_bytes(32) + seed.to_bytes(32))) * (
            slot & 1
        )

    asked = ReadByCall({address: tuple(keys) for address, keys in wanted.items()})
    call, block, changes = asked.params("latest")
    assert isinstance(changes, dict)
    for address, keys in wanted.items():
        changes["0x" + address.hex()]["stateDiff"] = {
            f"0x{slot:064x}": f"0x{value(address, slot):064x}" for slot in keys
        }
    output = preconf.ask("eth_call", call, block, changes)
    found = extractor.words(wanted, bytes.fromhex(str(output)[2:]))
    assert found == {
        address: [(slot, value(address, slot)) for slot in keys] for address, keys in wanted.items()
    }


def test_precompiles_and_our_own_address_are_not_read() -> None:
    assert not extractor.is_readable((1).to_bytes(20))
    assert not extractor.is_readable((0x100).to_bytes(20))
    assert not extractor.is_readable(extractor.DISPATCHER_ADDRESS)
    assert extractor.is_readable(ADDRESSES[0])
    assert extractor.is_readable(bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935"))
