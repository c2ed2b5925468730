"""The genesis of a dev chain: its forks, predeploys and accounts that can pay at once.

A pure function of its settings, the time included: equal settings give an equal block 0, here and
in every instance that follows the chain. By default it is an OP chain at Jovian; other forks and
Ethereum's rules can be chosen. Karst, which public networks run since July 2026, is not active
unless it is chosen: it changes nothing in a header, but a chain begun without it is another chain.
"""

import json
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from foreblock.errors import BadGenesis, InvalidArgument
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.genesis_file import Genesis, GenesisAccount, read_genesis
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.execution import CONSOLIDATION_REQUESTS, WITHDRAWAL_REQUESTS
from foreblock.ledger.rules.fees import FeeParameters, encode_extra_data
from foreblock.ledger.rules.forks import ETHER, ETHEREUM_RULES_OF, EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import OptimismParameters
from foreblock.primitives import ZERO_ADDRESS, ZERO_HASH, format_data
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.sequencer.predeploys import (
    DETERMINISTIC_DEPLOYER,
    SEQUENCER_FEE_VAULT,
    TOKEN,
    predeploys,
    runs_our_code,
    token,
)
from foreblock.settings import LARGEST_NUMBER, ChainSettings

# The newest whose chains run in public; Karst is not in force unless it is requested.
NEWEST: Final = {"optimism": "jovian", "ethereum": "osaka"}
_BY_BLOCK: Final = (
    "homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock",
    "constantinopleBlock", "petersburgBlock", "istanbulBlock", "muirGlacierBlock", "berlinBlock",
    "londonBlock", "arrowGlacierBlock", "grayGlacierBlock", "mergeNetsplitBlock",
)  # fmt: skip
# Ethereum's are those that the OP forks contain; other clients want both stated.
_OPTIMISM_TIMES: Final = (
    ("regolithTime", OptimismFork.REGOLITH),
    ("shanghaiTime", OptimismFork.CANYON),
    ("canyonTime", OptimismFork.CANYON),
    ("cancunTime", OptimismFork.ECOTONE),
    ("ecotoneTime", OptimismFork.ECOTONE),
    ("fjordTime", OptimismFork.FJORD),
    ("graniteTime", OptimismFork.GRANITE),
    ("holoceneTime", OptimismFork.HOLOCENE),
    ("pragueTime", OptimismFork.ISTHMUS),
    ("isthmusTime", OptimismFork.ISTHMUS),
    ("jovianTime", OptimismFork.JOVIAN),
    ("osakaTime", OptimismFork.KARST),
    ("karstTime", OptimismFork.KARST),
    ("lagoonTime", OptimismFork.LAGOON),
)
_ETHEREUM_TIMES: Final = (
    ("shanghai", EthereumFork.SHANGHAI),
    ("cancun", EthereumFork.CANCUN),
    ("prague", EthereumFork.PRAGUE),
    ("osaka", EthereumFork.OSAKA),
)
# EIP-4844, EIP-7691; other clients want them stated.
_BLOBS: Final = {
    "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
    "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
    "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
}


def rules_named(rules: str, fork: str) -> Rules:
    """The rules of a fork by its name, or of the newest that is in force in public."""
    names, name = fork_names(rules), fork.lower()
    if name in {"newest", "latest"}:
        name = NEWEST[rules]
    if name not in names:
        raise InvalidArgument(f"fork: {fork!r} is none of {', '.join(names)}")
    if rules == "ethereum":
        return Rules(EthereumFork[name.upper()])
    optimism = OptimismFork[name.upper()]
    return Rules(ETHEREUM_RULES_OF[optimism], optimism)


def fork_names(rules: str) -> list[str]:
    """The forks that a dev chain may have, in order."""
    if rules == "optimism":
        return [fork.name.lower() for fork in OptimismFork]
    if rules == "ethereum":
        return [fork.name.lower() for fork in EthereumFork if fork >= EthereumFork.PARIS]
    raise InvalidArgument(f"rules: {rules!r} is neither optimism nor ethereum")


def fork_config(rules: Rules) -> dict[str, object]:
    """The part of a genesis `config` that states these forks, from block 0 on."""
    config: dict[str, object] = dict.fromkeys(_BY_BLOCK, 0)
    if rules.optimism is not None:
        config["bedrockBlock"] = 0
        config |= {key: 0 for key, fork in _OPTIMISM_TIMES if rules.optimism >= fork}
        return config
    begun = [name for name, fork in _ETHEREUM_TIMES if rules.ethereum >= fork]
    config |= {f"{name}Time": 0 for name in begun}
    if blobs := {name: _BLOBS[name] for name in begun if name in _BLOBS}:
        config["blobSchedule"] = blobs
    if rules.ethereum >= EthereumFork.PRAGUE:
        # None exists, as on other dev chains.
        config["depositContractAddress"] = "0x" + "00" * 20
    return config


TOKENS_EACH: Final = 1_000_000 * ETHER  # the token has 18 decimals too

# 2026-01-01T00:00:00Z. Not the time of the start, so that a chain without options is the same
# chain everywhere; and not 0, so that contracts that look a year back find one.
DEFAULT_TIMESTAMP: Final = 1_767_225_600

# In the config: the chain has transactions without a signature.
UNSIGNED: Final = "unsignedTransactions"

# Base's of 2026. With them, and the gas limit of the settings, a block's target is 80,000,000 gas,
# above what 1,000 transfers and token transfers a second use, so that the base fee moves under
# real pressure only.
ELASTICITY: Final = 5
DENOMINATOR: Final = 100


def dev_genesis(
    chain: ChainSettings, began: int = 0, preset: Mapping[bytes, GenesisAccount] | None = None
) -> Genesis:
    """The genesis of the dev chain with these settings; its base fee is also the minimum.

    `began` is the timestamp of block 0 if the settings have none. `preset` has further accounts,
    which replace those of the same address.
    """
    rules = rules_named(chain.rules, chain.fork)
    config = JsonValue(_config(chain, rules), "config", BadGenesis)
    fees = FeeParameters(DENOMINATOR, ELASTICITY, chain.base_fee)
    cancun = rules.ethereum >= EthereumFork.CANCUN
    genesis = Genesis(
        profile=read_profile(config),
        config=config.text(),
        accounts=_accounts(chain, rules) | dict(preset or {}),
        rules=rules,
        difficulty=0,
        timestamp=chain.timestamp or began or DEFAULT_TIMESTAMP,
        gas_limit=chain.gas_limit,
        gas_used=0,
        extra_data=b"" if rules.optimism is None else encode_extra_data(fees, rules.optimism),
        nonce=bytes(8),
        mix_hash=ZERO_HASH,
        coinbase=ZERO_ADDRESS if rules.optimism is None else SEQUENCER_FEE_VAULT,
        parent_hash=ZERO_HASH,
        base_fee=chain.base_fee,
        blob_gas_used=0 if cancun else None,
        excess_blob_gas=0 if cancun else None,
    )
    _need_request_contracts(genesis)
    return genesis


def read_dev_genesis(text: bytes) -> Genesis:
    """A genesis file for a dev chain, or `BadGenesis` if the sequencer cannot continue from it."""
    genesis = read_genesis(text)
    if not genesis.profile.merged(genesis.difficulty):
        raise BadGenesis("config", "a dev chain needs a chain after the merge from block 0 on")
    if genesis.profile.optimism is not None:
        _refuse_later_forks(genesis, genesis.profile.optimism)
    _need_request_contracts(genesis)
    return _with_unsigned(genesis)


def _with_unsigned(genesis: Genesis) -> Genesis:
    """The genesis, with transactions without a signature, as on every dev chain."""
    if genesis.profile.optimism is not None:
        return genesis
    config = JsonValue(json.loads(genesis.config) | {UNSIGNED: True}, "config", BadGenesis)
    return replace(genesis, config=config.text(), profile=read_profile(config))


def _need_request_contracts(genesis: Genesis) -> None:
    """Refuse a genesis whose blocks could not end (EIP-7002, EIP-7251)."""
    profile = genesis.profile
    if profile.optimism or all(fork != EthereumFork.PRAGUE for _, fork in profile.forks_by_time):
        return
    for contract in (WITHDRAWAL_REQUESTS, CONSOLIDATION_REQUESTS):
        if contract not in genesis.accounts or not genesis.accounts[contract].code:
            what = f"blocks of Prague need the contract {format_data(contract)}"
            raise BadGenesis("alloc", what)


def _refuse_later_forks(genesis: Genesis, optimism: OptimismParameters) -> None:
    """Refuse forks that begin with transactions of their own, which come from L1."""
    for start, fork in optimism.forks:
        if start > genesis.timestamp and fork < OptimismFork.KARST:
            what = f"{fork.name.title()} has to be in force at block 0, or never"
            raise BadGenesis("config", what)


def _accounts(chain: ChainSettings, rules: Rules) -> dict[bytes, GenesisAccount]:
    made = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
    owners = tuple(each.address for each in made)
    accounts = predeploys(rules, base_time=chain.base_time)
    if not chain.create2_deployer:
        del accounts[DETERMINISTIC_DEPLOYER]
    accounts |= {owner: GenesisAccount(balance=chain.balance * ETHER) for owner in owners}
    if runs_our_code(rules):
        accounts[TOKEN] = token(owners, TOKENS_EACH)
    return accounts


def _config(chain: ChainSettings, rules: Rules) -> dict[str, object]:
    config: dict[str, object] = {
        "chainId": chain.chain_id,
        **fork_config(rules),
        "terminalTotalDifficulty": 0,
    }
    if chain.code_size:
        config["codeSizeLimit"] = chain.code_size
    if chain.transaction_gas > (rules.transaction_gas_cap or LARGEST_NUMBER):
        config["transactionGasLimit"] = chain.transaction_gas
    block_time = int(chain.block_time) if chain.block_time >= 1 else chain.block_time
    if rules.optimism is None:
        return config | {"blockTime": block_time, UNSIGNED: True}
    return config | {
        "optimism": {
            "eip1559Elasticity": ELASTICITY,
            "eip1559Denominator": DENOMINATOR,
            "eip1559DenominatorCanyon": DENOMINATOR,
            "blockTime": block_time,
        },
    }
