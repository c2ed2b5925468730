"""The `config` section of a genesis in geth's format, from the file of a chain. No I/O.

A store keeps this text and makes its rules from it; they are those of `chain_profile`.
"""

import json

from foreblock.chains.chain_file import ChainFacts


def config_of(chain: ChainFacts) -> bytes:
    """The configuration as JSON text."""
    config: dict[str, object] = {"chainId": chain.chain_id, "bedrockBlock": 0}
    config |= {f"{name}Time": time for name, time in chain.forks.begun()}
    config["optimism"] = {
        "eip1559Elasticity": chain.fees.elasticity,
        "eip1559Denominator": chain.fees.denominator,
        "eip1559DenominatorCanyon": chain.fees.denominator_canyon,
        "blockTime": chain.block_time,
    }
    return json.dumps(config).encode()
