"""Events on a network's thread: invalid messages are reported with their sender and cost."""

from pathlib import Path

from foreblock.clock import SystemClock
from foreblock.feed.messages import encode
from foreblock.ledger.genesis.genesis_file import genesis_text
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings, SourceSettings, StoreResources
from foreblock.settings.networks import Network
from foreblock.sources.feed_source import Arrived, FeedSource
from support.payloads.flashblocks import first, hash_of


def test_what_is_no_flashblock_is_counted_against_its_feed_alone(tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_bytes(genesis_text(dev_genesis(ChainSettings())))
    chain, data = SourceSettings(feed=("good", "bad")), str(tmp_path / "store")
    network = Network(name="a", data=data, source="feed", feed=chain, genesis=str(genesis))
    source = FeedSource(network, SystemClock(), lambda _: None, lambda _: None)
    unknown = encode(first(1, "job", hash_of("nobody's"), hash_of("1.0")))
    wasted = source.receive([Arrived("good", unknown), *[Arrived("bad", b"\xff" * 100)] * 3])
    assert set(wasted) == {"bad"}
    assert wasted["bad"] > 0
    assert (source.malformed("good"), source.malformed("bad")) == (0, 3)
    source.close()


def test_a_store_is_as_large_as_its_network_is_told(tmp_path: Path) -> None:
    genesis = tmp_path / "genesis.json"
    genesis.write_bytes(genesis_text(dev_genesis(ChainSettings())))
    network = Network(
        name="a", data=str(tmp_path / "store"), source="feed",
        feed=SourceSettings(),
        genesis=str(genesis),
        store=StoreResources(map_size=(1 << 26) + 1, max_readers=100),
    )  # fmt: skip
    source = FeedSource(network, SystemClock(), lambda _: None, lambda _: None)
    assert source.store.map_size == 1 << 26
    assert (tmp_path / "store" / "lock.mdb").stat().st_size < 128 * 100
    source.close()
