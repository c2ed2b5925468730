"""Random code for calls: mostly valid, often failing, with calls into each other."""

import random
from typing import Any

CONTRACTS = [f"0x{byte:02x}" * 1 + f"{byte:02x}" * 19 for byte in (0xA1, 0xB2, 0xC3)]
SENDER = "0x" + "5e" * 20
# Stack effects: the number of words an instruction takes.
PLAIN = {
    0x01: 2, 0x02: 2, 0x03: 2, 0x04: 2, 0x06: 2, 0x08: 3, 0x0A: 2, 0x0B: 2, 0x10: 2, 0x15: 1,
    0x16: 2, 0x19: 1, 0x1A: 2, 0x1B: 2, 0x1C: 2, 0x30: 0, 0x31: 1, 0x32: 0, 0x33: 0, 0x34: 0,
    0x35: 1, 0x36: 0, 0x38: 0, 0x3A: 0, 0x3B: 1, 0x3D: 0, 0x3F: 1, 0x40: 1, 0x41: 0, 0x42: 0,
    0x43: 0, 0x44: 0, 0x45: 0, 0x46: 0, 0x47: 0, 0x48: 0, 0x50: 1, 0x54: 1, 0x58: 0, 0x59: 0,
    0x5A: 0, 0x5B: 0, 0x5C: 1, 0x5F: 0, 0x80: 1, 0x81: 2, 0x90: 2, 0x91: 3,
}  # fmt: skip
ENDS = [0x00, 0xF3, 0xFD, 0xFE, 0xFF, 0x0C, 0x56, 0x21]


def push(value: int) -> bytes:
    """The shortest push of a value; also for zero, as old forks lack PUSH0."""
    data = value.to_bytes(max(1, (value.bit_length() + 7) // 8))
    return bytes([0x5F + len(data)]) + data


def random_call(chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call, and the accounts it may reach."""
    overrides: dict[str, Any] = {
        each: {
            "code": "0x" + random_code(chance).hex(),
            "balance": hex(chance.choice([0, 1, 10**18])),
        }
        for each in CONTRACTS
    }
    for each in CONTRACTS:
        if chance.random() < 0.5:
            slots = {word(chance.randrange(4)): word(chance.randrange(3)) for _ in range(3)}
            overrides[each]["stateDiff"] = slots
    if chance.random() < 0.1:
        overrides[CONTRACTS[2]]["code"] = "0xef0100" + CONTRACTS[1][2:]
    overrides[SENDER] = {"balance": hex(10**20)}
    call: dict[str, Any] = {
        "from": SENDER,
        "gas": hex(chance.choice([25_000, 40_000, 60_000, 100_000, 300_000, 2_000_000])),
    }
    if chance.random() < 0.85:
        call["to"] = CONTRACTS[0]
        call["input"] = "0x" + chance.randbytes(chance.choice([0, 3, 4, 36])).hex()
    else:
        call["input"] = "0x" + random_code(chance).hex()
        call["gas"] = hex(int(call["gas"], 16) + 60_000)
    if chance.random() < 0.3:
        call["value"] = hex(chance.randrange(1000))
    return call, overrides


def word(value: int) -> str:
    """A value as 32 bytes."""
    return "0x" + value.to_bytes(32).hex()


def random_code(chance: random.Random) -> bytes:
    """Instructions, mostly with their operands on the stack."""
    code = b"".join(piece(chance) for _ in range(chance.randrange(1, 14)))
    return code + ending(chance)


def piece(chance: random.Random) -> bytes:
    """One instruction with its operands."""
    (made,) = chance.choices(PIECES, weights=[35, 15, 10, 6, 6, 4, 4, 20])
    return made(chance)


def plain(chance: random.Random) -> bytes:
    """An instruction on words; sometimes without them."""
    opcode = chance.choice(list(PLAIN))
    operands = b"".join(operand(chance) for _ in range(PLAIN[opcode]))
    return (operands if chance.random() < 0.97 else b"") + bytes([opcode])


def stored(chance: random.Random) -> bytes:
    """An SSTORE."""
    return operand(chance) + push(chance.randrange(4)) + b"\x55"


def kept(chance: random.Random) -> bytes:
    """A write to memory."""
    return operand(chance) + offset(chance) + chance.choice([b"\x52", b"\x53"])


def logged(chance: random.Random) -> bytes:
    """A log."""
    topics = chance.randrange(5)
    words = b"".join(operand(chance) for _ in range(topics))
    return words + size(chance) + offset(chance) + bytes([0xA0 + topics])


def copied(chance: random.Random) -> bytes:
    """A copy to memory."""
    opcode = chance.choice([0x37, 0x39, 0x3E, 0x5E])
    return size(chance) + offset(chance) + offset(chance) + bytes([opcode])


def hashed(chance: random.Random) -> bytes:
    """A KECCAK256."""
    return size(chance) + offset(chance) + b"\x20\x50"


def called(chance: random.Random) -> bytes:
    """A call of one of four kinds."""
    opcode = chance.choice([0xF1, 0xF1, 0xF2, 0xF4, 0xFA])
    target = chance.choice([*(int(each, 16) for each in CONTRACTS), 1, 2, 4, 9, 0x1234])
    value = push(chance.choice([0, 0, 1, 10**19])) if opcode in (0xF1, 0xF2) else b""
    gas = chance.choice([push(0xFFFFFF), push(5000), push(chance.randrange(3000)), b"\x5a"])
    sizes = size(chance) + offset(chance) + size(chance) + offset(chance)
    return sizes + value + push(target) + gas + bytes([opcode]) + b"\x50"


def created(chance: random.Random) -> bytes:
    """A creation from memory, of one of two kinds."""
    code = chance.choice([b"\x60\x00\x60\x00\xf3", b"\x60\x05\x60\x00\xf3", b"\xfe", b"\x33\xff"])
    first = push(int.from_bytes(code.ljust(32, b"\0"))) + push(0) + b"\x52"
    length, value = push(len(code)), push(chance.choice([0, 0, 1, 10**19]))
    if chance.random() < 0.5:
        return first + length + push(0) + value + b"\xf0\x50"
    return first + push(chance.randrange(3)) + length + push(0) + value + b"\xf5\x50"


def ending(chance: random.Random) -> bytes:
    """The end of the code."""
    opcode = chance.choice(ENDS)
    if opcode in (0xF3, 0xFD):
        return size(chance) + offset(chance) + bytes([opcode])
    return operand(chance) + bytes([opcode])


def operand(chance: random.Random) -> bytes:
    """A word for any purpose."""
    return push(
        chance.choice(
            [0, 1, 2, 3, 32, 255, int(CONTRACTS[1], 16), 0x1234, chance.getrandbits(256), 1 << 255]
        )
    )


def offset(chance: random.Random) -> bytes:
    """A position in memory; seldom far away."""
    far = [1 << 16, 1 << 22, 0x1FFFFFFFE0, 1 << 40, 1 << 70]
    return push(chance.choice(far) if chance.random() < 0.05 else chance.randrange(96))


def size(chance: random.Random) -> bytes:
    """A length of memory; seldom long."""
    far = [1 << 12, 1 << 20, 1 << 33, (1 << 64) - 1, 1 << 70]
    return push(chance.choice(far) if chance.random() < 0.05 else chance.choice([0, 1, 32, 64]))


PIECES = [plain, stored, kept, logged, copied, hashed, created, called]
