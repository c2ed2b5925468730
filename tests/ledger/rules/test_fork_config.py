"""Fork ids and configurations of Ethereum's main network and of an OP chain."""

from foreblock._engine import Header
from foreblock.ledger.rules.fork_config import ForkConfigs, StatedForks, fork_configs
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.profile import BlobParameters, ChainProfile, OptimismParameters
from support.each_case import each_case

MAINNET = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")
TIMES = {
    "shanghaiTime": 1681338455, "cancunTime": 1710338135, "pragueTime": 1746612311,
    "osakaTime": 1764798551, "bpo1Time": 1765290071, "bpo2Time": 1767747671,
}  # fmt: skip
FORKS = StatedForks(
    blocks={
        "homesteadBlock": 1_150_000, "daoForkBlock": 1_920_000, "eip150Block": 2_463_000,
        "eip155Block": 2_675_000, "eip158Block": 2_675_000, "byzantiumBlock": 4_370_000,
        "constantinopleBlock": 7_280_000, "petersburgBlock": 7_280_000,
        "istanbulBlock": 9_069_000, "muirGlacierBlock": 9_200_000, "berlinBlock": 12_244_000,
        "londonBlock": 12_965_000, "arrowGlacierBlock": 13_773_000,
        "grayGlacierBlock": 15_050_000,
    },
    times=TIMES,
)  # fmt: skip
BLOBS = [BlobParameters(*each) for each in ((3, 6, 1), (6, 9, 2), (6, 9, 2), (10, 15, 3))]
PROFILE = ChainProfile(
    chain_id=1,
    forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
    forks_by_time=(
        (TIMES["shanghaiTime"], EthereumFork.SHANGHAI), (TIMES["cancunTime"], EthereumFork.CANCUN),
        (TIMES["pragueTime"], EthereumFork.PRAGUE), (TIMES["osakaTime"], EthereumFork.OSAKA),
    ),
    blob_schedule=tuple(zip(list(TIMES.values())[1:5], BLOBS, strict=True)),
    terminal_total_difficulty=0,
    deposit_contract=b"\1" * 20,
    optimism=None,
)  # fmt: skip
GENESIS = Header(
    parent_hash=bytes(32), beneficiary=bytes(20), state_root=bytes(32), number=0, gas_limit=0,
    timestamp=0,
)  # fmt: skip


@each_case(
    ("time", "fork_id"),
    [
        (1681338454, "f0afd0e3"),
        (1681338455, "dce96c2d"),
        (1710338135, "9f3d2254"),
        (1746612311, "c376cf8b"),
        (1764798551, "5167e2a6"),
        (1765290071, "cba2a1c0"),
        (1767747671, "07c9462e"),
        (2000000000, "07c9462e"),
    ],
)
def test_ids_are_those_of_the_main_network(time: int, fork_id: str) -> None:
    """From geth's tests (core/forkid)."""
    assert FORKS.id_at(MAINNET, 0, time).hex() == fork_id


def test_forks_of_the_genesis_do_not_count() -> None:
    none = StatedForks({}, {})
    stated = StatedForks({"londonBlock": 0}, {"shanghaiTime": 7, "cancunTime": 8})
    assert stated.id_at(MAINNET, 7, 7) == none.id_at(MAINNET, 7, 7)
    assert stated.id_at(MAINNET, 7, 8) != none.id_at(MAINNET, 7, 8)


def at(time: int) -> ForkConfigs:
    return fork_configs(PROFILE, FORKS, GENESIS, time)


def test_there_is_no_configuration_before_the_first_fork_by_time() -> None:
    found = at(TIMES["shanghaiTime"] - 1)
    assert found.current is None
    assert found.next is not None
    assert found.next.blobs is None
    assert found.next.activation_time == TIMES["shanghaiTime"]
    assert found.next.system_contracts == {}
    assert len(found.next.precompiles) == 9


def test_the_next_and_the_last_fork_are_told() -> None:
    found = at(TIMES["pragueTime"])
    assert found.current is not None
    assert found.next is not None
    assert found.last is not None
    assert found.current.blobs == BLOBS[1]
    assert "P256VERIFY" not in found.current.precompiles
    assert len(found.current.system_contracts) == 5
    assert found.current.system_contracts["DEPOSIT_CONTRACT_ADDRESS"] == b"\1" * 20
    assert found.next.activation_time == TIMES["osakaTime"]
    assert found.next.precompiles["P256VERIFY"] == (256).to_bytes(20)
    assert found.last.activation_time == TIMES["bpo2Time"]


def test_after_the_last_fork_there_is_no_other() -> None:
    found = at(2**63)
    assert found.current is not None
    assert (found.next, found.last) == (None, None)
    assert found.current.activation_time == TIMES["bpo2Time"]


def test_an_op_chain_has_its_own_ladder() -> None:
    forks = ((0, OptimismFork.BEDROCK), (0, OptimismFork.FJORD), (50, OptimismFork.ISTHMUS))
    profile = ChainProfile(
        chain_id=10,
        forks_by_block=((0, EthereumFork.GRAY_GLACIER),),
        forks_by_time=((0, EthereumFork.PARIS),),
        blob_schedule=(),
        terminal_total_difficulty=0,
        deposit_contract=bytes(20),
        optimism=OptimismParameters(forks, 6, 50, 250),
    )
    stated = StatedForks({"bedrockBlock": 0}, {"fjordTime": 0, "isthmusTime": 50})
    found = fork_configs(profile, stated, GENESIS, 10)
    assert found.current is not None
    assert found.current.activation_time == 0
    assert found.current.blobs is None
    assert "P256VERIFY" in found.current.precompiles
    assert list(found.current.system_contracts) == ["BEACON_ROOTS_ADDRESS"]
    assert found.next is None, "granite, which is not stated"
    later = fork_configs(profile, stated, GENESIS, 50).current
    assert later is not None
    assert list(later.system_contracts) == ["BEACON_ROOTS_ADDRESS", "HISTORY_STORAGE_ADDRESS"]
