"""Which chain is mirrored, how it is followed, and what contradicts it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock import DevChain
from foreblock.cli.forks import chosen_mirror
from foreblock.errors import BadChain, BadSetting
from foreblock.settings import DevSettings
from foreblock.settings.loading import load
from support.each_case import each_case
from support.upstreams.relay import Relay, relayed

URL = "http://127.0.0.1:1"


def settings(**given: str) -> DevSettings:
    return load(DevSettings, {"mirror": "op-mainnet", **given}, {}).settings


@pytest.fixture
def relay() -> Iterator[Relay]:
    with DevChain(chain_id=10) as chain, chain.serve() as server, relayed(server.url) as relay:
        yield relay


def test_a_listed_chain_has_an_endpoint_of_its_own() -> None:
    follow, chain = chosen_mirror(settings())
    assert follow.chain == "op-mainnet"
    assert follow.upstream == ("https://mainnet.optimism.io",)
    assert (follow.trust, follow.trust_fallback, follow.feed) == ("proven", True, ())
    assert chain.profile.chain_id == 10


def test_settings_of_forks_say_how_it_is_followed() -> None:
    given = {"fork_url": URL, "fork_proofs": "off", "fork_units": "5", "mirror_feed": "off"}
    follow, _ = chosen_mirror(settings(**given))
    assert (follow.upstream, follow.trust, follow.trust_fallback) == ((URL,), "trusted", False)
    assert (follow.upstream_units, follow.feed) == (5.0, ("off",))


def test_the_chain_of_an_endpoint_is_found_by_its_id(relay: Relay) -> None:
    follow, _ = chosen_mirror(settings(mirror=relay.url, fork_url=URL))
    assert (follow.chain, follow.upstream) == ("op-mainnet", (relay.url, URL))


def test_a_genesis_needs_an_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "genesis.json"
    fees = {"eip1559Elasticity": 6, "eip1559Denominator": 50}
    config = {"chainId": 5, "bedrockBlock": 0, "terminalTotalDifficulty": 0, "optimism": fees}
    file.write_text(json.dumps({"config": config}))
    with pytest.raises(BadSetting, match="fork_url: an endpoint of"):
        chosen_mirror(settings(mirror=str(file)))
    follow, chain = chosen_mirror(settings(mirror=str(file), fork_url=URL))
    assert (follow.chain, chain.profile.chain_id) == (str(file), 5)


@each_case(
    ("given", "why"),
    [
        ({"genesis": "x.json"}, "genesis: a mirror has the blocks of another chain"),
        ({"faults": "drop=0.1"}, "faults: a mirror has the blocks of another chain"),
        ({"fork_block_number": "5"}, "fork_block_number: a mirror begins at the latest block"),
        ({"fork_state": "x.fork"}, "fork_state: it is for a fork of one block"),
        ({"view": "sealed"}, "view: a mirror has no log, and shows pending blocks"),
        ({"fork_url": "ftp://host"}, "upstream: expected a URL"),
    ],
)
def test_what_contradicts_a_mirror_is_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(BadSetting, match=why):
        chosen_mirror(settings(**given))


def test_a_chain_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadChain):
        chosen_mirror(settings(mirror="unknown"))
    file = tmp_path / "genesis.json"
    file.write_text(json.dumps({"config": {"chainId": 5, "terminalTotalDifficulty": 0}}))
    with pytest.raises(BadSetting, match="is not an OP chain"):
        chosen_mirror(settings(mirror=str(file), fork_url=URL))
    with (
        DevChain(chain_id=7) as chain,
        chain.serve() as server,
        pytest.raises(BadSetting, match="chain 7 is not in `foreblock chains`"),
    ):
        chosen_mirror(settings(mirror=server.url))
