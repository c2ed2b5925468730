"""A file with one block and its witness, as JSON, compressed by gzip or not.

There are two forms. With attributes, as kona's fixtures have them: the block is built here.

    chain                configuration of the rollup
    parent_header        header of the block before, as JSON-RPC shows it
    executing_payload    attributes and raw transactions
    expected_block_hash
    preimages            texts by their hashes: trie nodes, codes, headers

And with a whole block, as endpoints give it:

    chain      configuration of a rollup or `config` of a genesis, or the name of a known chain
    block      answer of debug_getRawBlock
    witness    answer of debug_executionWitness

Reading is strict; nothing else is believed: every text is found by the hash that it has.
"""

import zlib
from pathlib import Path
from typing import Final

from foreblock.chains.chain_file import ChainFacts, preset, profile_of
from foreblock.errors import BadChain, BadWitness, Undecodable
from foreblock.ledger.building.witness_execution import Attributes, WitnessedBlock
from foreblock.ledger.genesis.config import read_block_time, read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.fees import FeeParameters
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import ChainProfile, OptimismParameters
from foreblock.primitives import ZERO_ADDRESS
from foreblock.types import Block, Header, decode_block, decode_header
from foreblock.upstream.block_json import rebuild_header

_SUFFIX: Final = "_time"
# Times that are not forks, and forks that only change how blocks are derived.
_WITHOUT_EFFECT: Final = {"block", "delta", "pectra_blob_schedule", "l2"}
_FORKS: Final = {fork.name.lower(): fork for fork in OptimismFork if fork > OptimismFork.BEDROCK}
# The constants of OP Mainnet, which a configuration that leaves them out means.
_ELASTICITY: Final = 6
_DENOMINATOR: Final = 50
_DENOMINATOR_CANYON: Final = 250


def read_rollup_config(config: JsonValue, time: int) -> ChainProfile:
    """The profile for a block of this time; refuses a configuration that cannot be meant."""
    fees = config.get("chain_op_config")

    def constant(key: str, default: int) -> int:
        stated = None if fees is None else fees.get(key)
        number = default if stated is None else stated.number(32)
        if not number and stated is not None:
            stated.refuse("must not be zero")
        return number

    return ChainProfile(
        chain_id=config.need("l2_chain_id").number(),
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=ZERO_ADDRESS,
        optimism=OptimismParameters(
            forks=((0, OptimismFork.BEDROCK), *_forks(config, time)),
            elasticity=constant("eip1559Elasticity", _ELASTICITY),
            denominator=constant("eip1559Denominator", _DENOMINATOR),
            denominator_canyon=constant("eip1559DenominatorCanyon", _DENOMINATOR_CANYON),
            block_time=read_block_time(config.need("block_time")),
        ),
    )


def _forks(config: JsonValue, time: int) -> list[tuple[int, OptimismFork]]:
    """The forks that are stated, in order; Regolith has been there from the first block on."""
    found = {OptimismFork.REGOLITH: 0}
    for key, member in config.items():
        name = key.removesuffix(_SUFFIX)
        if name == key or name in _WITHOUT_EFFECT or member.value is None:
            continue
        begins = member.number()
        if name in _FORKS:
            found[_FORKS[name]] = begins
        elif begins <= time:
            member.refuse("a fork that foreblock cannot execute, begun before this block")
    schedule = sorted((fork, begins) for fork, begins in found.items())
    last = 0
    for fork, begins in schedule:
        if begins < last:
            config.need(f"{fork.name.lower()}{_SUFFIX}").refuse("begins before the fork before it")
        last = begins
    return [(begins, fork) for fork, begins in schedule]


LONGEST: Final = 1 << 30  # bytes of JSON
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31  # zlib's number for gzip with any window
_FEE_BYTES: Final = 8


def read_witness(path: Path, chain: ChainFacts | None = None) -> WitnessedBlock:
    """The block of a file; `chain` is the default of its chain. Raises `BadWitness`."""
    return parse_witness(_unpacked(path.read_bytes()), chain)


def parse_witness(text: bytes, chain: ChainFacts | None = None) -> WitnessedBlock:
    """The block in this JSON text. Raises `BadWitness`."""
    file = JsonValue.parse(text, BadWitness)
    if file.get("block") is not None:
        return _whole(file, chain)
    return _with_attributes(file, chain)


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(_GZIP):
        return content
    reader = zlib.decompressobj(_GZIP_WINDOW)
    try:
        text = reader.decompress(content, LONGEST)
    except zlib.error as why:
        raise BadWitness("file", f"not gzip: {why}") from why
    if not reader.eof:
        longer = bool(reader.unconsumed_tail)
        raise BadWitness("file", f"longer than {LONGEST} bytes" if longer else "cut short")
    return text


def _with_attributes(file: JsonValue, chain: ChainFacts | None) -> WitnessedBlock:
    payload = file.need("executing_payload")
    profile = _profile(file, chain, payload.need("timestamp").number())
    if profile.optimism is None:
        file.need("chain").refuse("attributes are of OP chains")
    return WitnessedBlock(
        profile=profile,
        parent=_header(file.need("parent_header")),
        content=_attributes(payload),
        texts=[text.data() for _, text in file.need("preimages").items()],
        expected=file.need("expected_block_hash").hash(),
    )


def _attributes(payload: JsonValue) -> Attributes:
    root, fees = payload.get("parentBeaconBlockRoot"), payload.get("eip1559Params")
    withdrawals = payload.get("withdrawals")
    if withdrawals is not None and withdrawals.value != []:
        withdrawals.refuse("expected an empty list")
    lowest = payload.get("minBaseFee")
    return Attributes(
        timestamp=payload.need("timestamp").number(),
        prev_randao=payload.need("prevRandao").hash(),
        fee_recipient=payload.need("suggestedFeeRecipient").address(),
        gas_limit=payload.need("gasLimit").number(),
        parent_beacon_block_root=None if root is None else root.hash(),
        fees=None if fees is None else _fees(fees, 0 if lowest is None else lowest.number()),
        transactions=tuple(each.data() for each in payload.need("transactions").elements()),
    )


def _fees(stated: JsonValue, lowest: int) -> FeeParameters:
    packed = stated.data(_FEE_BYTES)
    return FeeParameters(int.from_bytes(packed[:4]), int.from_bytes(packed[4:]), lowest)


def _whole(file: JsonValue, chain: ChainFacts | None) -> WitnessedBlock:
    block = _block(file.need("block"))
    if block.uncles:
        file.need("block").refuse("a block with uncles cannot be executed from a witness")
    witness = file.need("witness")
    headers = {header.hash: header for header in map(_header, witness.need("headers").elements())}
    parent = headers.get(block.header.parent_hash)
    if parent is None:
        witness.need("headers").refuse("the header of the block's parent is not among them")
    return WitnessedBlock(
        profile=_profile(file, chain, block.header.timestamp),
        parent=parent,
        content=block,
        texts=[
            *_texts(witness.need("state")),
            *_texts(witness.need("codes")),
            *(header.encode() for header in headers.values()),
        ],
        expected=block.hash,
    )


def _texts(listed: JsonValue) -> list[bytes]:
    """Bytes in a list, or by their hashes as older nodes write them."""
    if isinstance(listed.value, dict):
        return [text.data() for _, text in listed.items()]
    return [text.data() for text in listed.elements()]


def _block(stated: JsonValue) -> Block:
    raw = stated.data()
    try:
        block, end = decode_block(raw)
    except Undecodable as why:
        stated.refuse(str(why))
    if end != len(raw):
        stated.refuse(f"{len(raw) - end} bytes after the block")
    return block


def _header(stated: JsonValue) -> Header:
    """A header as JSON-RPC shows it, or its encoding."""
    if isinstance(stated.value, dict):
        return stated.read(rebuild_header)
    try:
        return decode_header(stated.data())
    except Undecodable as why:
        stated.refuse(str(why))


def _profile(file: JsonValue, chain: ChainFacts | None, time: int) -> ChainProfile:
    stated = file.get("chain")
    if stated is None:
        return _known(chain, time) if chain is not None else read_profile(file.need("chain"))
    if isinstance(stated.value, str):
        try:
            return _known(preset(stated.value), time)
        except BadChain as why:
            stated.refuse(why.why)
    if stated.get("l2_chain_id") is not None:
        return read_rollup_config(stated, time)
    return read_profile(stated)


def _known(chain: ChainFacts, time: int) -> ChainProfile:
    end = chain.rules_end
    if end is not None and time >= end:
        raise BadWitness("chain", f"{chain.name} has rules since {end} that foreblock lacks")
    return profile_of(chain)
