"""Code of every kind that runs as long as possible for its cost.

Run by eth_call through a state override, with the maximum gas of a call. Most of it has no jump: it
is limited by the cost of each instruction.
"""

from collections.abc import Callable

from abuse.wire import request

ADDRESS = "0x00000000000000000000000000000000000c0de0"
MEGA = 1 << 20

_OPCODES = {
    "MUL": 0x02, "SDIV": 0x05, "MULMOD": 0x09, "EXP": 0x0A, "KECCAK256": 0x20, "ADDRESS": 0x30,
    "BALANCE": 0x31, "CALLDATACOPY": 0x37, "CODECOPY": 0x39, "EXTCODESIZE": 0x3B,
    "EXTCODECOPY": 0x3C, "EXTCODEHASH": 0x3F, "BLOCKHASH": 0x40, "NUMBER": 0x43, "POP": 0x50,
    "MSTORE": 0x52, "SLOAD": 0x54, "SSTORE": 0x55, "JUMP": 0x56, "JUMPDEST": 0x5B, "GAS": 0x5A,
    "TSTORE": 0x5D, "MCOPY": 0x5E, "SUB": 0x03, "LOG0": 0xA0, "CREATE": 0xF0, "CALL": 0xF1,
    "RETURN": 0xF3, "CREATE2": 0xF5, "STATICCALL": 0xFA,
}  # fmt: skip
_FULL = (1 << 256) - 1


def _code(*program: str | int) -> bytes:
    """Opcodes by name; numbers are pushed."""
    out = bytearray()
    for each in program:
        if isinstance(each, str):
            out.append(_OPCODES[each])
        else:
            data = each.to_bytes((each.bit_length() + 7) // 8)
            out += bytes([0x5F + len(data)]) + data
    return bytes(out)


def _each(count: int, part: Callable[[int], bytes]) -> bytes:
    return b"".join(map(part, range(count)))


def _endless(*program: str | int) -> bytes:
    return _code("JUMPDEST", *program, 0, "JUMP")


def _memory(size: int) -> bytes:
    return _code(1, size - 32, "MSTORE")


def _precompile(address: int, size: int, *, memory: bytes = b"") -> bytes:
    """Endless calls of a precompile with this many bytes; memory is prepared before."""
    loop = _code("JUMPDEST", 0, 0, size, 0, address, "GAS", "STATICCALL", "POP")
    return memory + loop + _code(len(memory), "JUMP")


_MODEXP = _code(256, 0, "MSTORE", 256, 32, "MSTORE", 256, 64, "MSTORE", _FULL, 96, "MSTORE")
_BLAKE = _code(0xFFFF << 224, 0, "MSTORE")

HOGS: dict[str, bytes] = {
    "keccak": _code(MEGA, 0, "KECCAK256", "POP") * 240,
    "keccak_loop": _endless(4096, 0, "KECCAK256", "POP"),
    "codecopy": _code(MEGA // 2, 0, 0, "CODECOPY") * 900,
    "calldatacopy": _code(MEGA // 2, 0, 0, "CALLDATACOPY") * 900,
    "extcodecopy": _code(MEGA // 2, 0, 0, "ADDRESS", "EXTCODECOPY") * 900,
    "mcopy": _memory(MEGA) + _code(MEGA // 2, MEGA // 2, 0, "MCOPY") * 900,
    "balance": _each(4600, lambda at: _code(0x1000001 + at, "BALANCE", "POP")),
    "extcodesize": _each(4600, lambda at: _code(0x2000001 + at, "EXTCODESIZE", "POP")),
    "extcodehash": _each(4600, lambda at: _code(0x3000001 + at, "EXTCODEHASH", "POP")),
    "sload": _each(4600, lambda at: _code(0x1000001 + at, "SLOAD", "POP")),
    "sstore": _each(2200, lambda at: _code(1, 0x1000001 + at, "SSTORE")),
    "tstore_loop": _endless(1, "GAS", "TSTORE"),
    "exp": _code(_FULL, _FULL, "EXP", "POP") * 360,
    "mulmod": _code(_FULL, _FULL - 1, _FULL - 2, "MULMOD", "POP") * 240,
    "long_code": _code("JUMPDEST") * 500_000,
    "long_division": _code(_FULL, _FULL - 1, "SDIV", "POP") * 7_000,
    "log": _memory(MEGA // 4) + _code(MEGA // 8, 0, "LOG0") * 40,
    "memory": _code(1, 4 * MEGA, "MSTORE"),
    "jumps": _endless(),
    "itself": _code(0, 0, 0, 0, 0, "ADDRESS", "GAS", "CALL", "POP") * 200,
    "create": _code(49_152, 0, 0, "CODECOPY") + _code(49_152, 0, 0, "CREATE", "POP") * 20,
    "create2": _code(49_152, 0, 0, "CODECOPY")
    + _each(20, lambda at: _code(at, 49_152, 0, 0, "CREATE2", "POP")),
    "blockhash": _endless(1, "NUMBER", "SUB", "BLOCKHASH", "POP"),
    "ecrecover": _precompile(1, 128),
    "sha256": _precompile(2, MEGA),
    "ripemd": _precompile(3, MEGA // 8),
    "identity": _precompile(4, MEGA),
    "modexp": _precompile(5, 96 + 768, memory=_MODEXP),
    "curve_addition": _precompile(6, 128),
    "curve_multiplication": _precompile(7, 96),
    "pairing": _precompile(8, 192 * 4),
    "blake2f": _precompile(9, 213, memory=_BLAKE),
    "point_evaluation": _precompile(10, 192),
    "bls_addition": _precompile(11, 256),
    "bls_multiplication": _precompile(12, 160 * 8),
    "bls_pairing": _precompile(15, 384 * 2),
    "p256": _precompile(0x100, 160),
}


# Calls that are slow before their first instruction.
_SIGNED = {
    "chainId": "0x0", "address": ADDRESS, "nonce": "0x0", "yParity": "0x0",
    "r": hex(1 << 250), "s": hex(1 << 250),
}  # fmt: skip
BURDENS: dict[str, dict[str, object]] = {
    "authorizations": {"authorizationList": [_SIGNED] * 1_500},
    "calldata": {"data": "0x" + "11" * 1_500_000},
    "access_list": {
        "accessList": [
            {"address": f"0x{at:040x}", "storageKeys": [f"0x{key:064x}" for key in range(50)]}
            for at in range(200)
        ]
    },
}
KINDS = (*HOGS, *BURDENS)


def hog(name: str) -> bytes:
    """The request with this code or this input."""
    if name in BURDENS:
        return request("eth_call", {"to": ADDRESS, **BURDENS[name]}, "latest")
    overrides = {ADDRESS: {"code": "0x" + HOGS[name].hex()}}
    return request("eth_call", {"to": ADDRESS}, "latest", overrides)
