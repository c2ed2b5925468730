"""Random payloads of eth_simulateV1, as JSON: a little of every field and kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from differential.authorizations import AUTHORITIES, authorization_lists

Json = dict[str, Any]

CHAIN_ID = 3503995874084926  # of the public suite's chain
# Forks of the public suite's chain. geth simulates the merge by its number, foreblock by the total
# difficulty, so no request reaches it from below.
BERLIN, LONDON, MERGE = 24, 27, 36
SHANGHAI_TIME, CANCUN_TIME, PRAGUE_TIME = 390, 420, 450

MOST_BLOCKS = 4

PEOPLE = [f"0xc{i}" + "00" * 19 for i in range(4)]
CONTRACTS = [f"0xd{i}" + "00" * 19 for i in range(4)]
PRECOMPILES = ["0x" + f"{i:040x}" for i in (1, 2, 4, 5, 9, 0x100)]
STRANGERS = [
    "0x" + "00" * 20,
    "0x" + "00" * 17 + "123456",
    "0x7435ed30a8b4aeb0877cef0c6e8cffe834eb865f",
]


@dataclass(frozen=True)
class Base:
    """The parent block of a simulation."""

    number: int
    time: int

    @property
    def unhashed(self) -> bool:
        """Return whether hashes of later blocks are known to differ."""
        return self.number >= MERGE and self.time < SHANGHAI_TIME


# Opcodes with few requirements and large effects, so that random code makes progress. Zeros for
# calls are pushed in a form valid in every fork.
BLOCKHASH = b"\x40"
_pushes = st.binary(min_size=1, max_size=4).map(lambda data: bytes([0x5F + len(data)]) + data)
_opcodes = st.sampled_from(
    [bytes([each]) for each in b"\x00\x01\x10\x14\x20\x30\x31\x32\x33\x34\x35\x36\x3a\x3b\x3f\x40"
     b"\x41\x42\x43\x44\x45\x46\x47\x48\x49\x4a\x50\x51\x52\x54\x55\x56\x57\x58\x59\x5a\x5b\x5c"
     b"\x5d\x5f\x80\x81\x90\xa0\xa1\xf0\xf3\xfd\xfe\xff"]
)  # fmt: skip


def _addresses() -> st.SearchStrategy[str]:
    return st.sampled_from([*PEOPLE, *CONTRACTS, *PRECOMPILES, *STRANGERS, *AUTHORITIES])


def _call_out(to: str, value: int, kind: int) -> bytes:
    value = value if kind == 0xF1 else 0
    words = b"\x60\x00" * 4 + (b"\x60" + bytes([value]) if kind in (0xF1, 0xF2) else b"")
    return words + b"\x73" + bytes.fromhex(to[2:]) + b"\x61\xff\xff" + bytes([kind, 0x50])


_calls_out = st.builds(
    _call_out, _addresses(), st.integers(0, 3), st.sampled_from([0xF1, 0xF2, 0xF4, 0xFA])
)
_kills = _addresses().map(lambda to: b"\x73" + bytes.fromhex(to[2:]) + b"\xff")
_answers = st.just(bytes.fromhex("60206000f3"))


def _codes(opcodes: st.SearchStrategy[bytes]) -> st.SearchStrategy[str]:
    return st.lists(_pushes | opcodes | _calls_out | _kills | _answers, max_size=14).map(
        lambda parts: "0x" + b"".join(parts).hex()
    )


codes = _codes(_opcodes)
codes_without_hashes = _codes(_opcodes.filter(lambda opcode: opcode != BLOCKHASH))


def _hex(strategy: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    return strategy.map(hex)


_words = st.integers(0, 3).map(lambda number: f"0x{number:064x}")
_slots = st.dictionaries(_words, _words, max_size=3)
_fees: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.just({}),
    st.just({"maxFeePerGas": hex(10**9), "maxPriorityFeePerGas": "0x3"}),
    st.fixed_dictionaries({"gasPrice": _hex(st.sampled_from([0, 30, 10**9, 10**9]))}),
    st.fixed_dictionaries(
        {"maxFeePerGas": _hex(st.sampled_from([30, 10**9, 10**9]))},
        optional={"maxPriorityFeePerGas": _hex(st.sampled_from([0, 1, 8, 31]))},
    ),
)
_lists: st.SearchStrategy[Json] = st.one_of(
    st.just({}),
    st.builds(
        lambda address, keys: {"accessList": [{"address": address, "storageKeys": keys}]},
        _addresses(),
        st.lists(_words, max_size=2),
    ),
)


@st.composite
def calls(draw: st.DrawFn, codes: st.SearchStrategy[str], base: Base) -> Json:
    """A call of any kind in the base's fork, except those that crash geth."""
    call: Json = {"from": draw(st.sampled_from([*PEOPLE * 4, CONTRACTS[0], AUTHORITIES[0]]))}
    if draw(st.integers(0, 9)):
        call["to"] = draw(_addresses())
    call |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "value": _hex(st.sampled_from([0, 1, 1000, 10**18])),
                "gas": _hex(st.sampled_from([60_000, 200_000, 1_000_000, 5_000_000])),
                "input": codes,
            },
        )
    )
    if not draw(st.integers(0, 19)):
        call |= draw(
            st.sampled_from(
                [{"nonce": "0x0"}, {"nonce": "0x1"}, {"nonce": hex(2**64 - 1)}, {"gas": "0x5207"},
                 {"value": hex(10**24)}, {"gas": hex(10**9)}]
            )
        )  # fmt: skip
    if base.number >= BERLIN:
        call |= draw(_lists)
    if base.number >= LONDON:
        call |= draw(_fees)
    if "to" in call and base.time >= CANCUN_TIME and not draw(st.integers(0, 11)):
        call["blobVersionedHashes"] = ["0x01" + "00" * 31]
        call["maxFeePerBlobGas"] = draw(st.sampled_from(["0x1", "0x5"]))
    elif "to" in call and base.time >= PRAGUE_TIME and not draw(st.integers(0, 5)):
        call["authorizationList"] = draw(authorization_lists(CHAIN_ID, CONTRACTS))
    return call


@st.composite
def accounts(draw: st.DrawFn, codes: st.SearchStrategy[str], *, first: bool) -> dict[str, Json]:
    """Overrides: accounts are funded at first, contracts have code, precompiles move."""
    found: dict[str, Json] = {}
    funded = (
        [*PEOPLE, *AUTHORITIES] if first else draw(st.lists(st.sampled_from(PEOPLE), max_size=1))
    )
    for who in funded:
        found[who] = {"balance": hex(20 * 10**18)}
    fields = st.fixed_dictionaries(
        {"code": codes},
        optional={"balance": _hex(st.integers(0, 2000)), "nonce": _hex(st.integers(0, 2))},
    )
    for who in draw(st.lists(st.sampled_from(CONTRACTS), max_size=3, unique=True)):
        found[who] = draw(fields)
        storage = draw(st.sampled_from([None, "state", "stateDiff"]))
        if storage is not None:
            found[who][storage] = draw(_slots)
    if not draw(st.integers(0, 7)):
        target = draw(st.sampled_from([STRANGERS[1], CONTRACTS[3]]))
        found[draw(st.sampled_from(PRECOMPILES))] = {"movePrecompileToAddress": target}
    return found


_withdrawals = st.lists(
    st.fixed_dictionaries(
        {
            "index": _hex(st.integers(0, 3)),
            "validatorIndex": _hex(st.integers(0, 3)),
            "address": _addresses(),
            "amount": _hex(st.integers(1, 5)),
        }
    ),
    max_size=2,
)


def _block_overrides(base: Base, number: int, time: int) -> st.SearchStrategy[Json]:
    """Fields of the block at this position, if they exist in the base's fork."""
    fields: dict[str, st.SearchStrategy[object]] = {
        "number": st.just(hex(number)),
        "gasLimit": _hex(st.sampled_from([6_000_000, 30_000_000, 200_000_000])),
        "feeRecipient": st.sampled_from(PEOPLE),
    }
    if base.number >= LONDON:
        fields["baseFeePerGas"] = _hex(st.sampled_from([0, 7, 30]))
    if base.number >= MERGE:
        fields |= {"time": st.just(hex(time)), "prevRandao": _words}
    if base.time >= SHANGHAI_TIME:
        fields["withdrawals"] = _withdrawals
    if base.time >= CANCUN_TIME:
        fields |= {"blobBaseFee": _hex(st.sampled_from([0, 1, 3])), "beaconRoot": _words}
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def payloads(draw: st.DrawFn, bases: Sequence[Base]) -> tuple[Base, Json]:
    """Up to four blocks of up to four calls, most often after the last of these blocks."""
    blocks = []
    apart = [each for each in bases if each.number + MOST_BLOCKS < MERGE or each.number >= MERGE]
    base = draw(st.just(bases[-1]) | st.sampled_from(apart))
    number, time = base.number, base.time
    programs = codes_without_hashes if base.unhashed else codes
    for index in range(draw(st.integers(1, MOST_BLOCKS))):
        number += 1 if base.number < MERGE else draw(st.sampled_from([1, 1, 1, 2, 5]))
        time += draw(st.sampled_from([13, 60, 61, 100, 1000]))
        overrides = _block_overrides(base, number, time)
        blocks.append(
            {
                "calls": draw(st.lists(calls(programs, base), max_size=4)),
                "stateOverrides": draw(accounts(programs, first=index == 0)),
                "blockOverrides": draw(overrides if draw(st.integers(0, 2)) else st.just({})),
            }
        )
    return base, {
        "blockStateCalls": blocks,
        "traceTransfers": draw(st.booleans()),
        "validation": not draw(st.integers(0, 3)),
        "returnFullTransactions": draw(st.booleans()),
    }
