"""The log of a network, from its settings."""

import sys

import pytest

from foreblock.errors import BadSetting
from foreblock.settings import ReplicationSettings, ServeSettings
from foreblock.settings.loading import load
from foreblock.settings.networks import log_of
from support.each_case import each_case


def test_without_servers_there_is_no_log() -> None:
    assert log_of("main", ReplicationSettings()) is None


def test_the_log_has_the_name_of_its_network_unless_it_has_its_own() -> None:
    one, other = "nats://one:4222", "tls://other"
    assert log_of("main", ReplicationSettings(log=(one, other))) == ReplicationSettings(
        log=(one, other), log_name="main"
    )
    named = log_of("main", ReplicationSettings(log=(one,), log_name="shared", takeover=0.0))
    assert named == ReplicationSettings(log=(one,), log_name="shared", takeover=0.0)


@each_case(
    "server",
    ["localhost:4222", "http://localhost", "nats://", "", "nats://one:99999", "nats://one:x"],
)
@each_case("user", ["", "bob:password@"])
def test_servers_are_urls_of_nats(server: str, user: str) -> None:
    given = server.replace("://", f"://{user}")
    with pytest.raises(BadSetting) as raised:
        log_of("main", ReplicationSettings(log=(given,)))
    if user:
        server = server.replace("://", "://…@")
    expected = f"log: expected nats://HOST:PORT or tls://HOST:PORT, found {server!r}"
    assert str(raised.value) == expected


@pytest.mark.parametrize("name", ["log_name", "log_credentials", "log_ca", "snapshot_listen"])
def test_settings_that_would_do_nothing_are_refused(name: str) -> None:
    with pytest.raises(BadSetting) as raised:
        log_of("main", load(ServeSettings, {name: "x"}, {}).settings.replication)
    assert str(raised.value) == f"{name}: it needs log: the NATS servers of the log"


def test_a_name_that_cannot_be_a_subject_is_refused() -> None:
    with pytest.raises(BadSetting) as raised:
        log_of("main", ReplicationSettings(log=("nats://one",), log_name="a.b"))
    assert str(raised.value).startswith("log_name: ")


def test_missing_libraries_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(BadSetting) as raised:
        log_of("main", ReplicationSettings(log=("nats://one",)))
    assert str(raised.value) == "log: nats is not installed: pip install 'foreblock[replicas]'"
