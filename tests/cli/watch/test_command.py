"""`foreblock watch` for people and scripts."""

import io
import json
import time
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from foreblock.cli import main
from foreblock.cli.instance import Reading, SeenBlock
from foreblock.cli.watch import Watched, lines, table
from foreblock.cli.watch.history import History, SeenGrowth
from foreblock.upstream.rpc_client import Endpoint
from support.servers.toy_endpoint import toy_endpoint

BLOCK: dict[str, Any] = {
    "number": "0x7", "hash": "0x" + "01" * 32, "timestamp": "0x64", "gasUsed": "0x5208",
    "gasLimit": "0x1c9c380", "baseFeePerGas": "0x3b9aca00", "transactions": ["0x" + "04" * 32],
}  # fmt: skip


def get_block(params: list[Any]) -> object:
    return BLOCK | {"number": "0x8"} if params[0] == "pending" else BLOCK


def test_one_look_at_two_networks_one_of_which_is_gone() -> None:
    with toy_endpoint({"eth_getBlockByNumber": get_block}) as url:
        done = CliRunner().invoke(main, ["watch", "--once", url, "http://127.0.0.1:1"])
    assert done.exit_code == 1
    here, gone = done.stdout.splitlines()[1:]
    *shown, age, unit = here.split()[1:]
    assert shown == ["7", "8", "1", "21,000", "1", "gwei"]
    assert (float(age) >= 0, unit) == (True, "s")
    assert gone.split() == ["127.0.0.1:1", "no", "response"]
    assert done.stderr == "foreblock: no response from http://127.0.0.1:1: connection refused\n"


def test_scripts_get_a_line_of_json() -> None:
    with toy_endpoint({"eth_getBlockByNumber": get_block}) as url:
        done = CliRunner().invoke(main, ["watch", "--once", "--json", url])
    (found,) = json.loads(done.output)
    assert (found["url"], found["failure"]) == (url, None)
    assert found["reading"]["pending"]["number"] == 8
    assert (found["transactions_per_second"], found["alerts"]) == (0, [])


def test_a_screen_begins_with_earlier_blocks_that_the_endpoint_has() -> None:
    def block(params: list[Any]) -> object:
        name = params[0]
        if name == "0x5":
            return None  # no longer kept
        return BLOCK if name in ("latest", "pending") else BLOCK | {"number": name}

    with toy_endpoint({"eth_getBlockByNumber": block}) as url, Endpoint(url) as endpoint:
        seen = Watched(endpoint, earlier=4)
        for _ in range(2):
            seen.poll()
    assert [each.number for each in seen.history.blocks] == [3, 4, 6, 7]


def printed(*rows: Watched) -> list[str]:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table(rows, now=12.3))
    return console.export_text().splitlines()


def watched(url: str, seen: SeenBlock) -> Watched:
    return Watched(Endpoint(url), History(Reading(seen, seen, 10, 1), since=0.0))


SMALL = SeenBlock(1, "0x", 0, 1, 0, 400_000_000, 1)
LARGE = SeenBlock(123_456_789, "0x", 0, 12_345, 399_999_999, 400_000_000, 1_234_567_890)


def test_large_numbers_fit_into_80_columns() -> None:
    _, row = printed(watched("http://127.0.0.1:8545", LARGE))
    assert "123456789.10" in row
    assert "399,999,999" in row
    assert row.rstrip().endswith("12.3 s")


def test_columns_stand_still_while_numbers_grow() -> None:
    url = "http://127.0.0.1:8545"
    headings = [printed(watched(url, each))[0] for each in (SMALL, LARGE)]
    assert headings[0] == headings[1]


def test_a_long_name_takes_a_second_line_and_no_number_is_cut() -> None:
    _, row, rest = printed(watched("http://a-network-with-quite-a-name.example:8545", LARGE))
    assert "399,999,999" in row
    assert (row.split()[0] + rest.strip()) == "a-network-with-quite-a-name.example:8545"


def test_ctrl_c_ends_it_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with toy_endpoint({"eth_getBlockByNumber": get_block}) as url:
        done = CliRunner().invoke(main, ["watch", url])
    assert done.exit_code == 0
    assert "Aborted" not in done.output


def test_without_a_terminal_each_change_and_each_alert_is_a_line() -> None:
    one = watched("http://127.0.0.1:8545", SMALL)
    told: list[str] = []
    grown = [SeenGrowth(7, None, 2, 42_000, 1.0, sealed=True), SeenGrowth(8, 3, 1, 21_000, 1.0)]
    assert list(lines(one, grown, told, now=1.0)) == [
        "sealed 7 +2 tx +42,000 gas",
        "8.3 +1 tx +21,000 gas",
    ]
    assert list(lines(one, [], told, now=7.0)) == ["! nothing has changed for 7 s"]
    assert list(lines(one, [], told, now=8.0)) == []  # it was printed
    one.history.since = 8.5
    assert list(lines(one, [], told, now=9.0)) == []
    assert list(lines(one, [], told, now=20.0)) == ["! nothing has changed for 12 s"]


def test_lines_come_while_the_chain_moves() -> None:
    numbers = iter(range(7, 10_000))

    def moving(params: list[Any]) -> object:
        if params[0] == "latest":
            return BLOCK | {"number": hex(next(numbers))}
        return BLOCK | {"number": "0xffff"}

    def interrupted(_: float, calls: list[int] = [0]) -> None:  # noqa: B006, it counts
        calls[0] += 1
        if calls[0] == 3:
            raise KeyboardInterrupt

    with (
        toy_endpoint({"eth_getBlockByNumber": moving}) as url,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(time, "sleep", interrupted)
        done = CliRunner().invoke(main, ["watch", url])
    assert done.exit_code == 0
    sealed = [line.split()[2:4] for line in done.output.splitlines() if " sealed " in line]
    assert sealed == [["sealed", "8"], ["sealed", "9"]]
