"""A chain of 54 blocks through every fork, for tests that need a chain with history.

It has every type of transaction, contracts that store, log, revert and read their block, an account
that delegates, uncles, withdrawals and blobs. It is built by this engine and so proves nothing
about execution; published chains do that.
"""

import json
from pathlib import Path

from foreblock._engine import (
    Authorization,
    Block,
    Header,
    Message,
    address_of,
    keccak256,
    sign_transaction,
)
from support.chains.builder import ChainBuilder
from support.chains.example import FOLDER as EXAMPLE
from support.chains.example import fork_choice
from support.payloads.bytecode import code
from support.payloads.signing import Item, rlp, sign

CHAIN_ID = 54_321
GWEI = 10**9
ETHER = 10**18
HEAD = 54
MERGED_AT = 36  # the first proof-of-stake block
TOTAL_DIFFICULTY = 4_726_656  # of all mined blocks
CROWDED, CROWD = 2, 59  # a block, and its number of transactions
WITHDRAWALS = (39, 40, 43, 48, 50, 53)  # blocks with a withdrawal
BLOBS = (42, 43, 45, 48, 51, 53)
DELEGATION = 45
FIRST_HASH = "0x5c8e7305e7d38df8a374a428f7ae56236b4b62949111012e63d8c289324f5775"
HEAD_HASH = "0xf1a5c5ffbfe89591b8db3d4934095e8d4a67cc76faa2af44dc3c8d215f39f664"
GENESIS_HASH = "0x7047a84d1cac7fae792378adc78ff8da631ce9f8001bcf9997d06e721b79ec64"
BASE_FEE = 27_360_936  # of the last block

SECRET, DELEGATOR = b"\x46" * 32, b"\x47" * 32
RICH = f"0x{address_of(SECRET).hex()}"  # sender of all transactions
RICH_CHECKSUM = "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"
DELEGATED = f"0x{address_of(DELEGATOR).hex()}"  # an account with the code of another
COINBASE = "0x" + "c0" * 20  # receives the fees of each block
EMITTER = "0x" + "e1" * 20  # stores its input in the next slot after a count, and logs it
EMITTER_BALANCE = 1 + 53 * 2
REVERTER = "0x" + "e2" * 20  # panics
SURROUNDED = "0x" + "e3" * 20  # returns fields of its block
BROKEN = "0x" + "e4" * 20

CODES = {
    EMITTER: code(
        0, "CALLDATALOAD", 0, "SLOAD", 1, "ADD", "SSTORE",
        0, "SLOAD", 1, "ADD", 0, "SSTORE", "NUMBER", 0, "MSTORE", 0xAA, 32, 0, "LOG1",
    ),
    REVERTER: code(
        bytes.fromhex("4e487b71") + bytes(28), 0, "MSTORE", 1, 4, "MSTORE", 36, 0, "REVERT",
    ),
    SURROUNDED: code(
        "NUMBER", 0, "MSTORE", "CHAINID", 32, "MSTORE", "COINBASE", 64, "MSTORE",
        "BASEFEE", 96, "MSTORE", "PREVRANDAO", 128, "MSTORE", "ORIGIN", 160, "MSTORE",
        "CALLVALUE", 192, "MSTORE", 224, 0, "RETURN",
    ),
    BROKEN: code("INVALID"),
}  # fmt: skip
INIT = bytes.fromhex(code(0xFE, 0, "MSTORE", 1, 31, "RETURN")[2:])  # deploys one byte
FORKS = {
    "homesteadBlock": 0, "eip150Block": 2, "eip155Block": 2, "eip158Block": 2,
    "byzantiumBlock": 9, "constantinopleBlock": 12, "petersburgBlock": 15,
    "istanbulBlock": 18, "muirGlacierBlock": 21, "berlinBlock": 24, "londonBlock": 27,
    "arrowGlacierBlock": 30, "grayGlacierBlock": 33, "terminalTotalDifficulty": TOTAL_DIFFICULTY,
    "shanghaiTime": 390, "cancunTime": 420, "pragueTime": 450, "osakaTime": 480,
    "bpo1Time": 510, "bpo2Time": 540,
}  # fmt: skip
BERLIN, LONDON = 24, 27


def genesis() -> bytes:
    """The genesis file: the system contracts and blob schedule of the example chain."""
    example = json.loads((EXAMPLE / "genesis.json").read_bytes())
    schedule = example["config"]["blobSchedule"]
    schedule["bpo2"] = {"target": 14, "max": 21, "baseFeeUpdateFraction": 11_684_671}
    system = {who: what for who, what in example["alloc"].items() if who.startswith("0x000")}
    contracts = {who: {"balance": "0", "code": what} for who, what in CODES.items()}
    people = {who: {"balance": str(10**6 * ETHER)} for who in (RICH, DELEGATED)}
    return json.dumps(
        {
            "config": {"chainId": CHAIN_ID, **FORKS, "blobSchedule": schedule},
            "timestamp": "0x0",
            "extraData": f"0x{b'long'.hex()}",
            "gasLimit": hex(10**8),
            "difficulty": "0x20000",
            "alloc": system | contracts | people,
        }
    ).encode()


def _bytes(address: str) -> bytes:
    return bytes.fromhex(address[2:])


class _Sender:
    """Signs transactions of one account, with consecutive nonces."""

    def __init__(self) -> None:
        self._nonce = 0

    def _next(self) -> int:
        self._nonce += 1
        return self._nonce - 1

    def send(
        self,
        kind: int,
        to: str | None = None,
        value: int = 0,
        data: bytes = b"",
        authorizations: list[Authorization] | None = None,
    ) -> bytes:
        """A transaction of type 0, 1, 2 or 4."""
        listed = [(_bytes(EMITTER), [bytes(32)])] if kind in (1, 2) else None
        message = Message(
            sender=bytes(20),
            to=None if to is None else _bytes(to),
            value=value,
            data=data,
            gas=150_000,
            access_list=listed,
            authorization_list=authorizations,
            gas_price=2 * GWEI if kind < 2 else None,
            max_fee_per_gas=None if kind < 2 else 10 * GWEI,
            max_priority_fee_per_gas=None if kind < 2 else GWEI,
        )
        return sign_transaction(message, kind, CHAIN_ID, self._next(), SECRET).raw

    def send_without_chain_id(self, to: str, value: int) -> bytes:
        """A legacy transaction without a chain ID, as before EIP-155."""
        fields: list[Item] = [self._next(), GWEI, 150_000, _bytes(to), value, b""]
        parity, r, s = sign(int.from_bytes(SECRET), keccak256(rlp(fields)))
        return rlp([*fields, 27 + parity, r, s])

    def send_blob(self, to: str, data: bytes) -> bytes:
        """A transaction of type 3 with one blob."""
        fields: list[Item] = [
            CHAIN_ID, self._next(), GWEI, 10 * GWEI, 150_000, _bytes(to), 0, data, [], 10,
            [b"\x01" + b"\x11" * 31],
        ]  # fmt: skip
        signature = sign(int.from_bytes(SECRET), keccak256(b"\x03" + rlp(fields)))
        return b"\x03" + rlp([*fields, *signature])


def _delegation() -> Authorization:
    """The delegator's authorization for the code that returns fields of its block."""
    fields: list[Item] = [CHAIN_ID, _bytes(SURROUNDED), 0]
    parity, r, s = sign(int.from_bytes(DELEGATOR), keccak256(b"\x05" + rlp(fields)))
    return Authorization(
        chain_id=CHAIN_ID, address=_bytes(SURROUNDED), nonce=0, y_parity=parity, r=r, s=s
    )


def _transactions(sender: _Sender, number: int) -> list[bytes]:
    """The transactions of a block: one that emits a log, and some of the types valid by then."""
    emit = number.to_bytes(32)
    if number == 1:
        return [sender.send_without_chain_id(RICH, 1), sender.send_without_chain_id(EMITTER, 1)]
    found = [sender.send(0, EMITTER, 2, emit)]
    if number == CROWDED:
        return found + [sender.send(0, f"0x{9000 + at:040x}", at) for at in range(CROWD - 1)]
    if number % 5 == 0:
        found.append(sender.send(0, None, 0, INIT))
    if number % 7 == 0:
        found += [sender.send(0, BROKEN), sender.send(0, REVERTER, 0, b"\x00")]
    if number >= BERLIN:
        found.append(sender.send(1, EMITTER, 0, emit))
    if number >= LONDON:
        found.append(sender.send(2, f"0x{9000 + number:040x}", number))
    if number in BLOBS:
        found.append(sender.send_blob(EMITTER, emit))
    if number == DELEGATION:
        found.append(sender.send(4, DELEGATED, 1, b"", [_delegation()]))
    return found


def build(folder: Path) -> list[Block]:
    """The blocks, made in a store in `folder`."""
    chain = ChainBuilder(folder, genesis())
    sender = _Sender()
    uncle: Header | None = None
    for number in range(1, HEAD + 1):
        uncles = [uncle] if uncle is not None and number % 3 == 0 else []
        paid = [(number, 7, b"\x77" * 20, 100)] if number in WITHDRAWALS else []
        uncle = chain.build(extra_data=b"uncle").header if number < MERGED_AT - 1 else None
        chain.add(_transactions(sender, number), uncles, paid)
    chain.store.close()
    return chain.blocks


def write(folder: Path) -> None:
    """The files of the chain: `genesis.json`, `chain.rlp` and `head.json`."""
    blocks = build(folder / "made")
    (folder / "genesis.json").write_bytes(genesis())
    (folder / "chain.rlp").write_bytes(b"".join(block.encode() for block in blocks))
    (folder / "head.json").write_bytes(fork_choice(blocks))
