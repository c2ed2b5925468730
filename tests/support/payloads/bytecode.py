"""Bytecode for tests, written as opcodes."""

OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "MUL": 0x02, "LT": 0x10, "EQ": 0x14, "ISZERO": 0x15, "BYTE": 0x1A,
    "KECCAK256": 0x20, "ADDRESS": 0x30, "BALANCE": 0x31, "ORIGIN": 0x32,
    "CALLER": 0x33, "CALLVALUE": 0x34, "CALLDATALOAD": 0x35, "CALLDATASIZE": 0x36,
    "CALLDATACOPY": 0x37, "CODESIZE": 0x38, "GASPRICE": 0x3A, "EXTCODESIZE": 0x3B,
    "BLOCKHASH": 0x40, "COINBASE": 0x41, "TIMESTAMP": 0x42, "NUMBER": 0x43, "PREVRANDAO": 0x44,
    "GASLIMIT": 0x45, "CHAINID": 0x46, "SELFBALANCE": 0x47, "BASEFEE": 0x48, "BLOBHASH": 0x49,
    "BLOBBASEFEE": 0x4A, "POP": 0x50, "MLOAD": 0x51, "MSTORE": 0x52, "SLOAD": 0x54,
    "SSTORE": 0x55, "JUMP": 0x56, "GAS": 0x5A, "JUMPDEST": 0x5B, "PUSH0": 0x5F, "CLZ": 0x1E,
    "SUB": 0x03, "JUMPI": 0x57, "LOG0": 0xA0, "LOG1": 0xA1, "LOG2": 0xA2, "LOG3": 0xA3,
    "LOG4": 0xA4, "CALL": 0xF1, "RETURN": 0xF3,
    "CREATE2": 0xF5,
    "STATICCALL": 0xFA, "REVERT": 0xFD, "INVALID": 0xFE, "SELFDESTRUCT": 0xFF,
}  # fmt: skip


def code(*program: str | int | bytes) -> str:
    """Assemble opcodes by name; numbers and byte strings are pushed."""
    out = b""
    for each in program:
        match each:
            case str():
                out += bytes([OPCODES[each]])
            case int():
                data = each.to_bytes(max(1, (each.bit_length() + 7) // 8))
                out += bytes([0x5F + len(data)]) + data
            case bytes():
                out += bytes([0x5F + len(each)]) + each
    return "0x" + out.hex()


def returning(*program: str | int | bytes) -> str:
    """Code that returns the top of the program's stack as a word."""
    return code(*program, 0, "MSTORE", 32, 0, "RETURN")


LOOP = code("JUMPDEST", 0, "JUMP")  # until the gas runs out


def loop(body: str = "") -> bytes:
    """Code that repeats this, as hex, until the gas runs out."""
    return bytes.fromhex(f"5b{body}5f56")


# One slot after another, never the same one.
STORING_LOOP = loop("5a8055")
# P256VERIFY of a well-formed but invalid signature: r and s are 1, the key is the generator. No
# other code takes as long for its gas.
P256_LOOP = bytes.fromhex(
    "6001602052"
    "6001604052"
    "7f6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296606052"
    "7f4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5608052"
    "5b5f5f60a05f6101005afa50605256"
)
