"""The `config` section of a genesis file in geth's format, read into a profile.

A key that names a fork must be one that foreblock executes, or one known to change nothing
that is executed or checked. Everything else is refused: an import under rules that only nearly
fit would fail later, with a less useful message.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from foreblock.clock import is_block_time
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import (
    BlobParameters,
    ChainProfile,
    OptimismParameters,
    Schedule,
)

_FORKS_BY_BLOCK: Final = (
    ("homesteadBlock", EthereumFork.HOMESTEAD),
    ("eip150Block", EthereumFork.TANGERINE),
    ("eip158Block", EthereumFork.SPURIOUS_DRAGON),
    ("byzantiumBlock", EthereumFork.BYZANTIUM),
    ("constantinopleBlock", EthereumFork.CONSTANTINOPLE),
    ("petersburgBlock", EthereumFork.PETERSBURG),
    ("istanbulBlock", EthereumFork.ISTANBUL),
    ("muirGlacierBlock", EthereumFork.MUIR_GLACIER),
    ("berlinBlock", EthereumFork.BERLIN),
    ("londonBlock", EthereumFork.LONDON),
    ("arrowGlacierBlock", EthereumFork.ARROW_GLACIER),
    ("grayGlacierBlock", EthereumFork.GRAY_GLACIER),
)
_FORKS_BY_TIME: Final = (
    ("shanghaiTime", EthereumFork.SHANGHAI),
    ("cancunTime", EthereumFork.CANCUN),
    ("pragueTime", EthereumFork.PRAGUE),
    ("osakaTime", EthereumFork.OSAKA),
)
_OPTIMISM_FORKS: Final = (
    ("regolithTime", OptimismFork.REGOLITH),
    ("canyonTime", OptimismFork.CANYON),
    ("ecotoneTime", OptimismFork.ECOTONE),
    ("fjordTime", OptimismFork.FJORD),
    ("graniteTime", OptimismFork.GRANITE),
    ("holoceneTime", OptimismFork.HOLOCENE),
    ("isthmusTime", OptimismFork.ISTHMUS),
    ("jovianTime", OptimismFork.JOVIAN),
    ("karstTime", OptimismFork.KARST),
    ("lagoonTime", OptimismFork.LAGOON),
)
# Forks that a chain may leave out while it has later ones.
_MAY_BE_ABSENT: Final = {
    "petersburgBlock",  # then it begins with Constantinople, as in geth
    "muirGlacierBlock",
    "arrowGlacierBlock",
    "grayGlacierBlock",
}
# An OP chain states some Ethereum forks too; they begin with the OP forks that contain them.
_STATED_TWICE: Final = {
    "shanghaiTime": "canyonTime",
    "cancunTime": "ecotoneTime",
    "pragueTime": "isthmusTime",
    "osakaTime": "karstTime",
}
# Forks that change only how many blobs a block holds (EIP-7892).
_BLOB_FORKS: Final = tuple(f"bpo{i}" for i in range(1, 6))
# Blob parameters where the genesis leaves them out: EIP-4844 and EIP-7691.
_BLOB_DEFAULTS: Final = {
    "cancun": BlobParameters(3, 6, 3_338_477),
    "prague": BlobParameters(6, 9, 5_007_716),
    "osaka": BlobParameters(6, 9, 5_007_716),
}
# Keys without effect here, whatever their value.
_WITHOUT_EFFECT: Final = {
    "eip150Hash",
    "ethash",
    "mergeNetsplitBlock",
    "terminalTotalDifficultyPassed",
    "deltaTime",  # changes how blocks are derived from L1, not their execution
}
_OTHER_KEYS: Final = {
    "chainId",
    "eip155Block",
    "daoForkBlock",
    "daoForkSupport",
    "terminalTotalDifficulty",
    "depositContractAddress",
    "blobSchedule",
    "bedrockBlock",
    "optimism",
    # Our own, which other clients ignore: for chains with other than 12 seconds, longer code, or
    # transactions with more gas or without a signature.
    "blockTime",
    "codeSizeLimit",
    "transactionGasLimit",
    "unsignedTransactions",
}
# `blockTime` is our own, for chains with other than 2 seconds; other clients ignore it.
_OPTIMISM_KEYS: Final = {
    "eip1559Elasticity",
    "eip1559Denominator",
    "eip1559DenominatorCanyon",
    "blockTime",
}
_KNOWN: Final = (
    {key for key, _ in (*_FORKS_BY_BLOCK, *_FORKS_BY_TIME, *_OPTIMISM_FORKS)}
    | {f"{fork}Time" for fork in _BLOB_FORKS}
    | _WITHOUT_EFFECT
    | _OTHER_KEYS
)
# EIP-6110: the mainnet contract, which a genesis that names none means.
_MAINNET_DEPOSIT_CONTRACT: Final = bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")

F = TypeVar("F")


def read_profile(config: JsonValue) -> ChainProfile:
    """The profile that a genesis `config` describes."""
    _refuse_unknown(config)
    _refuse_dao_fork(config)
    _check_replay_protection(config)
    optimism = config.get("optimism")
    if optimism is not None:
        profile = _optimism_profile(config, optimism)
    else:
        profile = _ethereum_profile(config)
    unsigned = config.get("unsignedTransactions")
    if unsigned is not None and unsigned.boolean():
        if optimism is not None:
            unsigned.refuse("an OP chain has deposits for them")
        profile = replace(profile, unsigned=True)
    code_size, gas = config.get("codeSizeLimit"), config.get("transactionGasLimit")
    return replace(
        profile,
        code_size=None if code_size is None else _positive(code_size),
        transaction_gas=None if gas is None else _positive(gas),
    )


def _ethereum_profile(config: JsonValue) -> ChainProfile:
    for key, _ in (("bedrockBlock", None), *_OPTIMISM_FORKS):
        _refuse_if_set(config, key, "a fork of OP chains, but there is no optimism section")
    by_time = _schedule(config, _FORKS_BY_TIME)
    terminal = config.get("terminalTotalDifficulty")
    if by_time and terminal is None:
        config.need("terminalTotalDifficulty")
    deposit_contract = config.get("depositContractAddress")
    block_time = config.get("blockTime")
    return ChainProfile(
        chain_id=config.need("chainId").number(),
        forks_by_block=_schedule(config, _FORKS_BY_BLOCK),
        forks_by_time=by_time,
        blob_schedule=_blob_schedule(config),
        terminal_total_difficulty=None if terminal is None else terminal.number(256),
        deposit_contract=_MAINNET_DEPOSIT_CONTRACT
        if deposit_contract is None
        else deposit_contract.address(),
        optimism=None,
        slot_time=12 if block_time is None else read_block_time(block_time),
    )


def _optimism_profile(config: JsonValue, section: JsonValue) -> ChainProfile:
    section.known(_OPTIMISM_KEYS)
    if config.need("bedrockBlock").number() != 0:
        config.need("bedrockBlock").refuse("blocks before Bedrock cannot be executed")
    forks = _schedule(config, _OPTIMISM_FORKS)
    for stated, containing in _STATED_TWICE.items():
        _check_stated_twice(config, stated, containing)
    denominator = _positive(section.need("eip1559Denominator"))
    canyon = section.get("eip1559DenominatorCanyon")
    block_time = section.get("blockTime")
    return ChainProfile(
        chain_id=config.need("chainId").number(),
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=bytes(20),
        optimism=OptimismParameters(
            forks=((0, OptimismFork.BEDROCK), *forks),
            elasticity=_positive(section.need("eip1559Elasticity")),
            denominator=denominator,
            denominator_canyon=denominator if canyon is None else _positive(canyon),
            block_time=2 if block_time is None else read_block_time(block_time),
        ),
    )


def _schedule(config: JsonValue, ladder: Sequence[tuple[str, F]]) -> Schedule[F]:
    """The forks of one ladder that are set; they must be in order and without gaps."""
    schedule: list[tuple[int, F]] = []
    hole: str | None = None
    for key, fork in ladder:
        start = config.get(key)
        if start is None:
            hole = hole if key in _MAY_BE_ABSENT else key
            continue
        if hole is not None:
            start.refuse(f"set, but {hole} before it is not")
        if schedule and start.number() < schedule[-1][0]:
            start.refuse(f"begins at {start.number()}, before the fork it builds on")
        schedule.append((start.number(), fork))
    return tuple(schedule)


def _blob_schedule(config: JsonValue) -> Schedule[BlobParameters]:
    stated = config.get("blobSchedule")
    schedule: list[tuple[int, BlobParameters]] = []
    for fork in (*_BLOB_DEFAULTS, *_BLOB_FORKS):
        start = config.get(f"{fork}Time")
        if start is None:
            continue
        if schedule and start.number() < schedule[-1][0]:
            start.refuse(f"begins at {start.number()}, before the fork it builds on")
        entry = None if stated is None else stated.get(fork)
        schedule.append((start.number(), _blob_parameters(start, entry, fork)))
    return tuple(schedule)


def _blob_parameters(start: JsonValue, entry: JsonValue | None, fork: str) -> BlobParameters:
    if entry is None:
        if fork not in _BLOB_DEFAULTS:
            start.refuse(f"set, but blobSchedule has no entry {fork}")
        return _BLOB_DEFAULTS[fork]
    parameters = BlobParameters(
        target=entry.need("target").number(),
        maximum=_positive(entry.need("max")),
        update_fraction=_positive(entry.need("baseFeeUpdateFraction")),
    )
    if parameters.target > parameters.maximum:
        entry.need("target").refuse("above max")
    return parameters


def _refuse_unknown(config: JsonValue) -> None:
    for key, member in config.items():
        if key in _KNOWN or member.value is None:
            continue
        if key.endswith(("Time", "Block")):
            member.refuse("a fork that foreblock cannot execute")
        member.refuse("not a key that foreblock knows")


def _refuse_dao_fork(config: JsonValue) -> None:
    """Refuse the DAO fork: it moves balances by a list that only Ethereum's main network has."""
    support = config.get("daoForkSupport")
    if support is not None and support.boolean():
        _refuse_if_set(config, "daoForkBlock", "the DAO fork cannot be executed")


def _check_replay_protection(config: JsonValue) -> None:
    """Check that both keys of Spurious Dragon agree: geth's format has two for the one fork."""
    protection = config.get("eip155Block")
    cleaning = config.get("eip158Block")
    if (protection and protection.number()) != (cleaning and cleaning.number()):
        (protection or config).refuse("eip155Block and eip158Block must be equal")


def _check_stated_twice(config: JsonValue, stated: str, containing: str) -> None:
    ethereum = config.get(stated)
    optimism = config.get(containing)
    if ethereum is None:
        return
    if optimism is None or optimism.number() != ethereum.number():
        ethereum.refuse(f"must equal {containing} on an OP chain")


def _refuse_if_set(config: JsonValue, key: str, why: str) -> None:
    member = config.get(key)
    if member is not None:
        member.refuse(why)


def read_block_time(value: JsonValue) -> float:
    """Whole seconds, or a part of one as a JSON number."""
    part = value.value
    return part if isinstance(part, float) and is_block_time(part) else _positive(value)


def _positive(value: JsonValue) -> int:
    number = value.number()
    if number == 0:
        value.refuse("must not be zero")
    return number
