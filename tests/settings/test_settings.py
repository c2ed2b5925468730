"""Settings: precedence of sources, parsing of values, errors with positions."""

from pathlib import Path

import msgspec
import pytest

from foreblock.errors import BadSetting
from foreblock.sequencer.transaction_pool import TransactionPoolLimits
from foreblock.settings import MOST_LOAD, SECTIONS, DevSettings, EverySetting, ServeSettings
from foreblock.settings.declare import declared, flat
from foreblock.settings.loading import DEFAULT, load
from support.each_case import each_case

NAMES = [each.name for each in declared(DevSettings)]


def test_defaults() -> None:
    loaded = load(DevSettings, {}, {})
    assert loaded.settings == DevSettings()
    assert set(loaded.origins.values()) == {DEFAULT}
    assert list(flat(loaded.settings)) == NAMES == list(loaded.origins)


def test_flags_come_before_variables_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text("workers = 1\nbody_limit = 10\nidle_timeout = 7\n", "utf-8")
    environment = {"FOREBLOCK_WORKERS": "2", "FOREBLOCK_BODY_LIMIT": "20", "HOME": "/"}
    settings, origins = load(DevSettings, {"workers": "3", "body_limit": None}, environment, file)
    service = settings.service
    assert (service.workers, origins["workers"]) == (3, "--workers")
    assert (service.server.body_limit, origins["body_limit"]) == (20, "FOREBLOCK_BODY_LIMIT")
    assert (service.server.idle_timeout, origins["idle_timeout"]) == (7.0, str(file))


@each_case(
    ("name", "text", "value"),
    [
        ("body_limit", "7", 7), ("idle_timeout", "1.5", 1.5), ("dialect", "ethereum", "ethereum"),
        ("hosts", "a, b.example", ("a", "b.example")), ("hosts", "", ()),
        ("call_create", "Yes", True),
        ("snapshot_header", "off", False), ("batch_items", "0", 0), ("pool_queue", "1", 1),
        ("nice", "19", 19), ("load", "10000", 10_000),
    ],
)  # fmt: skip
def test_words_become_values(name: str, text: str, value: object) -> None:
    assert flat(load(DevSettings, {name: text}, {}).settings)[name] == value


@each_case(
    ("name", "text", "why"),
    [
        ("body_limit", "7.5", "expected a whole number, found '7.5'"),
        ("body_limit", "0", "expected at least 1, found 0"),
        ("idle_timeout", "nan", "expected at least 1, found nan"),
        ("idle_timeout", "inf", "expected at least 1, found inf"),
        ("nice", "20", "expected at most 19, found 20"),
        ("nice", "-1", "expected at least 0, found -1"),
        ("load", "10001", "expected at most 10000, found 10001"),
        ("chain_id", "0", "expected at least 1, found 0"),
        ("chain_id", f"{2**63}", f"expected at most {2**63 - 38}, found {2**63}"),
        ("block_time", "3601", "expected at most 3600, found 3601"),
        ("block_time", "0.05", "expected at least 0.1, found 0.05"),
        ("interval", "0.009", "expected at least 0.01, found 0.009"),
        ("gas_limit", "1999999", "expected at least 2000000, found 1999999"),
        ("base_fee", f"{2**63}", f"expected at most {2**63 - 1}, found {2**63}"),
        ("accounts", "0", "expected at least 1, found 0"),
        ("balance", "0", "expected at least 1, found 0"),
        ("seed", f"{2**64}", f"expected at most {2**64 - 2}, found {2**64}"),
        ("timestamp", "-1", "expected at least 0, found -1"),
        ("dialect", "latin", "expected preconf or ethereum, found 'latin'"),
        ("call_create", "maybe", "expected true or false, found 'maybe'"),
    ],
)
def test_bad_words_are_refused_where_they_stand(name: str, text: str, why: str) -> None:
    flag = "--" + name.replace("_", "-")
    with pytest.raises(BadSetting) as raised:
        load(DevSettings, {name: text}, {})
    assert str(raised.value) == f"{flag}: {why}"
    with pytest.raises(BadSetting) as raised:
        load(DevSettings, {}, {f"FOREBLOCK_{name.upper()}": text})
    assert str(raised.value) == f"FOREBLOCK_{name.upper()}: {why}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("workers = true", "workers: expected a whole number, found True"),
        ("workers = 1.0", "workers: expected a whole number, found 1.0"),
        ("workers = '1'", "workers: expected a whole number, found '1'"),
        ("nice = 100", "nice: expected at most 19, found 100"),
        ("load = 1000000000", "load: expected at most 10000, found 1000000000"),
        ("hosts = 'a'", "hosts: expected a list of strings, found 'a'"),
        ("hosts = [1]", "hosts: expected a list of strings, found [1]"),
        ("call_create = 1", "call_create: expected true or false, found 1"),
        ("worker = 1", "worker: there is no such setting; did you mean workers?"),
        ("blok_time = 1", "blok_time: there is no such setting; did you mean block_time?"),
        ("[server]\nbody_limit = 1", "server: there is no such setting"),
        ("workers = ", "Invalid value (at end of document)"),
    ],
)
def test_bad_values_of_the_file_are_refused_where_they_stand(
    tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(BadSetting) as raised:
        load(DevSettings, {}, {}, file)
    assert str(raised.value) == f"{file}: {why}"


def test_no_more_load_is_generated_in_a_second_than_a_pool_holds() -> None:
    assert TransactionPoolLimits().in_all == MOST_LOAD


def test_settings_cross_to_a_worker_unchanged() -> None:
    settings = load(DevSettings, {"hosts": "a,b", "call_create": "yes", "nice": "3"}, {}).settings
    assert msgspec.json.decode(msgspec.json.encode(settings), type=DevSettings) == settings


def test_every_setting_is_documented_in_its_section(checkout: Path) -> None:
    text = (checkout / "docs" / "settings.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| `", "## "))]
    expected = []
    for section in SECTIONS:
        expected.append(f"## {section}")
        for each in declared(EverySetting):
            if each.section == section:
                kind, default = each.type.replace("|", "\\|"), msgspec.json.encode(each.default)
                row = f"| `{each.name}` | `{kind}` | `{default.decode()}` | {each.help} |"
                expected.append(row)
    assert rows == expected


def test_serve_takes_no_settings_of_the_chains_and_passes_them_over_in_a_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text("block_time = 1\nworkers = 1\n", "utf-8")
    loaded = load(ServeSettings, {}, {}, file)
    assert loaded.settings.service.workers == 1
    assert "block_time" not in loaded.origins


def test_a_setting_has_one_name_wherever_it_is_taken() -> None:
    every = [each.name for each in declared(EverySetting)]
    assert len(every) == len(set(every))
    assert {each.name for each in declared(ServeSettings)} <= set(every)


def test_serve_takes_a_chain_from_feeds() -> None:
    flags = {"source": "feed", "feed": "ws://a/ws, ws://b/ws", "canonical": "http://c"}
    chain = load(ServeSettings, flags, {}).settings.chain
    assert (chain.source, chain.feed) == ("feed", ("ws://a/ws", "ws://b/ws"))
    assert chain.canonical == "http://c"


def test_networks_of_a_file_are_the_texts_that_flags_have(tmp_path: Path) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text(
        '[network.main]\nlisten = "127.0.0.1:1"\n'
        '[network.test]\nfeed = ["ws://a", "ws://b"]\n', "utf-8",
    )  # fmt: skip
    loaded = load(ServeSettings, {}, {}, file)
    texts = ("main.listen=127.0.0.1:1", "test.feed=ws://a", "test.feed=ws://b")
    assert loaded.settings.chain.network == texts
    assert loaded.origins["network"] == str(file)
    flags = {"network": "a.data=b"}
    assert load(ServeSettings, flags, {}, file).settings.chain.network == ("a.data=b",)
    assert load(DevSettings, {}, {}, file), "other verbs pass them over"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("network = 1", "network: expected a list of strings, found 1"),
        ("[network]\nmain = 1", "network.main: expected a table, found 1"),
        ("[network.main]\nkeep_states = true",
         "network.main.keep_states: expected a number, found True"),
        ("[network.main]\nlisten = 8545",
         "network.main.listen: expected a string or a list of strings, found 8545"),
    ],
)  # fmt: skip
def test_bad_networks_of_a_file_are_refused_where_they_stand(
    tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(BadSetting) as raised:
        load(ServeSettings, {}, {}, file)
    assert str(raised.value) == f"{file}: {why}"


def test_a_command_may_have_defaults_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "foreblock.toml"
    file.write_text("accounts = 2\n", "utf-8")
    defaults = {"nice": "5", "hosts": "a,b", "workers": "4", "accounts": "9"}
    settings, origins = load(
        DevSettings, {"chain_id": "7"}, {"FOREBLOCK_WORKERS": "3"}, file, defaults
    )
    service = settings.service
    assert (service.nice, service.access.hosts, service.workers) == (5, ("a", "b"), 3)
    assert (settings.chain.accounts, settings.chain.chain_id) == (2, 7)
    assert origins["nice"] == DEFAULT
