"""eth_config: the fork in force, the next one and the last one that is scheduled (EIP-7910)."""

import json

from msgspec import Raw

from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fork_config import ForkConfig, fork_configs
from foreblock.ledger.storage.chain_head import stated_forks
from foreblock.methods.node.about import take_none


def config(view: LedgerView, raw: Raw) -> bytes:
    """What the forks of the chain bring: precompiles, system contracts, blobs, and their ids."""
    take_none(raw)
    genesis = view.resolve(0).header
    found = fork_configs(
        view.profile, stated_forks(view.stored), genesis, view.latest.header.timestamp
    )
    chain_id = view.profile.chain_id
    return json.dumps(
        {
            "current": _shown(found.current, chain_id),
            "next": _shown(found.next, chain_id),
            "last": _shown(found.last, chain_id),
        },
        separators=(",", ":"),
    ).encode()


def _shown(fork: ForkConfig | None, chain_id: int) -> dict[str, object] | None:
    if fork is None:
        return None
    blobs = fork.blobs
    return {
        "activationTime": fork.activation_time,
        "blobSchedule": None
        if blobs is None
        else {
            "target": blobs.target,
            "max": blobs.maximum,
            "baseFeeUpdateFraction": blobs.update_fraction,
        },
        "chainId": f"{chain_id:#x}",
        "forkId": f"0x{fork.fork_id.hex()}",
        "precompiles": {name: f"0x{each.hex()}" for name, each in fork.precompiles.items()},
        "systemContracts": {
            name: f"0x{each.hex()}" for name, each in fork.system_contracts.items()
        },
    }
