"""The checker finds no error in the service, and finds every deliberate one.

A broken service differs from the real one in one respect; each is a mistake that servers of
pre-confirmed blocks have made. Without these tests, a checker that judges nothing would report a
service without errors.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from checker.contradiction import Kind
from checker.journal import JournalWriter, read_journal
from checker.judge import Verdict, judge_journal, work_out
from checker.rehearsal import PAYEES, Rehearsal, Run
from checker.truth import Truth
from foreblock._engine import View
from foreblock.ledger.reading import view as ledger_view
from foreblock.ledger.reading.blocks import KnownBlocks, PreconfirmedBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.partials import read_partial
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Client, Text, whole
from support.each_case import sampled

Begin = Callable[..., Rehearsal]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a rehearsal, whose service may be broken by replaced methods."""
    begun: list[Rehearsal] = []

    def begin(**runs: Run) -> Rehearsal:
        begun.append(Rehearsal(tmp_path / "store", runs))
        return begun[-1]

    yield begin
    for rehearsal in begun:
        rehearsal.close()


def play(rehearsal: Rehearsal) -> None:
    """Sealed blocks, a dropped and restarted one, and a silence."""
    pins: list[Any] = []

    def ask(*blocks: object) -> None:
        for block in blocks:
            answers = rehearsal.ask_everything(block)
            if block == "pending":
                pins.append(answers[0]["result"]["hash"])
        rehearsal.ask([("eth_getBalance", ["0x" + PAYEES[0].hex(), pin]) for pin in pins])
        rehearsal.ask([("eth_getBlockByHash", [pin, True]) for pin in pins])
        places = [{"blockNumber": hex(number), "flashblockIndex": "0x1"} for number in (1, 3, 9)]
        rehearsal.ask([("eth_getBlockByNumber", [place, False]) for place in places])

    def ask_along(flashblocks: int) -> None:
        for _ in range(flashblocks):
            block, _ = rehearsal.ask([("eth_getBlockByNumber", ["pending", full])
                                      for full in (False, True)])  # fmt: skip
            pins.append(block["result"]["hash"])

    for _ in range(6):
        rehearsal.extend()  # beyond block 1, before which nothing was recorded
    ask("pending", "latest")
    ask("pending", "0x1", "0xff")
    while rehearsal.index:
        rehearsal.extend()
    ask_along(2)
    rehearsal.drop_block()
    ask("latest")
    rehearsal.start_sequencer(seed=1)
    ask_along(2)
    rehearsal.drop_block()
    rehearsal.start_sequencer(seed=1)  # which begins like the dropped one
    ask("pending", "latest")
    rehearsal.stall(5)
    ask("pending")


# The chain is the same in all tests, regardless of changes to the service.
truths: dict[tuple[str, ...], Truth] = {}


def verdict_on(rehearsal: Rehearsal) -> Verdict:
    play(rehearsal)
    journal = rehearsal.journal
    feed = tuple(text for _, text in journal.feed)
    if feed not in truths:
        truths[feed] = work_out(journal)
    return judge_journal(journal, truths[feed])


def at_latest(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
    """Run a method on the latest block, regardless of the requested one."""
    return method(view, Raw(bytes(raw).replace(b'"pending"', b'"latest"')))


def test_nothing_is_wrong_with_the_service(begin: Begin) -> None:
    rehearsal = begin()
    verdict = verdict_on(rehearsal)
    assert not verdict.contradictions, str(verdict.contradictions[0])
    assert verdict.judged.total() > 120
    assert not +verdict.unjudged
    assert set(verdict.judged) == {
        "eth_getBlockByNumber", "eth_getBlockByHash", "eth_getBalance", "eth_getTransactionCount",
        "eth_call", "eth_simulateV1", "eth_getTransactionByHash", "eth_getTransactionReceipt",
    }  # fmt: skip
    snapshots = [each.snapshot or "" for each in rehearsal.journal.exchanges]
    assert any("pending" not in snapshot for snapshot in snapshots), "it did expire"
    dropped = [each for each in rehearsal.journal.exchanges if '"result":null' in each.answer]
    assert dropped, "a dropped block was requested"


def test_a_journal_is_judged_again_without_the_service(begin: Begin, tmp_path: Path) -> None:
    rehearsal = begin(eth_getBalance=at_latest)
    verdict = verdict_on(rehearsal)
    with JournalWriter(tmp_path / "journal", "all") as writer:
        journal = rehearsal.journal
        writer.chain(journal.chain)
        for transaction_hash, sender in journal.senders.items():
            writer.sender(transaction_hash, sender)
        for received_ns, message in journal.feed:
            writer.flashblock(received_ns, message)
        for exchange in journal.exchanges:
            writer.exchange(exchange)
    again = read_journal(tmp_path / "journal")
    assert again == journal
    assert judge_journal(again, truths[tuple(text for _, text in again.feed)]) == verdict
    assert verdict.kinds() == {Kind.STATE}


# --- Views ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "kind"),
    sampled(
        [
            ("eth_getBlockByNumber", Kind.BLOCK),
            ("eth_getBalance", Kind.STATE),
            ("eth_getTransactionCount", Kind.STATE),
            ("eth_call", Kind.SURROUNDINGS),
            ("eth_simulateV1", Kind.SIMULATION),
            ("eth_getTransactionByHash", Kind.INCLUSION),
            ("eth_getTransactionReceipt", Kind.INCLUSION),
        ],
        2,
    ),
)
def test_a_view_per_call(begin: Begin, method: str, kind: Kind) -> None:
    def run(method: MethodFunction, _: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        return method(rehearsal.ledger.view(), raw)

    rehearsal = begin(**{method: run})
    assert kind in verdict_on(rehearsal).kinds()


@pytest.mark.parametrize(
    ("method", "kind"),
    sampled(
        [
            ("eth_getBlockByNumber", Kind.BLOCK),
            ("eth_getBalance", Kind.STATE),
            ("eth_getTransactionCount", Kind.STATE),
            ("eth_call", Kind.SURROUNDINGS),
            ("eth_simulateV1", Kind.SIMULATION),
        ],
        2,
    ),
)
def test_a_method_that_takes_latest_for_pending(begin: Begin, method: str, kind: Kind) -> None:
    verdict = verdict_on(begin(**{method: at_latest}))
    assert kind in verdict.kinds()
    assert Kind.BACK not in verdict.kinds()


def test_a_worker_that_answers_from_an_older_commit(begin: Begin) -> None:
    """Its responses match their commit, but a newer one was already visible to a client."""
    rehearsal = begin()
    left: list[LedgerView] = []

    def open_view(_: Client) -> LedgerView:
        """Each is new except the third, which is left over from the first request."""
        left.append(rehearsal.ledger.view())
        return left[0] if len(left) == 3 else rehearsal.ledger.view()

    rehearsal.served.dispatcher._open = open_view  # type: ignore[misc]
    verdict = verdict_on(rehearsal)
    assert verdict.kinds() == {Kind.BACK, Kind.BEHIND}


# --- Branches ---------------------------------------------------------------------------


def test_a_cache_by_block_and_index(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[int, int], PreconfirmedBlock] = {}

    def partial(blocks: KnownBlocks, view: View, number: int) -> PreconfirmedBlock:
        row = read_partial(view, number)
        block = PreconfirmedBlock(number, row, blocks._profile)
        return kept.setdefault((row.header.number, row.index), block)

    monkeypatch.setattr(KnownBlocks, "partial", partial)
    assert verdict_on(begin()).kinds() & {Kind.BLOCK, Kind.SNAPSHOT, Kind.ERROR, Kind.PIN}


def test_a_branch_that_is_served_after_it_was_given_up(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_view, "check_reachable", lambda *_: None)
    assert Kind.DROPPED in verdict_on(begin()).kinds()


def test_a_pin_that_is_forgotten(begin: Begin) -> None:
    def forget(*_: object) -> bytes:
        return b"null"

    assert Kind.PIN in verdict_on(begin(eth_getBlockByHash=forget)).kinds()


def test_a_pin_that_means_the_newest_flashblock(begin: Begin) -> None:
    def newest(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        params = msgspec.json.decode(raw)
        name = params[0]
        return method(
            view,
            Raw(json.dumps(["pending" if isinstance(name, dict) else name, params[1]]).encode()),
        )

    assert Kind.PIN in verdict_on(begin(eth_getBlockByNumber=newest)).kinds()


# --- Freshness --------------------------------------------------------------------------


def test_a_deadline_that_is_skipped(begin: Begin) -> None:
    rehearsal = begin()
    rehearsal.ledger.now = lambda: 0  # type: ignore[misc]
    assert verdict_on(rehearsal).kinds() == {Kind.EXPIRED}


def test_a_deadline_that_comes_too_early(begin: Begin) -> None:
    rehearsal = begin()
    rehearsal.ledger.now = lambda: 1 << 63  # type: ignore[misc]
    assert Kind.MISSING in verdict_on(rehearsal).kinds()


# --- One hash ---------------------------------------------------------------------------


def changed(
    text: bytes | Awaitable[Text], change: Callable[[bytes], bytes]
) -> bytes | Awaitable[Text]:
    """Change a response, now or when it arrives."""
    if isinstance(text, bytes):
        return change(text)

    async def later(text: Awaitable[Text]) -> bytes:
        return change(whole(await text))

    return later(text)


def test_transactions_that_name_another_block_than_their_own(begin: Begin) -> None:
    """Rendered once with the partial block's hash at that time."""
    hashes: list[str] = []

    def name_first(text: bytes) -> bytes:
        block = json.loads(text)
        for transaction in block["transactions"] if block else ():
            if isinstance(transaction, dict):
                hashes.append(block["hash"])
                transaction["blockHash"] = hashes[0]
        return json.dumps(block).encode()

    def stale(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        return changed(method(view, raw), name_first)

    assert Kind.BLOCK in verdict_on(begin(eth_getBlockByNumber=stale)).kinds()


def test_a_simulated_block_whose_hash_is_not_its_own(begin: Begin) -> None:
    def rewrite(text: bytes) -> bytes:
        (block,) = json.loads(text)
        return json.dumps([block | {"extraData": "0x" + "00" * 17}]).encode()

    def other(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        return changed(method(view, raw), rewrite)

    assert verdict_on(begin(eth_simulateV1=other)).kinds() == {Kind.SIMULATION}


def test_a_receipt_with_the_l1_fee_of_another(begin: Begin) -> None:
    """As if the cost of the previous transaction was cached too long."""

    def rewrite(text: bytes) -> bytes:
        found = json.loads(text)
        return json.dumps(found and found | {"l1Fee": "0x1"}).encode()

    def other(method: MethodFunction, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        return changed(method(view, raw), rewrite)

    assert verdict_on(begin(eth_getTransactionReceipt=other)).kinds() == {Kind.INCLUSION}


# --- The feed ---------------------------------------------------------------------------


def one_more(text: str) -> str:
    return hex(int(text, 16) + 1)


def other_hash(_: str) -> str:
    return "0x" + "11" * 32


@pytest.mark.parametrize(
    ("where", "change", "kind"),
    sampled(
        [
            (("diff", "gas_used"), one_more, Kind.HEADER),
            (("diff", "receipts_root"), other_hash, Kind.HEADER),
            (("diff", "logs_bloom"), lambda text: text[:-1] + "1", Kind.HEADER),
            (("diff", "blob_gas_used"), one_more, Kind.HEADER),
            (("diff", "withdrawals_root"), other_hash, Kind.HEADER),
            (("diff", "state_root"), other_hash, Kind.HEADER),
            (("diff", "block_hash"), other_hash, Kind.HASH),
            (("diff", "transactions"), lambda raws: raws[::-1], Kind.HASH),
            (("index",), lambda index: index + 1, Kind.ORDER),
            (("payload_id",), lambda _: "0x0300000000000000", Kind.ORDER),
        ],
        2,
    ),
)
def test_a_feed_that_announces_something_else(
    begin: Begin, where: tuple[str, ...], change: Callable[[Any], Any], kind: Kind
) -> None:
    rehearsal = begin()
    for _ in range(8):
        rehearsal.extend()
    journal = rehearsal.journal
    assert not judge_journal(journal).contradictions
    time, text = journal.feed[4]
    message = json.loads(text)
    *path, name = where
    holder = message[path[0]] if path else message
    holder[name] = change(holder[name])
    journal.feed[4] = time, json.dumps(message)
    assert kind in judge_journal(journal).kinds()


@pytest.mark.parametrize(
    ("name", "change"), [("timestamp", one_more), ("base_fee_per_gas", one_more)]
)
def test_a_block_that_does_not_follow(
    begin: Begin, name: str, change: Callable[[str], str]
) -> None:
    rehearsal = begin()
    for _ in range(8):
        rehearsal.extend()
    journal = rehearsal.journal
    messages = [json.loads(text) for _, text in journal.feed]
    at = next(at for at, message in enumerate(messages) if at and message["index"] == 0)
    messages[at]["base"][name] = change(messages[at]["base"][name])
    journal.feed[at] = journal.feed[at][0], json.dumps(messages[at])
    assert Kind.LINK in judge_journal(journal).kinds()
