"""The forks of a chain for comparison by nodes: configurations (EIP-7910) and ids (EIP-2124).

Only forks that begin at a time count; they are those of the chain's own ladder. The
configuration of a fork is what differs between forks: precompiles, system contracts, blobs.
Values in, values out: the stated forks come from the genesis `config`.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

from msgspec import Struct

from foreblock._engine import Header
from foreblock.ledger.rules.execution import (
    BEACON_ROOTS,
    CONSOLIDATION_REQUESTS,
    HISTORY_STORAGE,
    WITHDRAWAL_REQUESTS,
)
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import BlobParameters, ChainProfile

# Forks by time in their order, as keys of a genesis `config`.
ETHEREUM_TIMES: Final = (
    *("shanghaiTime", "cancunTime", "pragueTime", "osakaTime"),
    *(f"bpo{number}Time" for number in range(1, 6)),
)
OPTIMISM_TIMES: Final = tuple(
    f"{fork.name.lower()}Time" for fork in OptimismFork if fork > OptimismFork.BEDROCK
)
FAR: Final = (1 << 64) - 1  # after every fork

# Names of EIP-7910, with the number of the address and the fork that brought each.
PRECOMPILES: Final = (
    ("ECREC", 0x01, EthereumFork.FRONTIER),
    ("SHA256", 0x02, EthereumFork.FRONTIER),
    ("RIPEMD160", 0x03, EthereumFork.FRONTIER),
    ("ID", 0x04, EthereumFork.FRONTIER),
    ("MODEXP", 0x05, EthereumFork.BYZANTIUM),
    ("BN254_ADD", 0x06, EthereumFork.BYZANTIUM),
    ("BN254_MUL", 0x07, EthereumFork.BYZANTIUM),
    ("BN254_PAIRING", 0x08, EthereumFork.BYZANTIUM),
    ("BLAKE2F", 0x09, EthereumFork.ISTANBUL),
    ("KZG_POINT_EVALUATION", 0x0A, EthereumFork.CANCUN),
    ("BLS12_G1ADD", 0x0B, EthereumFork.PRAGUE),
    ("BLS12_G1MSM", 0x0C, EthereumFork.PRAGUE),
    ("BLS12_G2ADD", 0x0D, EthereumFork.PRAGUE),
    ("BLS12_G2MSM", 0x0E, EthereumFork.PRAGUE),
    ("BLS12_PAIRING_CHECK", 0x0F, EthereumFork.PRAGUE),
    ("BLS12_MAP_FP_TO_G1", 0x10, EthereumFork.PRAGUE),
    ("BLS12_MAP_FP2_TO_G2", 0x11, EthereumFork.PRAGUE),
    ("P256VERIFY", 0x100, EthereumFork.OSAKA),
)


class ForkConfig(Struct, frozen=True):
    """The parameters in force from a fork on."""

    activation_time: int  # 0 for a fork of the genesis
    blobs: BlobParameters | None
    fork_id: bytes  # 4 bytes
    precompiles: Mapping[str, bytes]
    system_contracts: Mapping[str, bytes]


class ForkConfigs(Struct, frozen=True):
    """The configurations of a chain as seen at a time; without a next fork there is no last."""

    current: ForkConfig | None
    next: ForkConfig | None
    last: ForkConfig | None


class StatedForks(Struct, frozen=True):
    """The fork numbers and times of a genesis `config`, by key."""

    blocks: Mapping[str, int]
    times: Mapping[str, int]

    def ladder(self, profile: ChainProfile) -> list[int | None]:
        """The times of the chain's ladder in its order, none for a fork that is not stated."""
        keys = ETHEREUM_TIMES if profile.optimism is None else OPTIMISM_TIMES
        return [self.times.get(key) for key in keys]

    def id_at(self, genesis: bytes, began: int, time: int) -> bytes:
        """The id of the forks up to a time: a checksum over each of them.

        It begins with the hash of the genesis, whose time is `began`.
        """
        begun = sorted({*self.blocks.values()} - {0})
        begun += sorted({each for each in self.times.values() if began < each <= time})
        checksum = crc32(genesis)
        for position in begun:
            checksum = crc32(position.to_bytes(8), checksum)
        return checksum.to_bytes(4)


def fork_configs(
    profile: ChainProfile, stated: StatedForks, genesis: Header, time: int
) -> ForkConfigs:
    """The configurations in force at a time, at the fork after it, and at the last one."""
    ladder = stated.ladder(profile)

    def config(start: int | None) -> ForkConfig | None:
        if start is None:
            return None
        rules = profile.rules(0, start, merged=True)
        return ForkConfig(
            activation_time=0 if genesis.timestamp >= start else start,
            blobs=profile.blob_parameters(start),
            fork_id=stated.id_at(genesis.hash, genesis.timestamp, start),
            precompiles=_precompiles(rules),
            system_contracts=_system_contracts(rules, profile),
        )

    at = _latest(ladder, time)
    after = ladder[at + 1] if at + 1 < len(ladder) else None
    last = ladder[_latest(ladder, FAR)] if after is not None else None
    return ForkConfigs(config(ladder[at] if at >= 0 else None), config(after), config(last))


def _latest(ladder: Sequence[int | None], time: int) -> int:
    """The place of the highest fork that has begun; -1 before the first."""
    begun = [place for place, start in enumerate(ladder) if start is not None and start <= time]
    return max(begun, default=-1)


def _precompiles(rules: Rules) -> dict[str, bytes]:
    found = {
        name: number.to_bytes(20) for name, number, fork in PRECOMPILES if rules.ethereum >= fork
    }
    if rules.includes(OptimismFork.FJORD):  # RIP-7212, before Ethereum had it
        found["P256VERIFY"] = (0x100).to_bytes(20)
    return dict(sorted(found.items()))


def _system_contracts(rules: Rules, profile: ChainProfile) -> dict[str, bytes]:
    """The contracts that blocks call; OP blocks make no requests to a consensus layer."""
    found = {}
    if rules.ethereum >= EthereumFork.CANCUN:
        found["BEACON_ROOTS_ADDRESS"] = BEACON_ROOTS
    if rules.ethereum >= EthereumFork.PRAGUE:
        found["HISTORY_STORAGE_ADDRESS"] = HISTORY_STORAGE
        if rules.optimism is None:
            found["CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS"] = CONSOLIDATION_REQUESTS
            found["DEPOSIT_CONTRACT_ADDRESS"] = profile.deposit_contract
            found["WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS"] = WITHDRAWAL_REQUESTS
    return dict(sorted(found.items()))
