"""A recorded range of a chain, with its state, is executed again without that chain."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.chains.chain_file import followed_chain
from foreblock.errors import BadRecording
from foreblock.feed.messages import encode
from foreblock.feed.recording import read_recording
from foreblock.primitives import format_data
from foreblock.recording.gathering import Stretch, stretch_of
from foreblock.recording.offline_node import OfflineNode
from foreblock.recording.offline_run import run_offline
from foreblock.recording.state_file import RecordedState, read_state, write_state
from support.payloads.flashblocks import first, hash_of, later
from support.servers.command import run
from support.servers.dev_processes import PACKAGE, SOLO, Network, dev_chain
from support.servers.waiting import PATIENCE, until

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}


class Recording:
    """The files of a recording, and the chain's own data of its blocks."""

    def __init__(self, folder: Path) -> None:
        self.feed = folder / "feed"
        self.file = folder / "state"
        self.genesis = folder / "dev" / "main" / "genesis.json"
        self.blocks: dict[int, str] = {}

    def state(self) -> RecordedState:
        """The state in the file."""
        with self.file.open("rb") as file:
            return read_state(str(self.file), file)

    @property
    def config(self) -> bytes:
        """The rules of the chain."""
        return followed_chain(str(self.genesis)).config


def foreblock(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "foreblock", *map(str, arguments)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("recording")
    made = Recording(folder)
    options = (f"--data={folder / 'dev'}", "--load=30", "--block-time=1")
    with dev_chain(*options, *SOLO) as dev:
        until(lambda: dev.main.latest() >= 3, "the chain has some past")
        done = run(
            "record", dev.main.feed, made.feed, "--messages", 25, "--with-state", made.file,
            "--chain", made.genesis, "--upstream", f"{dev.main.url}?units=100000",
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        state = made.state()
        for block_hash in state.blocks:
            block = dev.main.ask("eth_getBlockByHash", format_data(block_hash), False)
            made.blocks[int(block["number"], 16)] = block["hash"]
    assert len(made.blocks) >= 3
    return made


def test_recording_is_executed_from_its_file_alone(recording: Recording) -> None:
    assert run_offline(recording.state(), recording.config, "state") == len(recording.blocks)


def test_file_without_one_node_that_is_needed_is_noticed(recording: Recording) -> None:
    state = recording.state()
    root = state.anchor_header.state_root
    del state.nodes[root]
    with pytest.raises(BadRecording, match="not all there"):
        run_offline(state, recording.config, "state")


def test_equal_states_are_equal_files(recording: Recording) -> None:
    first_file, second_file = io.BytesIO(), io.BytesIO()
    state = recording.state()
    write_state(state, first_file)
    first_file.seek(0)
    write_state(read_state("first", first_file), second_file)
    assert first_file.getvalue() == second_file.getvalue()


def test_stretch_is_that_of_the_feed(recording: Recording) -> None:
    with recording.feed.open("rb") as file:
        stretch = stretch_of(each.message for each in read_recording("feed", file))
    assert stretch is not None
    assert [format_data(each) for each in stretch.blocks] == list(recording.blocks.values())
    assert stretch.first == min(recording.blocks)
    assert stretch.anchor == recording.state().anchor


def test_offline_node_shows_blocks_up_to_its_head(recording: Recording) -> None:
    node = OfflineNode(recording.state())

    def ask(method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
        answer = node.answer({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        assert answer["id"] == 7
        return answer.get("result", answer.get("error"))

    first_block, last_block = min(recording.blocks), max(recording.blocks)
    assert ask("eth_blockNumber") == hex(first_block - 1)
    assert ask("eth_getBlockByNumber", hex(last_block), False) is None
    node.reach(last_block + 5)
    assert ask("eth_getBlockByNumber", "latest", False)["hash"] == recording.blocks[last_block]
    whole = ask("eth_getBlockByHash", recording.blocks[last_block], True)
    assert all(isinstance(each, dict) for each in whole["transactions"])
    nobody = "0x" + "12" * 20
    missing = {"code": -32000, "message": "missing trie node: it was not recorded"}
    answer = ask("eth_getProof", nobody, [], "latest")
    assert answer == missing or answer["balance"] == "0x0"
    gone = {"code": -32000, "message": "header not found"}
    assert ask("eth_getBalance", nobody, "0x" + "fe" * 32) == gone
    assert ask("eth_getBalance", nobody, hex(10**9)) == gone
    assert ask("eth_call", {}, "latest")["code"] == -32601
    assert ask("eth_getProof", "nonsense", [], "latest")["code"] == -32602


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        foreblock(*arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=ENVIRONMENT,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def test_follower_ends_where_the_recorded_chain_was(recording: Recording, tmp_path: Path) -> None:
    """The chain is gone: the follower only has the replay of its files."""
    listen = "127.0.0.1:0"
    with running("replay", recording.feed, "--listen", listen, "--speed", 4,
                 "--state", recording.file, "--upstream-listen", listen) as replay:  # fmt: skip
        assert replay.stdout is not None
        upstream, feed = (replay.stdout.readline().strip() for _ in range(2))
        with running("follow", recording.genesis, "--upstream", f"{upstream}?units=100000",
                     "--feed", feed, "--listen", listen, "--data", tmp_path / "store",
                     "--workers", 1) as follower:  # fmt: skip
            assert follower.stdout is not None
            url = next(line.split()[2] for line in follower.stdout if line.startswith("listening"))
            network = Network(url, feed)
            before_last, last = sorted(recording.blocks)[-2:]
            until(
                lambda: int(network.ask("eth_blockNumber"), 16) >= last,
                "the last recorded block is there",
            )
            # A slow follower is anchored at a later block than the first.
            for number in (before_last, last):
                block = network.ask("eth_getBlockByNumber", hex(number), False)
                assert block["hash"] == recording.blocks[number]


def test_stretch_ends_at_a_gap_and_needs_a_whole_block() -> None:
    def begin(number: int, parent: str) -> bytes:
        return encode(first(number, f"job{number}", hash_of(parent), hash_of(f"{number}.0")))

    noise = [b"not a flashblock", encode(later(6, "job", 3, hash_of("6.3")))]
    assert stretch_of([]) is None
    assert stretch_of([*noise, begin(7, "six")]) is None
    messages = [*noise, begin(7, "six"), begin(8, "seven"), begin(9, "eight"), begin(11, "ten")]
    assert stretch_of(messages) == Stretch(hash_of("six"), 7, (hash_of("seven"), hash_of("eight")))


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b'{"format":"foreblock state recording","version":2}\n', b"\xff\n"]
)
def test_other_files_are_refused(text: bytes) -> None:
    with pytest.raises(BadRecording, match="not a recording of state"):
        read_state("other", io.BytesIO(text))
