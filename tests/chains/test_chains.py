"""Presets and chain files: strict reading, and the same rules as from a genesis."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from chains.from_registry import CHAINS
from foreblock.chains.chain_file import (
    FORKS,
    LONGEST_FILE,
    ChainFacts,
    config_of,
    find_chain,
    names,
    preset,
    profile_of,
    read_chain,
)
from foreblock.cli import main
from foreblock.errors import BadChain, BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.forks import OptimismFork
from support.chains.profiles import MERGED, profile
from support.each_case import each_case

OP = Path(__file__).resolve().parents[2] / "python/foreblock/chains/presets/op-mainnet.toml"


def text() -> str:
    return OP.read_text("utf-8")


@each_case("name", names())
def test_a_preset_has_the_rules_of_a_genesis_with_its_times(name: str) -> None:
    chain = preset(name)
    config = MERGED | {
        "chainId": chain.chain_id,
        "bedrockBlock": 0,
        "optimism": {
            "eip1559Elasticity": chain.fees.elasticity,
            "eip1559Denominator": chain.fees.denominator,
            "eip1559DenominatorCanyon": chain.fees.denominator_canyon,
            "blockTime": chain.block_time,
        },
    }
    config |= {f"{fork}Time": time for fork, time in chain.forks.begun()}
    assert profile_of(chain) == profile(config)
    assert read_profile(JsonValue.parse(config_of(chain), BadGenesis)) == profile_of(chain)
    assert chain.name == name


@each_case("name", names())
def test_the_engine_knows_every_fork_of_a_preset(name: str) -> None:
    made = profile_of(preset(name))
    assert made.optimism is not None
    times = [time for time, _ in made.optimism.forks]
    assert times == sorted(times)
    for time in times:
        rules = made.rules(preset(name).genesis.number + 1, time, merged=True)
        assert rules.optimism is not None
        assert rules.engine_name.startswith("optimism:")


def test_presets_are_those_of_the_script_and_their_ids_differ() -> None:
    assert set(names()) == set(CHAINS)
    assert len({preset(name).chain_id for name in names()}) == len(names())
    assert len({preset(name).genesis_hash for name in names()}) == len(names())


def test_facts_that_others_publish() -> None:
    """EIP-155 ids and the announced start of Karst: 2026-07-08 and 2026-06-17, 16:00:01 UTC."""
    ids = {"op-mainnet": 10, "op-sepolia": 11155420, "unichain": 130, "unichain-sepolia": 1301}
    for name, number in ids.items():
        chain = preset(name)
        karst = 1781712001 if name.endswith("sepolia") else 1783526401
        assert (chain.chain_id, chain.forks.karst) == (number, karst)
        assert chain.block_time == (1 if "unichain" in name else 2)


@each_case(
    ("old", "new", "why"),
    [
        ("chain_id = 10\n", "", "missing required field `chain_id`"),
        ("chain_id = 10\n", "chain_id = 0\n", "Expected `int` >= 1 - at `$.chain_id`"),
        ("chain_id = 10\n", 'chain_id = "10"\n', "Expected `int`, got `str` - at `$.chain_id`"),
        ("chain_id = 10\n", "chain_id = true\n", "Expected `int`, got `bool` - at `$.chain_id`"),
        ("chain_id = 10\n", "chain_id = 10\nchain_id = 10\n", "not TOML"),
        ("[fees]", "[fees]\nx = 1", "unknown field `x` - at `$.fees`"),
        ("[forks]", "[forks]\ninterop = 1900000000", "forks.interop is not a fork that foreblock"),
        ("[forks]", "[unsupported]\nkarst = 1\n[forks]", "unsupported.karst is a fork"),
        ("canyon = 1704992401\n", "", "forks.canyon has no time, and a later fork has one"),
        ("canyon = 1704992401", "canyon = 1910374401", "forks.ecotone begins at 1710374401, be"),
        ("[forks]", "[unsupported]\ninterop = 1\n[forks]", "an unsupported fork begins before"),
        ("elasticity = 6", "elasticity = 0", "at `$.fees.elasticity`"),
        ("0xdbf6", "0xDBF6", "at `$.genesis.hash`"),
        ("wss://op", "gopher://op", "at `$.flashblocks.feeds[0]`"),
        ('name = "op-mainnet"', 'name = "../x"', "at `$.name`"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, why: str) -> None:
    assert old in text()
    with pytest.raises(BadChain) as refused:
        read_chain(text().replace(old, new, 1), "FILE")
    assert str(refused.value).startswith("chain FILE: ")
    assert why in str(refused.value)


def test_an_unsupported_fork_ends_the_rules() -> None:
    chain = read_chain(text() + "\n[unsupported]\ninterop = 1900000000\n", "FILE")
    assert chain.rules_end == 1900000000
    assert preset("op-mainnet").rules_end is None


@given(st.text(max_size=200))
def test_any_text_is_a_chain_or_refused(some: str) -> None:
    with pytest.raises(BadChain):
        read_chain(some, "FILE")


@given(st.data())
def test_any_damaged_value_is_refused_or_read(data: st.DataObject) -> None:
    """Any replacement of a line of a preset gives a chain or `BadChain`."""
    lines = text().splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    lines[place] = data.draw(st.sampled_from(["", "x", "[x]", "[[forks]]", "forks = 3", "a.b = 1"]))
    with suppress(BadChain):
        assert isinstance(read_chain("\n".join(lines), "FILE"), ChainFacts)


def test_a_chain_is_found_by_name_and_by_file(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text().replace("op-mainnet", "mine", 1), "utf-8")
    assert find_chain(str(path)).name == "mine"
    assert find_chain("unichain") is preset("unichain")
    for name, why in [
        ("base", "not supported: since its upgrades of 2026 Base has its own rules"),
        ("op-manet", "not a chain that foreblock knows; did you mean op-mainnet"),
        ("ethereum", "not a chain that foreblock knows; `foreblock chains` lists"),
    ]:
        with pytest.raises(BadChain, match=f"chain {name}: {why}"):
            find_chain(name)
    with pytest.raises(BadChain, match="no such file"):
        find_chain(str(tmp_path / "absent.toml"))
    with pytest.raises(BadChain, match="is a directory"):
        find_chain(str(tmp_path))
    path.write_bytes(b"\xff")
    with pytest.raises(BadChain, match="codec can't decode"):
        find_chain(str(path))
    path.write_text("#" * (LONGEST_FILE + 1), "utf-8")
    with pytest.raises(BadChain, match="longer than"):
        find_chain(str(path))


def test_the_command_lists_and_shows() -> None:
    run = CliRunner().invoke
    listed = run(main, ["chains"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in names())
    shown = run(main, ["chains", "worldchain"])
    assert "when Karst begins" in shown.output
    objects = json.loads(run(main, ["chains", "--json"]).output)
    assert [each["name"] for each in objects] == names()
    one = json.loads(run(main, ["chains", "--json", str(OP)]).output)
    assert one["forks"]["karst"] == tomllib.loads(text())["forks"]["karst"]
    failed = run(main, ["chains", "nowhere"])
    assert failed.exit_code == 2
    assert len(FORKS) == len(OptimismFork) - 1
