"""Every exception of foreblock, in one tree.

An exception carries its facts as attributes, given in order, and `template` makes the message
from them. Without a template the first fact is the message. The engine raises these classes, so
their names and the order of their facts are part of its interface. A revert or a halt of a run is
an outcome, not an exception; `Reverted` and `Halted` are raised by methods that cannot return one.
JSON-RPC error codes are in `rpc.errors`.

The file is long because the tree is one idea: it is read, documented and caught whole.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

if TYPE_CHECKING:
    from foreblock._engine import Misses


@dataclass_transform(eq_default=False)
class ForeblockError(Exception):
    """The root of the tree.

    The annotations of a class are its facts, after those of its base classes; a fact with a value
    is optional. Dataclasses would do the same, but defining them takes 20 ms instead of 2 in every
    process that starts.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()  # the names of its facts
    template: ClassVar[str] = ""  # the message, with facts in braces; bytes are written as hex

    def __init_subclass__(cls) -> None:
        own = vars(cls).get("__annotations__", ())
        cls.__match_args__ = (*cls.__match_args__, *own)  # type: ignore[misc]  # it is not final

    def __init__(self, *facts: Any, **named: Any) -> None:  # noqa: ANN401, of any type
        names, given = self.__match_args__, vars(self)
        given.update(zip(names, facts, strict=False), **named)
        missing = [each for each in names if each not in given and not hasattr(self, each)]
        if missing or len(facts) + len(named) > len(names) or not given.keys() <= {*names}:
            raise TypeError(f"{type(self).__name__} has the facts {names}, not {given}")

    def __str__(self) -> str:
        facts = {name: _text(getattr(self, name)) for name in self.__match_args__}
        if self.template:
            return self.template.format_map(facts)
        return str(next(iter(facts.values()), ""))

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={fact!r}" for name, fact in vars(self).items())
        return f"{type(self).__name__}({facts})"


def _text(fact: object) -> object:
    return f"0x{fact.hex()}" if isinstance(fact, bytes) else fact


class CallerError(ForeblockError):
    """The request is wrong, for any node."""


class InvalidArgument(CallerError):
    """An argument has a value that it cannot have."""

    why: str


class Undecodable(CallerError):
    """Bytes that are no transaction, header or block."""

    what: str
    why: str
    template = "{what}: {why}"


class InvalidMessage(CallerError):
    """A message that no block can run, such as one that cannot pay for its gas."""

    why: str
    template = "the message cannot be run: {why}"


class NotAPrecompile(CallerError):
    """A precompile was to be moved from an address where there is none."""

    address: bytes
    template = "{address} is not a precompile"


class InvalidParams(CallerError):
    """The parameters of a request do not fit its method."""

    why: str


class BadArgument(InvalidParams):
    """One argument of a request cannot be read; `path` is the place in it, or empty."""

    argument: int
    path: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"invalid argument {self.argument}: {place}{self.why}"


class LimitExceeded(CallerError):
    """The request asks for more than one request may; `why` says the limit."""

    why: str


class RefusedOverride(CallerError):
    """A well-formed override that cannot be applied."""

    why: str


class RefusedFilter(CallerError):
    """A well-formed filter of logs that cannot be applied, such as to an unknown block."""

    why: str


class HiddenMethod(CallerError):
    """A method of development chains that is not answered at this address."""

    method: str
    why: str
    template = "the method {method} is not available here: {why}"


class NotHere(ForeblockError):
    """The data asked for is not in the store."""


class UnknownBlock(NotHere):
    """The block asked for was never sealed here."""

    number: int
    template = "unknown block {number}"


class BeforeAnchor(UnknownBlock):
    """The block is before the one at which this store began to follow the chain."""

    anchor: int
    template = (
        "block {number} is before block {anchor}, at which this instance began to follow the "
        "chain: what is kept begins there"
    )


class UnknownBlockHash(NotHere):
    """No block with this hash is in the chain, nor a partial one that is kept."""

    hash: bytes
    template = "unknown block {hash}"


class NotCanonical(NotHere):
    """The block is known and not canonical, which the request requires."""

    hash: bytes
    template = "block {hash} is not canonical"


class NoSuchHead(NotHere):
    """No safe or finalized block is known."""

    tag: str
    template = "there is no {tag} block"


class UnknownPartial(NotHere):
    """The partial block asked for was never here, or is no longer kept."""

    number: int
    template = "unknown partial block {number}"


class DroppedPartial(NotHere):
    """The partial block asked for is on an abandoned branch."""

    number: int
    template = "partial block {number} was dropped"


class PrunedState(NotHere):
    """The block is known; its state is older than what is kept."""

    block: int
    earliest: int
    template = "the state of block {block} is no longer kept; the earliest is {earliest}"


class HeaderOnly(ForeblockError):
    """A block of which the header alone is stored: its store was begun with its state.

    It is not among those of `NotHere`, which some methods answer with null.
    """

    block: int
    first: int
    template = "block {block} is here by its header only; whole blocks begin at {first}"


class PartialState(ForeblockError):
    """The base of the store is partial, and what was wanted is not in the part that is known.

    No data is said to be absent by it, so it is not among those of `NotHere`.
    """


class StateMissing(PartialState):
    """Keys that a read or a whole run wanted; it can be made again when they are learned."""

    misses: "Misses"
    template = "the state is not known here: {misses}"


class WaysMissing(StateMissing):
    """Keys to which the way in the trie of a block is not known, or not all of it.

    A root or a proof can be made when the nodes of their proofs at that block are there.
    """

    block: int
    template = "the trie of block {block} is not known here: {misses}"


class IncompleteState(PartialState):
    """Work that needs the whole state."""

    what: str
    template = "{what}: only a part of the state is known here"


class ExecutionError(ForeblockError):
    """Execution gave no outcome: neither success nor revert nor halt."""


class InvalidTransaction(ExecutionError):
    """A transaction that may not be in this block; nothing of it was applied."""

    index: int
    why: str
    template = "invalid transaction {index}: {why}"


class DeadlineExceeded(ExecutionError):
    """The run was stopped at its deadline."""

    template = "execution stopped at its deadline"


class OverBudget(ExecutionError):
    """A transaction exceeds its allowance of time, gas, or accounts and slots."""

    index: int
    what: str
    template = "transaction {index} takes more {what} than it may"


class TraceTooLong(ExecutionError):
    """A trace has more bytes than one answer may."""

    limit: int
    template = "the trace is longer than {limit} bytes, ask for less of it"


class RefusedTrace(ExecutionError):
    """What is asked for cannot be traced, or not in this way."""

    why: str


class PoolFull(ExecutionError):
    """No thread is free for a long call, and the queue is full."""

    waiting: int
    template = "the queue for long calls is full ({waiting} waiting)"


class TooManyWaiting(ExecutionError):
    """The queue of waiting requests of a worker is full."""

    most: int
    template = "too many requests are waiting ({most})"


class TooMuchUnsent(ExecutionError):
    """Unsent answers leave no room for another long one in a worker."""

    limit: int
    template = "too many bytes of answers are unsent (of {limit})"


class ExecutionFailed(ExecutionError):
    """The engine failed; the message did nothing wrong."""

    why: str
    template = "execution failed: {why}"


class RefusedCall(ExecutionError):
    """A call that fails the checks before it begins, such as one without funds."""

    why: str


class Rule(StrEnum):
    """The rules that a simulation may break; each has its own code on the wire."""

    NONCE_TOO_LOW = "nonce too low"
    NONCE_TOO_HIGH = "nonce too high"
    BASE_FEE = "fee cap below base fee"
    TIP = "tip above fee cap"
    INTRINSIC_GAS = "intrinsic gas"
    FUNDS = "funds"
    BLOCK_GAS = "gas limit of the block"
    INIT_CODE = "size of init code"
    BLOCK_NUMBER = "order of block numbers"
    BLOCK_TIME = "order of block times"
    LIMIT = "limit of the service"
    SYSTEM = "system contracts"
    OTHER = "transaction"


class RefusedSimulation(ExecutionError):
    """A simulation that breaks a rule before or between its calls; `rule` is a `Rule`."""

    rule: str
    why: str
    template = "{rule}: {why}"


class Reverted(ExecutionError):
    """A call reverted; `reason` is the text in its data, or empty."""

    output: bytes
    reason: str
    template = "execution reverted with {output}: {reason}"


class Halted(ExecutionError):
    """A call halted the EVM."""

    why: str


class TimedOut(ExecutionError):
    """A call exceeded its timeout."""

    timeout_ms: int

    def __str__(self) -> str:
        """The time as other nodes write it: 5s, 1.5s, 20ms."""
        milliseconds = self.timeout_ms
        time = f"{milliseconds / 1000:g}s" if milliseconds >= 1000 else f"{milliseconds}ms"
        return f"execution aborted (timeout = {time})"


class TooManyLogs(ExecutionError):
    """A query of logs exceeds a limit; blocks `first` to `last` would not."""

    why: str
    first: int
    last: int
    template = "{why}. Try with this block range [{first:#x}, {last:#x}]."


class UnknownRules(ExecutionError):
    """The chain has rules that this version cannot execute, from a block on."""

    block: int
    template = "this chain has rules that foreblock does not know (since block {block})"


class RejectedTransaction(ExecutionError):
    """The pool refused a transaction; `why` is its sentence."""

    why: str


class SequencerUnavailable(ExecutionError):
    """The network has no sequencer, or it is restarting.

    The transaction was not taken, and will not be.
    """

    template = "sequencer not available"


class SequencerBusy(ExecutionError):
    """The queue to the sequencer is full; the transaction was not taken."""

    template = "too many transactions wait for the sequencer"


class OutcomeUnknown(ExecutionError):
    """The sequencer did not answer in time: the pool may have the transaction."""

    template = "it is not known whether the transaction was taken, look for its hash"


class RefusedCommand(ExecutionError):
    """A command for a dev chain cannot be carried out."""

    why: str


class CommandUnknown(ExecutionError):
    """The writer did not answer in time: a command may have been carried out."""

    template = "it is not known whether the chain was changed"


class SyncTimedOut(ExecutionError):
    """The pool has the transaction, and no block had it in the time that its sender waits."""

    hash: bytes
    timeout_ms: int
    template = "transaction {hash} was in no block after {timeout_ms} ms"


class PoolUnavailable(ExecutionError):
    """The transaction pool did not answer in time."""

    template = "the transaction pool does not answer, try again later"


class PoolTooLarge(ExecutionError):
    """The transactions asked for are more than one answer may have."""

    size: int
    limit: int
    template = (
        "the transactions have {size} bytes, more than {limit}; ask for one sender with "
        "txpool_contentFrom, or for one transaction by its hash"
    )


class TooMuchState(ExecutionError):
    """A run needs more keys, or more rounds of fetching, than one request may have."""

    what: str
    template = "this needs more state than one request may fetch: {what}"


class PoolRefusal(ForeblockError):
    """The transaction pool refuses a transaction; the sentences are geth's.

    Clients depend on them: wallets match the beginning of a sentence.
    """


class AlreadyKnown(PoolRefusal):
    """The pool has this transaction already."""

    template = "already known"


class UnsupportedType(PoolRefusal):
    """A type that cannot be submitted here: blobs and deposits."""

    type: int
    template = "transaction type not supported: tx type {type} not supported by this pool"


class WrongBlobCount(PoolRefusal):
    """A blob transaction without blobs, or with too many."""

    found: int
    most: int

    def __str__(self) -> str:
        if not self.found:
            return "blobless blob transaction"
        return f"too many blobs in transaction: have {self.found}, permitted {self.most}"


class OversizedData(PoolRefusal):
    """More bytes than the pool takes."""

    size: int
    limit: int
    template = "oversized data: transaction size {size}, limit {limit}"


class InitCodeTooLarge(PoolRefusal):
    """A creation with more code than any block runs."""

    size: int
    limit: int
    template = "max initcode size exceeded: code size {size} limit {limit}"


class GasLimitTooHigh(PoolRefusal):
    """More gas than one transaction may have under this fork."""

    cap: int
    gas_limit: int
    template = "transaction gas limit too high (cap: {cap}, tx: {gas_limit})"


class ExceedsBlockGasLimit(PoolRefusal):
    """More gas than a block has for transactions."""

    template = "exceeds block gas limit"


class TipAboveFeeCap(PoolRefusal):
    """The priority fee is above the fee cap."""

    template = "max priority fee per gas higher than max fee per gas"


class WrongChain(PoolRefusal):
    """Signed for another chain."""

    have: int
    want: int
    template = "invalid sender: invalid chain id for signer: have {have} want {want}"


class LastNonce(PoolRefusal):
    """The highest nonce, which cannot be used (EIP-2681)."""

    template = "nonce has max value"


class IntrinsicGasTooLow(PoolRefusal):
    """Less gas than the intrinsic gas of the transaction."""

    gas: int
    needed: int
    template = "intrinsic gas too low: gas {gas}, minimum needed {needed}"


class FloorGasTooLow(PoolRefusal):
    """Less gas than the floor cost of the data (EIP-7623)."""

    gas: int
    needed: int
    template = "insufficient gas for floor data gas cost: gas {gas}, minimum needed {needed}"


class NoAuthorizations(PoolRefusal):
    """A set-code transaction that sets no code (EIP-7702)."""

    template = "set code tx must have at least one authorization tuple"


class FeeCapBelowMinimum(PoolRefusal):
    """The fee cap is below the minimum base fee of the chain."""

    fee_cap: int
    minimum: int
    template = (
        "max fee per gas less than block base fee: maxFeePerGas: {fee_cap}, minimum base fee "
        "of this chain: {minimum}"
    )


class FeeCapBelowBaseFee(PoolRefusal):
    """The fee cap is below the base fee of the block in progress."""

    fee_cap: int
    base_fee: int
    template = (
        "max fee per gas less than block base fee: maxFeePerGas: {fee_cap}, baseFee: {base_fee}"
    )


class NonceTooLow(PoolRefusal):
    """The sender has used this nonce."""

    next: int
    nonce: int
    template = "nonce too low: next nonce {next}, tx nonce {nonce}"


class InsufficientFunds(PoolRefusal):
    """The sender cannot pay for value, gas, the L1 fee and the operator fee."""

    balance: int
    cost: int

    def __str__(self) -> str:
        return (
            f"insufficient funds for gas * price + value: balance {self.balance}, "
            f"tx cost {self.cost}, overshot {self.cost - self.balance}"
        )


class Overdrawn(PoolRefusal):
    """The sender cannot pay for this and its transactions in the pool."""

    balance: int
    queued: int
    cost: int

    def __str__(self) -> str:
        overshot = self.queued + self.cost - self.balance
        return (
            f"insufficient funds for gas * price + value: balance {self.balance}, "
            f"queued cost {self.queued}, tx cost {self.cost}, overshot {overshot}"
        )


class ReplacementUnderpriced(PoolRefusal):
    """The fee is too low to replace the pooled transaction with this nonce."""

    template = "replacement transaction underpriced"


class SenderLimitReached(PoolRefusal):
    """The sender has its maximum of transactions in the pool."""

    pooled: int
    template = "account limit exceeded: pooled {pooled} txs"


class Underpriced(PoolRefusal):
    """The pool is full of transactions that offer at least as much."""

    template = "transaction underpriced"


class TransactionPoolFull(PoolRefusal):
    """The pool is full of executable transactions, and this one is not executable."""

    template = "txpool is full"


class SubscriptionError(ForeblockError):
    """A subscription or a filter cannot be had as it was asked for."""


class NotificationsUnsupported(SubscriptionError):
    """A subscription needs a connection on which notifications can be sent."""

    template = "notifications not supported"


class UnknownSubscription(SubscriptionError):
    """There is no subscription of this name."""

    name: str
    template = 'no "{name}" subscription in eth namespace'


class SubscriptionNotFound(SubscriptionError):
    """The connection has no subscription of this id."""

    template = "subscription not found"


class TooManySubscriptions(SubscriptionError):
    """A connection, or all connections of a worker, have as many subscriptions as they may."""

    most: int
    template = "too many subscriptions, at most {most}"


class SubscriptionsTooLarge(SubscriptionError):
    """The filters of a connection's or a worker's log subscriptions take too much memory."""

    of: str
    most: int
    template = "the log filters of this {of} are too large, at most {most} bytes"


class CursorTooOld(SubscriptionError):
    """What followed the position of a cursor is no longer kept, or was never here."""

    template = "the events after this cursor are no longer kept, subscribe without it"


class FilterNotFound(SubscriptionError):
    """There is no filter of this id, or not of this kind."""

    template = "filter not found"


class TooManyFilters(SubscriptionError):
    """The filters of a network have reached their number or their bytes."""

    most: int
    unit: str = ""
    template = "too many filters, at most {most}{unit}; uninstall those that are not needed"


class ImportFailure(ForeblockError):
    """The chain offered is not accepted; the store stays as it was before the bad part."""


class BadGenesis(ImportFailure):
    """The genesis file cannot be used; `where` is the path inside its JSON."""

    where: str
    why: str
    template = "genesis: {where}: {why}"


class BadState(ImportFailure):
    """A dump of a state, or the header it belongs to, cannot be used; line 0 is of no line."""

    line: int
    why: str

    def __str__(self) -> str:
        return f"state: line {self.line}: {self.why}" if self.line else f"state: {self.why}"


class BadForkChoice(ImportFailure):
    """The fork-choice file cannot be used; `where` is the path inside its JSON."""

    where: str
    why: str
    template = "fork choice: {where}: {why}"


class BadWitness(ImportFailure):
    """The file of a block and its witness cannot be used; `where` is the path inside its JSON."""

    where: str
    why: str
    template = "witness: {where}: {why}"


class BadBlock(ImportFailure):
    """A block breaks a rule; `what` was checked."""

    number: int
    what: str
    expected: str
    found: str
    template = "block {number}: {what}: expected {expected}, found {found}"


class DifferentGenesis(ImportFailure):
    """The store was begun from another genesis; `what` differs."""

    what: str
    stored: str
    found: str
    template = "the store was begun from another genesis: {what}: stored {stored}, found {found}"


class DifferentBlock(ImportFailure):
    """The store already holds another block of this number."""

    number: int
    stored: bytes
    found: bytes
    template = "block {number}: the store holds {stored}, the file has {found}"


class ServiceError(ForeblockError):
    """The service cannot run as it was asked to."""


class BadSetting(ServiceError):
    """A setting has a value that it cannot have; `name` says where it was given."""

    name: str
    why: str
    template = "{name}: {why}"


class BadChain(ServiceError):
    """A chain that is not known by this name, or whose file cannot be used."""

    name: str
    why: str
    template = "chain {name}: {why}"


class AddressInUse(ServiceError):
    """Another process listens there, perhaps another foreblock."""

    address: str
    template = "{address}: address already in use"


class AddressUnusable(ServiceError):
    """This machine cannot listen there."""

    address: str
    why: str
    template = "cannot listen on {address}: {why}"


class StateNotWritten(ServiceError):
    """The state of a development chain could not be written to its file."""

    file: str
    why: str
    template = "{file}: the state was not written: {why}"


class WorkerFailed(ServiceError):
    """A worker or the writer could not be started, or ended before it could serve."""

    why: str


class StopForced(ServiceError):
    """Processes did not stop in time and were killed."""

    names: str
    template = "killed what did not stop in time: {names}"


class BusBroken(ServiceError):
    """Bytes on the bus are no message."""

    why: str
    template = "the bus is broken: {why}"


class BusMessageTooLong(ServiceError):
    """A request needs a longer message to the writer than there may be."""

    size: int
    limit: int
    template = "the request needs {size} bytes for the writer, the limit is {limit}"


class StoreError(ForeblockError):
    """The store broke, or was misused."""


class StoreMissing(StoreError):
    """There is no store in this folder."""

    path: str
    template = "no store at {path}"


class StoreExists(StoreError):
    """The path of a new store exists already."""

    path: str
    template = "there is something at {path} already"


class NoChain(StoreError):
    """The store holds no block yet."""

    path: str
    template = "the store at {path} holds no chain yet"


class StoreLocked(StoreError):
    """Another process is the store's writer."""

    path: str
    template = "the store at {path} is already being written by another process"


class StoreOpenHere(StoreError):
    """This process has the store open already."""

    path: str
    template = "the store at {path} is already open in this process"


class StoreReplaced(StoreError):
    """The folder holds no store any more, or another one than was served."""

    path: str
    why: str
    template = "the store at {path} is not what was served: {why}; restart to go on"


class StoreClosed(StoreError):
    """The store, or an object made from it, is used after it was closed."""

    template = "the store is closed"


class StoreReadOnly(StoreError):
    """A write through a store that was opened for reading."""

    template = "the store was opened for reading only"


class StoreFull(StoreError):
    """The store cannot grow further: the system lets the process map no more of it."""

    map_size: int
    template = "the store has reached its map size of {map_size} bytes, and no more can be mapped"


class DiskFull(StoreError):
    """The disk has no room; nothing of the commit was kept."""

    why: str
    template = "the disk of the store is full: {why}"


class StaleBatch(StoreError):
    """The store has moved on since the batch was begun."""

    made_at: int
    now: int
    template = "the batch was made at commit {made_at}, the store is at {now}"


class RefusedCommit(StoreError):
    """The batch would make the store inconsistent."""

    why: str


class CommitDeclined(StoreError):
    """The last question before a commit was answered with no; nothing of it was kept."""

    template = "the commit was not agreed to"


class StoreDamaged(StoreError):
    """The stored data cannot come from a whole commit."""

    why: str
    template = "the store is damaged: {why}"


class WrongStateRoot(StoreError):
    """What was applied of a log gives another state than the header of its block names."""

    block: int
    found: bytes
    expected: bytes
    template = (
        "the state after block {block} has the root {found}, its header says {expected}: this "
        "replica has diverged and needs a snapshot"
    )


class UnknownStoreFormat(StoreError):
    """The store was written by a version of this program with another layout."""

    found: int
    known: int
    template = "the store has format {found}, this program reads {known}"


class StoreFailed(StoreError):
    """The operating system or the store's library refused."""

    why: str
    template = "the store failed: {why}"


class MissingNode(StoreError):
    """A trie node that a root or a read needs is not here."""

    address: bytes  # whose storage trie it belongs to; empty: the trie of accounts
    path: str  # from the root, a hexadecimal digit for each step

    def __str__(self) -> str:
        owner = (
            f"the storage trie of 0x{self.address.hex()}" if self.address else "the account trie"
        )
        return f"no trie node at path '{self.path}' of {owner}"


class MissingCode(StoreError):
    """An account names code that is not kept."""

    hash: bytes
    template = "no code with hash {hash}"


class MissingHeader(StoreError):
    """A witness has no header from which the hash of a block would follow."""

    block: int
    template = "no header that names block {block}"


class FeedError(ForeblockError):
    """A message of a feed cannot be used; connection and chain are not affected."""


class MalformedFlashblock(FeedError):
    """A message of a feed cannot be read; `field` is its path, or `message` for all of it."""

    field: str
    why: str
    template = "malformed flashblock: {field}: {why}"


class BadRecording(FeedError):
    """A file is no recording of a feed, or is damaged."""

    name: str
    line: int
    why: str
    template = "{name}: line {line}: {why}"


class LogError(ForeblockError):
    """The log of a network cannot be read or written; the store is not affected."""


class MalformedLogMessage(LogError):
    """Bytes are not a message of a log; `what` they were to be, and `why` they are not."""

    what: str
    why: str
    template = "malformed {what}: {why}"


class NewerLogFormat(LogError):
    """A message has a format of a newer version."""

    what: str
    found: int
    known: int
    template = "the {what} is {found}, this version knows {known}: upgrade this node"


class LogMessageTooLarge(LogError):
    """A commit does not fit into the log."""

    size: int
    limit: int
    template = "a commit of {size} bytes is too large for the log, at most {limit}"


class ForkedLog(LogError):
    """The log has another history than this store."""

    sequence: int
    why: str
    template = "the log has another history at sequence {sequence}: {why}"


class ForeignLog(LogError):
    """The log is not the one that this store is a prefix of."""

    found: bytes
    expected: bytes
    template = "the log is {found}, this store follows {expected}"


class LogBeginsLater(LogError):
    """The log no longer has, or never had, the commit after the last one of this store."""

    commit: int
    first: int
    template = "the log begins after commit {first}, this store is at {commit}: it needs a snapshot"


class LogLostCommits(LogError):
    """The log ends before what it has acknowledged, and this node cannot append it again."""

    last: int
    expected: int
    template = (
        "the log ends at sequence {last}, this store is at {expected}: it has lost "
        "acknowledged commits"
    )


class Deposed(LogError):
    """Another writer has appended to the log: this one may write no more."""

    epoch: int
    sequence: int
    template = "deposed by the writer of epoch {epoch} at sequence {sequence}"


class LogUnreachable(LogError):
    """The log does not answer."""

    why: str
    template = "the log does not answer: {why}"


class NobodyListens(LogUnreachable):
    """A question was certainly not heard: nobody listens to it, or it was not sent."""


class LogServerTooOld(LogError):
    """A NATS server does not have what the log needs."""

    version: str
    needed: str
    template = (
        "the NATS server has version {version}, which is too old: the log needs {needed} or newer"
    )


class BadLogStream(LogError):
    """The stream of the log is not there, or has other settings than it needs."""

    stream: str
    why: str
    template = "the stream {stream} cannot be the log: {why}"


class SnapshotError(ForeblockError):
    """A copy of a store that another node sends cannot be had, or not be used."""


class SnapshotRefused(SnapshotError):
    """A node sends no snapshot: it is not there, has none, or is busy."""

    url: str
    why: str
    template = "no snapshot from {url}: {why}"


class DamagedSnapshot(SnapshotError):
    """What was received is not a whole snapshot."""

    why: str
    template = "damaged snapshot: {why}"


class UnfitSnapshot(SnapshotError):
    """A snapshot is whole, and cannot be used here."""

    why: str
    template = "the snapshot cannot be used: {why}"


class NoSnapshot(SnapshotError):
    """None of the nodes that were asked gave a snapshot that can be used."""

    why: str
    template = "no snapshot: {why}"


class EndpointError(ForeblockError):
    """A JSON-RPC endpoint that was asked gave no result."""


class Unreachable(EndpointError):
    """No answer from this address."""

    url: str
    why: str
    template = "no answer from {url}: {why}"


class NotAnAnswer(EndpointError):
    """The reply is not a JSON-RPC answer."""

    url: str
    why: str
    template = "{url} does not answer as a JSON-RPC endpoint does: {why}"


class NoSuchBlock(EndpointError):
    """The endpoint has no block of this name."""

    url: str
    name: str
    template = "{url} has no block {name}"


class DisputedBlock(EndpointError):
    """The upstreams have different blocks with this number."""

    number: int
    said: str  # which upstream has which hash
    template = "the upstreams disagree about block {number}: {said}"


class ErrorAnswer(EndpointError):
    """The endpoint answered with an error; `data` is its data as text, empty if it has none."""

    code: int
    message: str
    data: str = ""

    def __str__(self) -> str:
        data = f" (data {self.data})" if self.data else ""
        return f"error {self.code}: {self.message}{data}"


class RefusedAnswer(EndpointError):
    """An answer of an upstream that is no value; `kind` is one of `upstream.json_rpc.RefusalKind`.

    `said` is the error that it answered the request with, if it is one.
    """

    kind: str
    why: str
    said: ErrorAnswer | None = None
    template = "{kind}: {why}"


class BadProof(EndpointError):
    """Trie nodes that do not lead from a root to the key they are said to prove."""

    why: str
    template = "the proof does not hold: {why}"


class NoUpstream(EndpointError):
    """No upstream gave what was wanted in time; ask again after some seconds."""

    why: str
    retry_after: int
    template = "no upstream answered: {why}; try again in {retry_after} s"


class UnitsSpent(EndpointError):
    """The budget of all upstreams was spent for as long as could be waited."""

    retry_after: int
    template = "the budget of the upstreams is spent; try again in {retry_after} s"


class InvalidProofData(EndpointError):
    """The upstreams gave state that their proofs do not prove."""

    why: str
    template = "what upstreams gave is not proven: {why}"


class NewEpoch(EndpointError):
    """What was asked for belongs to a base that the store has left."""

    template = "the store has begun anew at another block"
