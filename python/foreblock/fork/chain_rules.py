"""The configuration of a local chain on a fork: the rules of the other chain at the fork block.

A chain that foreblock knows has the forks of its file, Ethereum's public networks those of their
times. Of other chains the header of the block shows what is in force: an OP chain by the fee
parameters in its extra data, Ethereum's forks by the fields that they added. Prague and Osaka have
the same fields; Osaka is assumed. Settings that name rules or a fork decide instead. Blocks of
Amsterdam are refused: the engine does not have all of its rules.
"""

import json
from typing import Any, Final

from foreblock.chains.chain_file import ChainFacts, config_of, names, preset
from foreblock.errors import BadGenesis, BadSetting
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, EthereumFork, OptimismFork, Rules
from foreblock.sequencer.dev_genesis import (
    DENOMINATOR,
    ELASTICITY,
    NEWEST,
    UNSIGNED,
    fork_config,
    rules_named,
)
from foreblock.settings import LARGEST_NUMBER, ChainSettings
from foreblock.types import Header

# When Osaka began, by chain id: Ethereum, Sepolia, Hoodi.
OSAKA_TIMES: Final = {1: 1_764_798_551, 11_155_111: 1_760_427_360, 560_048: 1_761_677_592}
# Versions of the fee parameters in extra data, with their lengths.
_HOLOCENE: Final = (0, 9)
_JOVIAN: Final = (1, 17)


def known_chain(chain_id: int) -> ChainFacts | None:
    """The chain of this id, if foreblock has its file."""
    found = (preset(name) for name in names())
    return next((each for each in found if each.chain_id == chain_id), None)


def config_of_fork(chain: ChainSettings, chain_id: int, local_id: int, header: Header) -> bytes:
    """The configuration of the local chain, as in a genesis, on a block of the chain `chain_id`."""
    facts = known_chain(chain_id)
    if facts is not None and chain.fork == "newest":
        config: dict[str, Any] = json.loads(config_of(facts))
        rules = read_profile(JsonValue(config, "config", BadGenesis)).rules(
            header.number, header.timestamp, merged=True
        )
        config["chainId"] = local_id
        config["optimism"]["blockTime"] = chain.block_time
    else:
        rules = _rules(chain, chain_id, header)
        config = {"chainId": local_id, **fork_config(rules), "terminalTotalDifficulty": 0}
        if rules.optimism is None:
            config |= {"blockTime": chain.block_time, UNSIGNED: True}
        else:
            config["optimism"] = {
                "eip1559Elasticity": ELASTICITY,
                "eip1559Denominator": DENOMINATOR,
                "eip1559DenominatorCanyon": DENOMINATOR,
                "blockTime": chain.block_time,
            }
    if chain.code_size:
        config["codeSizeLimit"] = chain.code_size
    if chain.transaction_gas > (rules.transaction_gas_cap or LARGEST_NUMBER):
        config["transactionGasLimit"] = chain.transaction_gas
    return json.dumps(config).encode()


def _rules(chain: ChainSettings, chain_id: int, header: Header) -> Rules:
    if chain.fork.lower() not in {"newest", "latest"}:
        return rules_named(chain.rules, chain.fork)
    optimism = _optimism_fork(header)
    if optimism is not None:
        return Rules(ETHEREUM_RULES_OF[optimism], optimism)
    return Rules(_ethereum_fork(chain_id, header))


def _optimism_fork(header: Header) -> OptimismFork | None:
    """The OP fork of a header; None if it is not of an OP chain since Holocene."""
    extra = header.extra_data
    shape = (extra[0], len(extra)) if extra else None
    if shape == _JOVIAN:
        return OptimismFork.JOVIAN
    if shape == _HOLOCENE and header.requests_hash is not None:
        return OptimismFork.ISTHMUS
    return OptimismFork.HOLOCENE if shape == _HOLOCENE else None


def _ethereum_fork(chain_id: int, header: Header) -> EthereumFork:
    if header.block_access_list_hash is not None:
        what = f"block {header.number} has a block access list: Amsterdam cannot be executed"
        raise BadSetting("fork_block_number", what)
    if header.requests_hash is not None:
        is_before = header.timestamp < OSAKA_TIMES.get(chain_id, 0)
        return EthereumFork.PRAGUE if is_before else EthereumFork[NEWEST["ethereum"].upper()]
    if header.parent_beacon_block_root is not None:
        return EthereumFork.CANCUN
    if header.withdrawals_root is not None:
        return EthereumFork.SHANGHAI
    return EthereumFork.PARIS
