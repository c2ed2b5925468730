"""Which rules a dev chain has: a ladder of forks, and the one that is in force from block 0 on.

    optimism    Bedrock, with one transaction before all others, to Karst
    ethereum    Paris to Osaka; a chain with flashblocks is not mined, so none before the merge

The fork is stated by the `config` of the genesis, as other clients read it; all before it are
in force too.
"""

from typing import Final

from foreblock.errors import InvalidArgument
from foreblock.ledger.rules.forks import ETHEREUM_RULES_OF, EthereumFork, OptimismFork, Rules

# The newest whose chains run in public; Karst is not in force unless it is asked for.
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
        # There is none, as on other dev chains.
        config["depositContractAddress"] = "0x" + "00" * 20
    return config
