"""Requests whose responses follow from a block and balances alone: code too short to need an EVM.

The load builds requests with these, and the judge recognises them by their code.
"""

from checker.header import Header, data, quantity
from checker.json_type import Json
from checker.keccak import keccak256

PROBE = "0x00000000000000000000000000000000000c0de0"
PAYER = "0x00000000000000000000000000000000000ca511"

BALANCE_OF_SELECTOR = keccak256(b"balanceOf(address)")[:4]

_PUSH1, _PUSH20 = b"\x60", b"\x73"
_MSTORE, _RETURN, _SUB, _BALANCE = b"\x52", b"\xf3", b"\x03", b"\x31"
_BLOCKHASH, _NUMBER = b"\x40", b"\x43"

# Requested values, and the header fields with the expected ones.
SURROUNDINGS = (
    ("NUMBER", _NUMBER, "number"),
    ("TIMESTAMP", b"\x42", "timestamp"),
    ("BASEFEE", b"\x48", "baseFeePerGas"),
    ("BLOCKHASH(NUMBER-1)", _PUSH1 + b"\x01" + _NUMBER + _SUB + _BLOCKHASH, "parentHash"),
    ("COINBASE", b"\x41", "miner"),
    ("PREVRANDAO", b"\x44", "mixHash"),
    ("GASLIMIT", b"\x45", "gasLimit"),
)


def _returning(*words: bytes) -> bytes:
    """Code that returns the top of the stack after each of these."""
    stored = [word + _PUSH1 + bytes([32 * at]) + _MSTORE for at, word in enumerate(words)]
    return b"".join(stored) + _PUSH1 + bytes([32 * len(words)]) + _PUSH1 + b"\0" + _RETURN


SURROUNDINGS_CODE = data(_returning(*(word for _, word, _ in SURROUNDINGS)))


def balance_code(address: bytes) -> str:
    """Code that returns an account's balance."""
    return data(_returning(_PUSH20 + address + _BALANCE))


def balance_of_code(code: str) -> bytes | None:
    """The account whose balance this code returns, or None."""
    address = bytes.fromhex(code[4:44]) if len(code) >= 44 else b""
    return address if code == balance_code(address) else None


def surroundings_call(block: Json) -> list[Json]:
    """The parameters of an eth_call that returns fields of its block. Without a price its base fee
    would be zero, so it offers one, and has the ether for it.
    """
    call = {"from": PAYER, "to": PROBE, "gas": "0x186a0", "gasPrice": quantity(10**15)}
    return [call, block, {PROBE: {"code": SURROUNDINGS_CODE}, PAYER: {"balance": hex(1 << 128)}}]


def surroundings_words(header: Header) -> list[tuple[str, int]]:
    """The expected result in a block with this header."""
    found = []
    for name, _, field in SURROUNDINGS:
        value = header[field]
        found.append((name, value if isinstance(value, int) else int.from_bytes(value)))
    return found


def balance_call(address: bytes, block: Json) -> list[Json]:
    """The parameters of an eth_call that reads an account's balance in the EVM."""
    return [{"to": PROBE}, block, {PROBE: {"code": balance_code(address)}}]


def token_call(token: bytes, owner: bytes, block: Json) -> list[Json]:
    """The parameters of an eth_call that returns a token balance."""
    return [{"to": data(token), "data": data(BALANCE_OF_SELECTOR + owner.rjust(32, b"\0"))}, block]


def simulation(sender: bytes, to: bytes, value: int, block: Json) -> list[Json]:
    """The parameters of an eth_simulateV1 that pays and then returns the payee's balance."""
    calls = [{"from": data(sender), "to": data(to), "value": quantity(value)}, {"to": PROBE}]
    overrides = {PROBE: {"code": balance_code(to)}}
    return [{"blockStateCalls": [{"stateOverrides": overrides, "calls": calls}]}, block]
