"""The table of codes, compared with the exceptions and with docs/errors.md."""

import inspect
import logging
import re
from pathlib import Path

import pytest

from foreblock import errors
from foreblock._engine import MissingKeys
from foreblock.rpc import error_codes as table
from foreblock.rpc.error_codes import Dialect, Fault, fault_of
from support.each_case import each_case

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.ForeblockError)
]
EXAMPLES = [
    errors.InvalidParams("missing value for required argument 0 (address)"),
    errors.LimitExceeded("too many slots (max 1024)"),
    errors.RefusedOverride("account 0x… is not a precompile"),
    errors.UnknownBlock(9),
    errors.UnknownBlockHash(b"\1" * 32),
    errors.UnknownPartial(9),
    errors.StateMissing(MissingKeys([b"\1" * 20])),
    errors.MissingTrieNodes(MissingKeys([b"\1" * 20]), 7),
    errors.IncompleteState("a list of accounts"),
    errors.DroppedPartial(9),
    errors.NotCanonical(b"\1" * 32),
    errors.NoSuchHead("safe"),
    errors.PrunedState(1, 5),
    errors.BeforeAnchor(1, 5),
    errors.HeaderOnly(5, 6),
    errors.UnknownRules(7),
    errors.NoUpstream("nothing in 2 s", 3),
    errors.InvalidProofData("a node has another hash"),
    errors.UnitsSpent(1),
    errors.ErrorAnswer(3, "execution reverted", "0x0102"),
    errors.TooMuchState("more than 16 rounds"),
    errors.RefusedCall("err: … (supplied gas 5)"),
    errors.RefusedSimulation(errors.Rule.FUNDS, "err: … (supplied gas 5)"),
    errors.RefusedTrace("transaction not found"),
    errors.TraceTooLong(1 << 26),
    errors.Reverted(b"\1\2", "because"),
    errors.Halted("out of gas"),
    errors.TimedOut(5000),
    errors.RejectedTransaction("nonce too low: next nonce 7, tx nonce 5"),
    errors.NoSigner(),
    errors.NonceUsedAboveLatest("nonce too low: next nonce 7, tx nonce 5"),
    errors.NoSequencerHere(),
    errors.SequencerUnavailable(),
    errors.TransactionDropped("nonce too low"),
    errors.NonceTooLow(7, 5),
    errors.RejectedTransaction("nonce too low"),
    errors.SequencerUnavailable(),
    errors.SequencerBusy(),
    errors.OutcomeUnknown(),
    errors.SyncTimedOut(b"\1" * 32, 20_000),
    errors.PoolUnavailable(),
    errors.PoolTooLarge(5_000_000, 4_194_304),
    errors.BusMessageTooLong(17_000_000, 16_777_216),
    errors.PoolFull(3),
    errors.TooManyWaiting(1024),
    errors.KeyBudgetSpent(3),
    errors.TooMuchUnsent(1 << 28),
    errors.RefusedFilter("unknown block"),
    errors.HiddenMethod("evm_mine", "it is switched off"),
    errors.RefusedCommand("there are 1000 snapshots"),
    errors.CommandUnknown(),
    errors.CursorTooOld(),
    errors.NotificationsUnsupported(),
    errors.UnknownSubscription("newBeads"),
    errors.TooManySubscriptions(256),
    errors.BusMessageTooLong(1 << 25, 1 << 24),
    errors.SubscriptionsTooLarge("connection", 1 << 26),
    errors.TooManyFilters(10_000),
    errors.TooManyLogs("query returned more than 10000 results", 1, 2),
    errors.TraceTooLong(1 << 26),
    errors.RefusedTrace("tracer not found"),
    errors.StoreReplaced("data", "it was removed"),
    errors.StoreClosed(),
]
DIALECTS: list[Dialect] = ["preconf", "ethereum"]


def row_of(kind: type[Exception]) -> type[Exception] | None:
    """The class whose row describes this one: the class itself or a base."""
    return next((base for base in kind.__mro__ if base in table.PRECONF), None)


def test_examples_cover_the_table() -> None:
    covered = {row_of(type(example)) for example in EXAMPLES}
    assert covered == set(table.PRECONF) == set(table.ETHEREUM)


def test_dialects_differ_in_reverts_only() -> None:
    for example in EXAMPLES:
        differ = fault_of(example, "preconf") != fault_of(example, "ethereum")
        assert differ == isinstance(example, errors.Reverted)


@pytest.mark.parametrize("reason", ["", "because"])
@pytest.mark.parametrize("output", [b"", b"\xab\xcd"])
def test_revert_of_the_published_contract(output: bytes, reason: str) -> None:
    data = "0xabcd" if output else None
    expected = Fault(-32000, "execution reverted", data)
    assert fault_of(errors.Reverted(output, reason), "preconf") == expected


@each_case(
    ("milliseconds", "shown"),
    [
        (1, "1ms"), (300, "300ms"), (999, "999ms"), (1000, "1s"), (1001, "1.001s"),
        (1500, "1.5s"), (20_000, "20s"), (60_000, "1m0s"), (90_500, "1m30.5s"),
        (3_600_000, "1h0m0s"), (3_723_004, "1h2m3.004s"),
    ],
)  # fmt: skip
def test_time_that_a_sender_waited_is_written_as_go_does(milliseconds: int, shown: str) -> None:
    found = fault_of(errors.SyncTimedOut(b"\1" * 32, milliseconds), "preconf")
    assert found.message.endswith(f"wasn't processed in {shown}")
    assert (found.code, found.data) == (4, "0x" + "01" * 32)


def test_revert_as_other_nodes_answer_it() -> None:
    with_reason = fault_of(errors.Reverted(b"\xab", "because"), "ethereum")
    assert with_reason == Fault(3, "execution reverted: because", "0xab")
    assert fault_of(errors.Reverted(b"", ""), "ethereum") == Fault(3, "execution reverted", "0x")


@pytest.mark.parametrize("error", [ValueError("secret"), errors.StoreDamaged("secret"),
                                   AssertionError("secret"), RecursionError("secret")])  # fmt: skip
def test_other_errors_are_logged_and_not_told(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        fault = fault_of(error, "preconf")
    assert fault == Fault(-32603, "internal error")
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


def documented(checkout: Path) -> dict[str, list[str]]:
    """The rows of the table of codes: exception, code, message, data in either dialect."""
    text = (checkout / "docs" / "errors.md").read_text("utf-8").split("## On the wire")[1]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", text.split("\n## ")[0], flags=re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


@each_case("example", EXAMPLES, ids=lambda example: type(example).__name__)
@each_case("dialect", DIALECTS)
def test_docs_show_code_and_message(checkout: Path, example: Exception, dialect: Dialect) -> None:
    row = row_of(type(example))
    assert row is not None
    code, message = documented(checkout)[row.__name__][:2]
    fault = fault_of(example, dialect)
    if " / " in code:
        place = DIALECTS.index(dialect)
        code, message = code.split(" / ")[place], message.split(" / ")[place]
    assert code in (f"`{fault.code}`", "of its rule", "of the upstream")
    pattern = re.escape(message.strip("`"))
    for word in re.findall(r"[A-Z]{2,}", message):
        pattern = pattern.replace(word, ".*")
    assert re.fullmatch(pattern, fault.message), (message, fault.message)


@each_case("rule", errors.Rule)
def test_docs_show_the_code_of_every_rule(checkout: Path, rule: errors.Rule) -> None:
    code = fault_of(errors.RefusedSimulation(rule, "why"), "preconf").code
    text = (checkout / "docs" / "errors.md").read_text("utf-8")
    assert f"| {rule} | `{code}` |" in text


def test_docs_show_the_table_and_nothing_else(checkout: Path) -> None:
    assert set(documented(checkout)) == {kind.__name__ for kind in table.PRECONF}


@each_case("kind", CLASSES)
def test_every_exception_has_a_fault(kind: type[errors.ForeblockError]) -> None:
    """An exception without a row is an internal failure; the docs say so for their whole
    families.
    """
    row = row_of(kind)
    ours = (
        errors.StoreError, errors.ImportFailure, errors.ServiceError, errors.FeedError,
        errors.EndpointError, errors.LogError, errors.SnapshotError,
    )  # fmt: skip
    internal = {
        errors.InvalidArgument, errors.Undecodable, errors.InvalidMessage, errors.NotAPrecompile,
        errors.InvalidTransaction, errors.DeadlineExceeded, errors.ExecutionFailed,
        errors.OverBudget,
    }  # fmt: skip
    assert row or issubclass(kind, ours) or kind in internal or kind.__subclasses__()
