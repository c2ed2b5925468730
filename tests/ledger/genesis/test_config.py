import pytest

from foreblock.errors import BadGenesis
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.profile import BlobParameters
from support.chains.profiles import JOVIAN, MERGED, OSAKA, profile
from support.each_case import each_case


@each_case(
    ("number", "time", "merged", "name"),
    [
        (0, 0, False, "ethereum:London"),
        (1, 0, True, "ethereum:Paris"),
        (1, 99, True, "ethereum:Paris"),
        (1, 100, True, "ethereum:Shanghai"),
        (1, 10**9, True, "ethereum:Shanghai"),
        (1, 100, False, "ethereum:London"),
    ],
)
def test_forks_begin_by_number_before_the_merge_and_by_time_after(
    number: int, time: int, merged: bool, name: str
) -> None:
    chain = profile(MERGED, shanghaiTime=100, terminalTotalDifficulty=5)
    assert chain.rules(number, time, merged=merged).engine_name == name


def test_every_block_fork_has_its_name_in_the_engine() -> None:
    keys = [key for key in MERGED if key.endswith("Block") and key != "eip155Block"]
    starts = {key: 10 * (i + 1) for i, key in enumerate(keys)}
    chain = profile(
        {"chainId": 1}, **starts, eip155Block=starts["eip158Block"], muirGlacierBlock=75,
        arrowGlacierBlock=105, grayGlacierBlock=110,
    )  # fmt: skip
    numbers = (*range(0, 101, 10), 75, 105, 110)
    names = [chain.rules(number, 0, merged=False).engine_name for number in numbers]
    assert [name.removeprefix("ethereum:") for name in names] == [
        "Frontier", "Homestead", "Tangerine", "SpuriousDragon", "Byzantium", "Constantinople",
        "Petersburg", "Istanbul", "Berlin", "London", "London", "Istanbul", "London", "London",
    ]  # fmt: skip


def test_merge_comes_with_the_terminal_total_difficulty() -> None:
    chain = profile(MERGED, terminalTotalDifficulty=100)
    assert not chain.merged(99)
    assert chain.merged(100)
    assert not profile(MERGED, terminalTotalDifficulty=None).merged(10**30)
    assert profile(JOVIAN).merged(0)


def test_rewards_by_fork() -> None:
    ether = 10**18
    rewards = [Rules(fork).block_reward // ether for fork in EthereumFork]
    assert rewards == [5, 5, 5, 5, 3, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0]


def test_blob_parameters_by_time() -> None:
    schedule = {"bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8_346_193}}
    chain = profile(OSAKA, cancunTime=5, pragueTime=10, osakaTime=15, bpo1Time=20,
                    blobSchedule=schedule)  # fmt: skip
    assert chain.blob_parameters(4) is None
    assert chain.blob_parameters(5) == BlobParameters(3, 6, 3_338_477)
    assert chain.blob_parameters(10) == BlobParameters(6, 9, 5_007_716)
    assert chain.blob_parameters(19) == BlobParameters(6, 9, 5_007_716)
    assert chain.blob_parameters(20) == BlobParameters(10, 15, 8_346_193)


def test_deposit_contract_is_the_stated_one_zero_included() -> None:
    assert profile(OSAKA, depositContractAddress="0x" + "00" * 20).deposit_contract == bytes(20)
    assert profile(OSAKA).deposit_contract.hex() == "00000000219ab540356cbb839cbe05303d7705fa"


def test_optimism_forks_by_time() -> None:
    times = {key: None for key in JOVIAN if key.endswith("Time")}
    ladder = {"regolithTime": 1, "canyonTime": 2, "ecotoneTime": 3, "fjordTime": 4,
              "graniteTime": 5, "holoceneTime": 6, "isthmusTime": 7, "jovianTime": 8,
              "karstTime": 9, "lagoonTime": 10}  # fmt: skip
    chain = profile(JOVIAN, **(times | ladder))
    rules = [chain.rules(1, time, merged=True) for time in range(11)]
    assert [rule.optimism for rule in rules] == list(OptimismFork)
    assert rules[9].engine_name == rules[10].engine_name == "optimism:Karst"
    assert rules[7].ethereum is EthereumFork.PRAGUE
    assert rules[9].ethereum is EthereumFork.OSAKA
    assert profile(JOVIAN, **(times | ladder), osakaTime=9) == chain
    assert chain.elasticity(rules[1]) == (6, 50)
    assert chain.elasticity(rules[2]) == (6, 250)


@each_case(
    ("config", "changes", "where", "why"),
    [
        (MERGED, {"chainId": None}, "config.chainId", "missing"),
        (MERGED, {"chainId": -1}, "config.chainId", "expected 0 to"),
        (MERGED, {"chainId": 2**64}, "config.chainId", "expected 0 to"),
        (MERGED, {"amsterdamTime": 5}, "config.amsterdamTime", "cannot execute"),
        (MERGED, {"verkleTime": 0}, "config.verkleTime", "cannot execute"),
        (MERGED, {"somethingBlock": 0}, "config.somethingBlock", "cannot execute"),
        (MERGED, {"clique": {}}, "config.clique", "not a key"),
        (MERGED, {"istanbulBlock": None}, "config.berlinBlock", "istanbulBlock before it is not"),
        (MERGED, {"istanbulBlock": 5}, "config.berlinBlock", "before the fork it builds on"),
        (MERGED, {"eip155Block": 5}, "config.eip155Block", "must be equal"),
        (MERGED, {"daoForkBlock": 1, "daoForkSupport": True}, "config.daoForkBlock", "DAO"),
        (OSAKA, {"terminalTotalDifficulty": None}, "config.terminalTotalDifficulty", "missing"),
        (OSAKA, {"cancunTime": None}, "config.pragueTime", "cancunTime before it is not"),
        (OSAKA, {"bpo1Time": 5}, "config.bpo1Time", "no entry bpo1"),
        (OSAKA, {"blobSchedule": {"osaka": {"target": 7, "max": 6, "baseFeeUpdateFraction": 1}}},
         "config.blobSchedule.osaka.target", "above max"),
        (OSAKA, {"canyonTime": 5}, "config.canyonTime", "no optimism section"),
        (JOVIAN, {"bedrockBlock": 7}, "config.bedrockBlock", "before Bedrock"),
        (JOVIAN, {"isthmusTime": None}, "config.jovianTime", "isthmusTime before it is not"),
        (JOVIAN, {"interopTime": 0}, "config.interopTime", "cannot execute"),
        (JOVIAN, {"osakaTime": 0}, "config.osakaTime", "must equal karstTime on an OP chain"),
        (JOVIAN, {"osakaTime": 3, "karstTime": 4}, "config.osakaTime", "must equal karstTime"),
        (JOVIAN, {"cancunTime": 7}, "config.cancunTime", "must equal ecotoneTime"),
        (JOVIAN, {"optimism": {"eip1559Elasticity": 0, "eip1559Denominator": 50}},
         "config.optimism.eip1559Elasticity", "must not be zero"),
    ],
)  # fmt: skip
def test_configurations_that_cannot_be_executed_are_refused(
    config: dict[str, object], changes: dict[str, object], where: str, why: str
) -> None:
    with pytest.raises(BadGenesis) as caught:
        profile(config, **changes)
    assert caught.value.where == where
    assert why in caught.value.why


def test_keys_without_effect_are_accepted() -> None:
    plain = profile(MERGED)
    assert plain == profile(
        MERGED, ethash={}, mergeNetsplitBlock=7, terminalTotalDifficultyPassed=True,
        daoForkSupport=True, eip150Hash="0x" + "00" * 32, amsterdamTime=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("stated", "found"), [({}, 2), ({"blockTime": 1}, 1), ({"blockTime": 0.2}, 0.2)]
)
def test_an_op_chain_may_have_a_block_time_of_its_own(
    stated: dict[str, float], found: float
) -> None:
    section = {"eip1559Elasticity": 6, "eip1559Denominator": 50, **stated}
    assert profile(JOVIAN, optimism=section).block_time == found
