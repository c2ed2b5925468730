"""The networks of `foreblock serve`: one from the plain settings, several by name."""

from dataclasses import replace

import pytest

from foreblock.errors import BadSetting
from foreblock.settings import FollowSettings, KeepSettings, ServeSettings, StoreResources
from foreblock.settings.loading import load
from foreblock.settings.networks import NetworkSettings, followed_network, networks_of
from support.each_case import each_case


def settings(*networks: str, **flags: str) -> ServeSettings:
    return load(ServeSettings, {**flags, "network": ",".join(networks) or None}, {}).settings


def test_without_names_the_settings_are_the_network() -> None:
    told = settings(
        data="store", source="feed", feed="ws://a,ws://b", genesis="g", canonical="http://c",
        feed_listen="127.0.0.1:2",
    )  # fmt: skip
    assert networks_of(told) == [NetworkSettings("main", told)]


def test_a_network_has_its_own_and_takes_the_rest_from_the_settings() -> None:
    told = settings(
        "a.listen=127.0.0.1:1", "b.feed=ws://x", "b.feed=ws://y", "b.source=store",
        "b.data=elsewhere", "b.feed-listen=127.0.0.1:3", "b.keep_states=0", "b.keep-partials=9",
        "b.map_size=1073741824", "b.max-readers=100", "b.dialect=ethereum", "b.view=sealed",
        "b.accept_state_edits=true",
        data="folder", source="feed", feed="ws://z", genesis="g",
    )  # fmt: skip
    first, second = networks_of(told)
    service, chain = told.service, replace(told.chain, feed=("ws://z",))
    assert first == NetworkSettings(
        "a",
        replace(told, service=replace(service, data="folder/a", listen="127.0.0.1:1"), chain=chain),
    )
    resources = StoreResources(map_size=1 << 30, max_readers=100)
    assert second == NetworkSettings(
        "b",
        replace(
            told,
            service=replace(
                service, data="elsewhere", dialect="ethereum", view="sealed", store=resources
            ),
            chain=replace(
                chain, source="store", feed=("ws://x", "ws://y"), accept_state_edits=True
            ),
            feed_listen="127.0.0.1:3",
            keep=KeepSettings(states=0, partials=9),
        ),
    )


def test_a_value_may_have_an_equals_sign() -> None:
    (network,) = networks_of(settings("a.canonical=http://c/?key=1"))
    assert network.settings.chain.canonical == "http://c/?key=1"


def test_port_0_is_another_one_each_time() -> None:
    told = settings("a.listen=127.0.0.1:0", "b.listen=127.0.0.1:0")
    assert [each.settings.service.listen for each in networks_of(told)] == ["127.0.0.1:0"] * 2


@each_case(
    ("texts", "why"),
    [
        (["a"], "network: expected NAME.SETTING=VALUE, found 'a'"),
        (["listen=a.b:1"], "network: expected NAME.SETTING=VALUE, found 'listen=a.b:1'"),
        (["../up.data=x"],
         "network '../up': expected a name of up to 32 letters, digits, hyphens, underscores"),
        (["a.workers=1"], "network a.workers: a network has the settings "
                          "data, listen, dialect, view, map_size, max_readers, source, "
                          "feed, canonical, accept_state_edits, chain, upstream, trust, "
                          "audit_seconds, trust_fallback, sealed, anchor, fetch_timeout, "
                          "fetch_rounds, fetch_keys, fetch_behind, upstream_units, "
                          "upstream_reserve, cold, beyond, follow_idle, lag_blocks, send, "
                          "genesis, feed_listen, keep_states, keep_partials, keep_nodes, "
                          "address_index, log, log_name, log_replicas, log_credentials, "
                          "log_ca, takeover, snapshot_listen, snapshot_from"),
        (["a.keep_states=many"], "network a.keep_states: expected a whole number, found 'many'"),
        (["a.keep_states=64"], "keep_states: expected more than keep_partials, which is 64"),
        (["a.source=dev"],
         "network a.source: expected store or feed or log or follow, found 'dev'"),
        (["a.data=x", "a.data=y"], "network a.data: given twice: 'x' and 'y'"),
        (["a.data=x", "b.data=y"], "network b.listen: a has '127.0.0.1:8545' already"),
        (["a.data=x", "b.data=x"], "network b.data: a has 'x' already"),
        (["a.log=nats://a", "a.log_name=x", "b.listen=:0", "b.log=nats://b", "b.log_name=x"],
         "network b.log_name: a has 'x' already"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(texts: list[str], why: str) -> None:
    with pytest.raises(BadSetting) as raised:
        networks_of(settings(*texts))
    assert str(raised.value) == why


def test_how_a_public_chain_is_followed_is_of_each_network() -> None:
    first, second = networks_of(
        settings(
            "a.chain=op-mainnet", "a.upstream=https://x", "a.upstream=https://y", "a.send=https://s",
            "a.feed=poll+https://z", "a.fetch_timeout=0.5", "a.trust_fallback=yes",
            "a.listen=127.0.0.1:1", "b.chain=unichain", "b.trust=trusted", "b.cold=refuse",
            source="follow", data="folder", upstream="https://w",
        )
    )  # fmt: skip
    assert followed_network(first).follow == FollowSettings(
        chain="op-mainnet", upstream=("https://x", "https://y"), feed=("poll+https://z",),
        fetch_timeout=0.5, trust_fallback=True, send="https://s",
    )  # fmt: skip
    assert followed_network(second).follow == FollowSettings(
        chain="unichain", upstream=("https://w",), trust="trusted", cold="refuse"
    )
    network = followed_network(first)
    assert (network.source, network.data) == ("follow", "folder/a")


@each_case(
    ("text", "why"),
    [
        ("anchor=yesterday", "anchor: expected latest, safe, finalized, a number or a hash"),
        ("anchor=0x1g", "anchor: expected latest, safe, finalized, a number or a hash"),
        ("upstream=ws://x", "upstream: expected a URL that begins with http://, https://"),
        ("feed=https://x",
         "feed: expected a URL that begins with ws://, wss://, poll+http://, poll+https://"),
        ("send=x", "send: expected a URL that begins with http://, https://"),
    ],
)  # fmt: skip
def test_what_can_never_be_followed_is_refused(text: str, why: str) -> None:
    (network,) = networks_of(settings(f"a.{text}", source="follow", data="folder"))
    with pytest.raises(BadSetting) as refused:
        followed_network(network)
    assert str(refused.value) == why
