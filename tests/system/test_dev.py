"""`foreblock dev`: its networks, its page, the README's examples, and the end of its processes."""

import json
import os
import re
import resource
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conftest import CHECKOUT
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.upstream.rpc_client import Endpoint
from support.servers.command import run
from support.servers.dev_processes import (
    SOLO,
    Dev,
    HttpReply,
    Network,
    dev_chain,
    exchange,
    refused,
)
from support.servers.waiting import PATIENCE, until

README = (CHECKOUT / "README.md").read_text("utf-8")
TROUBLES = (CHECKOUT / "docs" / "troubleshooting.md").read_text("utf-8")
START = (CHECKOUT / "docs" / "index.md").read_text("utf-8")
EXAMPLES = [
    example
    for block in re.findall(r"<!-- dev -->\n```console\n(.*?)```", README + START, re.DOTALL)
    for example in re.findall(r"^\$ (.*)\n((?:[^$].*\n)+)", block, re.MULTILINE)
]
MAIN, TEST = "http://127.0.0.1:8545", "http://127.0.0.1:9545"


def number(block: dict[str, str]) -> int:
    return int(block["number"], 16)


def wait_for_next_flashblock(network: Network) -> None:
    seen = network.commit
    until(lambda: network.pending() and network.commit > seen, "the next flashblock")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text("ascii").split()[2] == "Z"


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain() as running:
        yield running


def test_both_networks_have_a_pending_block_that_grows_and_seals(dev: Dev) -> None:
    assert dev.test is not None
    assert dev.main.ask("eth_chainId") == hex(31337)
    assert dev.test.ask("eth_chainId") == hex(31338)
    for network in (dev.main, dev.test):
        pending, latest = network.batch(
            ("eth_getBlockByNumber", ("pending", False)),
            ("eth_getBlockByNumber", ("latest", False)),
        )
        assert number(pending) == number(latest) + 1
        assert pending["parentHash"] == latest["hash"]
        sealed_as = number(pending)
        wait_for_next_flashblock(network)
        until(lambda: network.latest() >= sealed_as, "the block is sealed")  # noqa: B023


def test_what_it_says_fits_and_can_be_copied(dev: Dev) -> None:
    copied = "  export PATH="
    assert max(len(line.rstrip("\n")) for line in dev.output if copied not in line) <= 80
    said = "".join(dev.output)
    # Libraries that require the checksum of an address get one.
    assert "  0  0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\n     0xac0974be" in said
    assert "a block every 2 s, a flashblock every 200 ms\n" in said


def test_readiness_says_how_the_network_is(dev: Dev) -> None:
    status, text = dev.main.probe("/readyz?verbose")
    assert status == 200
    assert text.startswith("ready\n")
    assert "flashblock" in text
    assert dev.main.probe("/healthz") == (200, "ok\n")


def pattern(shown: str) -> str:
    """Match displayed output; … stands for varying parts."""
    return ".*".join(map(re.escape, shown.split("…")))


def measured(text: str) -> str:
    """Output without positions of flashblocks and durations."""
    return re.sub(r"(block +)\d+\.\d+|(after )\d+", r"\1\2N", text.strip())


def answer(dev: Dev, command: str) -> str:
    words = shlex.split(command)
    if words[0] == "curl":
        *_, url, header_option, header, data_option, body = words
        assert (header_option, header, data_option) == (
            "-H",
            "Content-Type: application/json",
            "-d",
        )
        assert dev.test is not None
        with Endpoint({MAIN: dev.main.url, TEST: dev.test.url}[url]) as endpoint:
            return endpoint.exchange(body.encode()).decode()
    assert words[0] == "foreblock"
    done = run(*words[1:], environment={"FOREBLOCK_URL": dev.main.url})
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


def test_every_line_of_the_readme_answers_as_shown(dev: Dev) -> None:
    """In order: transactions of one example are visible in the next."""
    methods = set()
    for command, shown in EXAMPLES:
        found = answer(dev, command)
        assert re.fullmatch(pattern(measured(shown)), measured(found), re.DOTALL), (command, found)
        methods |= set(re.findall(r'"(eth_\w+)"', command))
    assert methods == {"eth_getBlockByNumber", "eth_getBalance", "eth_call", "eth_simulateV1"}


def test_what_it_prints_at_its_start_is_shown_as_it_is(dev: Dev) -> None:
    said = "".join(dev.output)
    shown = re.search(r"```console\n(main, chain id.*?)```", README, re.DOTALL)
    assert shown is not None
    here, spaces = re.compile(r"127\.0\.0\.1:\d+"), re.compile(" +")
    wanted, found = (spaces.sub(" ", here.sub("HERE", each)) for each in (shown[1], said))
    assert wanted in found


def test_messages_of_the_troubleshooting_page_are_those_of_the_service(dev: Dev) -> None:
    sections = re.findall(r"^### (.*)\n\n(.*)\n(.*)\n", TROUBLES, re.MULTILINE)
    for _, cause, fix in sections:
        assert (cause.split()[0], fix.split()[0]) == ("**Cause:**", "**Fix:**")
    url, account = dev.main.url, "0x" + "dd" * 20
    sender = "0x" + dev_accounts(TEST_MNEMONIC, 4)[3].address.hex()
    payment = {"from": sender, "to": account, "nonce": "0x0"}
    sent = dev.main.ask("eth_sendTransaction", payment)
    until(lambda: dev.main.ask("eth_getTransactionReceipt", sent), "it is pre-confirmed")

    def refusal(method: str, *params: object, **headers: str) -> str:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        given = {"Content-Type": "application/json"} | {
            k.capitalize(): v for k, v in headers.items()
        }
        return exchange(url, "/", json.dumps(body), given).text

    said = [
        refusal("eth_sendTransaction", payment),
        refusal("eth_getBalance", account, "0xffffff"),
        refusal("eth_getBalance", account, {"blockHash": "0x" + "77" * 32}),
        refusal("eth_call", {"data": "0x00"}, "pending"),
        refusal("eth_chainId", host="my.name"),
        exchange(url, "/", "{}", {"Content-Type": "text/plain"}).text,
        run("follow", "base", "--upstream", "http://127.0.0.1:1").stderr,
        run("dev", "--like", "anvil", "--fork-url", "http://127.0.0.1:1").stderr,
        (CHECKOUT / "docs" / "errors.md").read_text("utf-8"),
        (CHECKOUT / "docs" / "cli.md").read_text("utf-8"),
    ]
    headings = " ".join(heading for heading, _, _ in sections if "cast:" not in heading)
    quoted = [text for text in re.findall(r"`([^`]+)`", headings) if " " in text or "$" in text]
    assert len(quoted) > 12
    for text in quoted:
        stable = re.split(r"\d|:? …|anvil_mine", text)
        assert any(all(part in each for part in stable) for each in said), text


def get(network: Network, path: str, accept: str = "*/*") -> HttpReply:
    return exchange(network.url, path, headers={"Accept": accept})


def test_every_network_has_the_page_and_names_all(dev: Dev) -> None:
    assert dev.test is not None
    for network, name in ((dev.main, "main"), (dev.test, "test")):
        shown = get(network, "/", "text/html")
        assert shown.status == 200
        assert shown.body.startswith(b"<!doctype html>")
        assert shown.body == get(network, "/ui").body
        told = json.loads(get(network, "/ui/networks.json").body)
        ports = {each["name"]: each["port"] for each in told["networks"]}
        assert told["here"] == name
        assert ports == {
            "main": urlsplit(dev.main.url).port,
            "test": urlsplit(dev.test.url).port,
        }
        policy = shown.headers["Content-Security-Policy"]
        other = dev.test if network is dev.main else dev.main
        assert other.url.replace("http", "ws", 1) in policy
    assert get(dev.main, "/")[:2] == (200, b"")


@pytest.mark.heavy
def test_the_page_can_be_switched_off() -> None:
    with dev_chain("--page=false", *SOLO) as dev:
        assert get(dev.main, "/", "text/html")[:2] == (200, b"")
        assert get(dev.main, "/ui").status == 404
        assert dev.main.ask("eth_chainId") == hex(31337)


@pytest.mark.heavy
def test_every_process_may_open_as_many_files_as_the_system_allows() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard // 2), hard))
    try:
        with dev_chain("--test-listen=") as dev:
            for pid in dev.pids("writer") + dev.pids("worker"):
                assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.heavy  # `test_serve.py` kills workers under load
def test_a_worker_that_is_killed_costs_nothing_but_its_requests(dev: Dev) -> None:
    killed = dev.kill("worker")
    until(lambda: killed not in dev.pids("worker") and len(dev.pids("worker")) == 2, "another one")
    for _ in range(20):
        assert dev.main.pending()["number"]


@pytest.mark.heavy  # `crash/test_dev_killed.py` kills writers under load
def test_a_writer_that_is_killed_goes_on_where_it_was(dev: Dev) -> None:
    before = number(dev.main.pending())
    killed = dev.kill("writer")
    assert dev.main.ask("eth_getBalance", "0x" + "00" * 20, "pending") == "0x0", "reads continue"
    until(lambda: dev.pids("writer") not in ([], [killed]), "another writer")
    wait_for_next_flashblock(dev.main)
    assert number(dev.main.pending()) >= before


def test_a_writer_that_hangs_is_replaced_and_pending_ends_meanwhile() -> None:
    with dev_chain("--block-time=1", "--writer-timeout=6", *SOLO) as dev:
        wait_for_next_flashblock(dev.main)
        (hung,) = dev.pids("writer")
        os.kill(hung, signal.SIGSTOP)
        until(lambda: dev.main.probe("/readyz")[0] == 503, "pending has expired")
        pending, latest = dev.main.batch(
            ("eth_getBlockByNumber", ("pending", False)),
            ("eth_getBlockByNumber", ("latest", False)),
        )
        assert pending == latest
        until(lambda: hung not in dev.pids("writer"), "it is given up")
        until(lambda: dev.main.probe("/readyz")[0] == 200, "it is ready again")


@pytest.mark.heavy
def test_without_a_writer_pending_ends_and_the_network_says_that_it_is_not_ready() -> None:
    with dev_chain("--block-time=1", "--writer-timeout=0", *SOLO) as dev:
        wait_for_next_flashblock(dev.main)
        os.kill(dev.pids("writer")[0], signal.SIGSTOP)
        until(lambda: dev.main.probe("/readyz")[0] == 503, "pending has expired")
        pending, latest = dev.main.batch(
            ("eth_getBlockByNumber", ("pending", False)),
            ("eth_getBlockByNumber", ("latest", False)),
        )
        assert pending == latest
        os.kill(dev.pids("writer")[0], signal.SIGCONT)
        until(lambda: dev.main.probe("/readyz")[0] == 200, "it is ready again")


@pytest.mark.heavy
def test_generated_load_leaves_the_first_accounts_to_the_user() -> None:
    with dev_chain("--load=50", "--test-listen=") as dev:
        until(lambda: len(dev.main.pending()["transactions"]) > 5, "load is in the block")
        mine, last = dev_accounts(TEST_MNEMONIC, 10)[4::5]
        nonces = dev.main.batch(
            ("eth_getTransactionCount", ("0x" + mine.address.hex(), "pending")),
            ("eth_getTransactionCount", ("0x" + last.address.hex(), "pending")),
        )
        assert nonces[0] == "0x0"
        assert nonces[1] != "0x0"
        assert "50 transactions a second from the accounts 5 to 9\n" in dev.output


@pytest.mark.heavy
def test_who_comes_second_is_told_why_not(tmp_path: Path) -> None:
    data = f"--data={tmp_path}"
    with dev_chain(data) as first:
        address = first.main.url.removeprefix("http://")
        assert f"{address}: address already in use" in refused(f"--listen={address}")
        # The other process may end, so the next start may succeed.
        assert "already being written by another process" in refused(data, code=1)


def test_processes_end_with_their_supervisor_and_the_next_one_tidies_up_and_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = (f"--data={tmp_path_factory.mktemp('data')}", "--block-time=1", *SOLO)
    with dev_chain(*options) as dev:
        until(lambda: dev.main.latest() >= 1, "a sealed block")
        block = dev.main.ask("eth_getBlockByNumber", "0x1", True)
        pids = dev.pids("writer") + dev.pids("worker")
        assert len(pids) == 2
        os.kill(dev.process.pid, signal.SIGKILL)
        for pid in pids:
            until(lambda: gone(pid), "an orphan ends")  # noqa: B023
    abandoned = set(tmp_path.iterdir())
    assert len(abandoned) == 1, "the folder of the bus"
    with dev_chain(*options) as dev:
        assert dev.main.ask("eth_getBlockByNumber", "0x1", True) == block
        assert dev.main.latest() >= 1
        assert len(set(tmp_path.iterdir()) - abandoned) == 1
        assert not abandoned & set(tmp_path.iterdir())
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(PATIENCE) == 0, "a clean stop"
    assert not list(tmp_path.iterdir())


@pytest.mark.heavy
def test_a_temporary_chain_is_removed_by_the_next_start_if_its_supervisor_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with dev_chain(*SOLO) as dev:
        pids = dev.pids("writer") + dev.pids("worker")
        os.kill(dev.process.pid, signal.SIGKILL)
        for pid in pids:
            until(lambda: gone(pid), "an orphan ends")  # noqa: B023
    abandoned = set(tmp_path.iterdir())
    assert len(abandoned) == 2, "the data, and where the bus was"
    with dev_chain(*SOLO) as dev:
        assert dev.main.pending()
        assert not abandoned & set(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
