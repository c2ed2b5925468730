"""Every exception of foreblock, in one tree.

An exception carries its facts as attributes, given in order, and `template` makes the message
from them. Without a template the first fact is the message. The engine raises these classes, so
their names and the order of their facts are part of its interface. A revert or a halt of a run is
an outcome, not an exception; `Reverted` and `Halted` are raised by methods that cannot return one.
JSON-RPC error codes are in `rpc.error_codes`.

The file is long because the tree is one subject: it is read, documented and caught as a whole.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

if TYPE_CHECKING:
    from foreblock._engine import MissingKeys


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
    """The request is wrong, whichever node receives it."""


class InvalidArgument(CallerError):
    why: str


class Undecodable(CallerError):
    """Bytes that are not a valid transaction, header, block or ABI encoding."""

    what: str
    why: str
    template = "{what}: {why}"


class InvalidMessage(CallerError):
    """A message that no block can execute, such as one that cannot pay for its gas."""

    why: str
    template = "the message cannot be run: {why}"


class NotAPrecompile(CallerError):
    address: bytes
    template = "{address} is not a precompile"


class InvalidParams(CallerError):
    """The parameters of a request do not match its method."""

    why: str


class NoSigner(InvalidParams):
    """A dev chain has no key of the sender, and does not impersonate it."""

    why: str = "No Signer available"  # anvil's words, which tools read
    hint = "eth_accounts lists the accounts with a key; anvil_impersonateAccount lets others send"


class BadArgument(InvalidParams):
    """One argument of a request is invalid; `path` is the position in it, or empty."""

    argument: int
    path: str

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"invalid argument {self.argument}: {place}{self.why}"


class LimitExceeded(CallerError):
    """The request exceeds a limit; `why` names it."""

    why: str


class RefusedOverride(CallerError):
    """A well-formed override that cannot be applied."""

    why: str


class RefusedFilter(CallerError):
    """A well-formed log filter that cannot be applied, such as one with an unknown block."""

    why: str


class HiddenMethod(CallerError):
    """A method of development chains that is not available at this address."""

    method: str
    why: str
    template = "the method {method} is not available here: {why}"


class NotHere(ForeblockError):
    """The requested data is not in the store."""


class UnknownBlock(NotHere):
    number: int
    template = "unknown block {number}"


class BeforeAnchor(UnknownBlock):
    """The block is older than the block where this store started to follow the chain."""

    anchor: int
    template = (
        "block {number} is older than block {anchor}, where this instance started to follow the "
        "chain"
    )


class UnknownBlockHash(NotHere):
    hash: bytes
    template = "unknown block {hash}"


class NotCanonical(NotHere):
    """The block is known but not canonical, as the request requires."""

    hash: bytes
    template = "block {hash} is not canonical"


class NoSuchHead(NotHere):
    tag: str
    template = "there is no {tag} block"


class UnknownPartial(NotHere):
    """The partial block never existed here or is no longer stored."""

    number: int
    template = "unknown partial block {number}"


class DroppedPartial(NotHere):
    """The partial block is on an abandoned branch."""

    number: int
    template = "partial block {number} was dropped"


class PrunedState(NotHere):
    """The block is known, but its state is no longer stored."""

    block: int
    earliest: int
    template = "the state of block {block} is no longer kept; the earliest is {earliest}"


class HeaderOnly(ForeblockError):
    """Only the header of a block is stored, because the store was created from a later state.

    It is not a `NotHere`, which some methods answer with null.
    """

    block: int
    first: int
    template = "only the header of block {block} is stored; full blocks start at {first}"


class PartialState(ForeblockError):
    """The store knows only a part of the state, and the requested data is not in it.

    It does not mean that the data is absent, so it is not a `NotHere`.
    """


class StateMissing(PartialState):
    """Missing keys of a read or a whole run, which can be repeated once they are fetched."""

    misses: "MissingKeys"
    template = "the state is not known here: {misses}"


class MissingTrieNodes(StateMissing):
    """Keys whose paths in the trie of a block are not fully known.

    A root or a proof can be computed once the nodes of their proofs at that block are fetched.
    """

    block: int
    template = "the trie of block {block} is not known here: {misses}"


class IncompleteState(PartialState):
    """Work that needs the whole state."""

    what: str
    template = "{what}: only a part of the state is known here"


class ExecutionError(ForeblockError):
    """Execution had no outcome: neither success nor revert nor halt."""


class InvalidTransaction(ExecutionError):
    """A transaction that this block must not contain; it was not applied."""

    index: int
    why: str
    template = "invalid transaction {index}: {why}"


class DeadlineExceeded(ExecutionError):
    template = "execution stopped at its deadline"


class OverBudget(ExecutionError):
    """A transaction exceeds its allowance of time, gas, or accounts and slots."""

    index: int
    what: str
    template = "transaction {index} exceeds its allowance of {what}"


class TraceTooLong(ExecutionError):
    """A trace has more bytes than a response may have."""

    limit: int
    template = "the trace is longer than {limit} bytes; request a smaller part"


class RefusedTrace(ExecutionError):
    """The request cannot be traced, or not with this tracer."""

    why: str


class PoolFull(ExecutionError):
    """No thread is free for a long call, and the queue is full."""

    waiting: int
    template = "the queue for long calls is full ({waiting} waiting)"


class TooManyWaiting(ExecutionError):
    """The queue of waiting requests of a worker is full."""

    most: int
    template = "too many requests are waiting ({most})"


class KeyBudgetSpent(ExecutionError):
    """The API key of a request has no unit left."""

    retry_after: int
    template = "the budget of this API key is spent; try again in {retry_after} s"


class TooMuchUnsent(ExecutionError):
    """Unsent responses leave no memory for another long response of this worker."""

    limit: int
    template = "too many unsent response bytes (limit {limit})"


class ExecutionFailed(ExecutionError):
    """The engine failed; the message is not the cause."""

    why: str
    template = "execution failed: {why}"


class RefusedCall(ExecutionError):
    """A call that fails the checks before execution, such as one without funds."""

    why: str


class Rule(StrEnum):
    """Rules that a simulation can break; each has its own JSON-RPC error code."""

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
    why: str


class TimedOut(ExecutionError):
    timeout_ms: int

    def __str__(self) -> str:
        # The time as other nodes write it: 5s, 1.5s, 20ms.
        milliseconds = self.timeout_ms
        time = f"{milliseconds / 1000:g}s" if milliseconds >= 1000 else f"{milliseconds}ms"
        return f"execution aborted (timeout = {time})"


class TooManyLogs(ExecutionError):
    """A log query exceeds a limit; blocks `first` to `last` would not."""

    why: str
    first: int
    last: int
    template = "{why}. Try with this block range [{first:#x}, {last:#x}]."


class UnknownRules(ExecutionError):
    """From a block on, the chain has rules that this version cannot execute."""

    block: int
    template = "this chain has rules that foreblock does not know (since block {block})"


class RejectedTransaction(ExecutionError):
    """The pool rejected a transaction; `why` is the pool's message."""

    why: str


class NonceUsedAboveLatest(RejectedTransaction):
    """The nonce is too low for the pool, since a pre-confirmed transaction above `latest` has it.

    A client that reads nonces at `latest` cannot see that transaction.
    """

    hint = 'a pre-confirmed transaction has this nonce; read nonces at "pending", or use /eth'


class SequencerUnavailable(ExecutionError):
    """The network has no sequencer, or it is restarting.

    The transaction was not accepted, and will not be.
    """

    template = "sequencer not available"


class NoSequencerHere(SequencerUnavailable):
    """This service only reads: its network has no sequencer, and none will come."""

    hint = "this service only reads; `foreblock follow --send URL` forwards transactions"


class SequencerBusy(ExecutionError):
    """The queue to the sequencer is full; the transaction was not accepted."""

    template = "too many transactions are waiting for the sequencer"


class OutcomeUnknown(ExecutionError):
    """The sequencer did not respond in time; the pool may have the transaction."""

    template = "the transaction may have been accepted; look it up by its hash"


class RefusedCommand(ExecutionError):
    """A command for a development chain cannot be executed."""

    why: str


class CommandUnknown(ExecutionError):
    """The writer did not respond in time; the command may have been executed."""

    template = "the chain may have been changed"


class TransactionDropped(ExecutionError):
    """A local transaction of a mirror can run no more; the reason is stored."""

    why: str
    template = "the transaction was dropped: {why}"


class SyncTimedOut(ExecutionError):
    """The pool has the transaction, but no block included it within the timeout."""

    hash: bytes
    timeout_ms: int
    template = "transaction {hash} was not included within {timeout_ms} ms"


class PoolUnavailable(ExecutionError):
    template = "the transaction pool does not respond; try again later"


class PoolTooLarge(ExecutionError):
    """The requested transactions exceed the size of a response."""

    size: int
    limit: int
    template = (
        "the transactions have {size} bytes, limit {limit}; request one sender with "
        "txpool_contentFrom, or one transaction by its hash"
    )


class TooMuchState(ExecutionError):
    """A run needs more keys, or more fetch rounds, than one request may use."""

    what: str
    template = "this needs more state than one request may fetch: {what}"


class PoolRefusal(ForeblockError):
    """The transaction pool rejects a transaction.

    The messages are geth's: wallets match the beginning of a message.
    """


class AlreadyKnown(PoolRefusal):
    template = "already known"


class UnsupportedType(PoolRefusal):
    """A transaction type that cannot be submitted here: blobs and deposits."""

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
    size: int
    limit: int
    template = "oversized data: transaction size {size}, limit {limit}"


class InitCodeTooLarge(PoolRefusal):
    size: int
    limit: int
    template = "max initcode size exceeded: code size {size} limit {limit}"


class GasLimitTooHigh(PoolRefusal):
    """More gas than this fork allows for one transaction."""

    cap: int
    gas_limit: int
    template = "transaction gas limit too high (cap: {cap}, tx: {gas_limit})"


class ExceedsBlockGasLimit(PoolRefusal):
    template = "exceeds block gas limit"


class TipAboveFeeCap(PoolRefusal):
    template = "max priority fee per gas higher than max fee per gas"


class WrongChain(PoolRefusal):
    have: int
    want: int
    template = "invalid sender: invalid chain id for signer: have {have} want {want}"


class LastNonce(PoolRefusal):
    """The highest nonce, which cannot be used (EIP-2681)."""

    template = "nonce has max value"


class IntrinsicGasTooLow(PoolRefusal):
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
    fee_cap: int
    minimum: int
    template = (
        "max fee per gas less than block base fee: maxFeePerGas: {fee_cap}, minimum base fee "
        "of this chain: {minimum}"
    )


class FeeCapBelowBaseFee(PoolRefusal):
    fee_cap: int
    base_fee: int
    template = (
        "max fee per gas less than block base fee: maxFeePerGas: {fee_cap}, baseFee: {base_fee}"
    )


class NonceTooLow(PoolRefusal):
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
    template = "replacement transaction underpriced"


class SenderLimitReached(PoolRefusal):
    pooled: int
    template = "account limit exceeded: pooled {pooled} txs"


class Underpriced(PoolRefusal):
    """The pool is full of transactions that offer at least as much."""

    template = "transaction underpriced"


class TransactionPoolFull(PoolRefusal):
    """The pool is full of executable transactions, and this one is not executable."""

    template = "txpool is full"


class SubscriptionError(ForeblockError):
    """A subscription or a filter cannot be created or used as requested."""


class NotificationsUnsupported(SubscriptionError):
    """A subscription needs a connection that can carry notifications."""

    template = "notifications not supported"


class UnknownSubscription(SubscriptionError):
    name: str
    template = 'no "{name}" subscription in eth namespace'


class SubscriptionNotFound(SubscriptionError):
    template = "subscription not found"


class TooManySubscriptions(SubscriptionError):
    """A connection, or all connections of a worker, have reached their limit."""

    most: int
    template = "too many subscriptions, at most {most}"


class SubscriptionsTooLarge(SubscriptionError):
    """The filters of a connection's or a worker's log subscriptions take too much memory."""

    of: str
    most: int
    template = "the log filters of this {of} are too large, at most {most} bytes"


class CursorTooOld(SubscriptionError):
    """The events after a cursor are no longer stored, or never were."""

    template = "the events after this cursor are no longer kept; subscribe without it"


class FilterNotFound(SubscriptionError):
    template = "filter not found"


class TooManyFilters(SubscriptionError):
    """The filters of a network have reached their limit, in number or bytes."""

    most: int
    unit: str = ""
    template = "too many filters, at most {most}{unit}; uninstall unused filters"


class ImportFailure(ForeblockError):
    """The chain is not accepted; the store is unchanged from before the bad part."""


class BadGenesis(ImportFailure):
    """The genesis file is invalid; `where` is the path in its JSON."""

    where: str
    why: str
    template = "genesis: {where}: {why}"


class BadState(ImportFailure):
    """A state dump, or the header of its block, is invalid; line 0 means no line."""

    line: int
    why: str

    def __str__(self) -> str:
        return f"state: line {self.line}: {self.why}" if self.line else f"state: {self.why}"


class BadForkChoice(ImportFailure):
    """The fork-choice file is invalid; `where` is the path in its JSON."""

    where: str
    why: str
    template = "fork choice: {where}: {why}"


class BadWitness(ImportFailure):
    """The file of a block and its witness is invalid; `where` is the path in its JSON."""

    where: str
    why: str
    template = "witness: {where}: {why}"


class BadBlock(ImportFailure):
    """A block breaks a rule; `what` is the checked property."""

    number: int
    what: str
    expected: str
    found: str
    template = "block {number}: {what}: expected {expected}, found {found}"


class DifferentGenesis(ImportFailure):
    """The store was created from another genesis; `what` differs."""

    what: str
    stored: str
    found: str
    template = "the store has another genesis: {what}: stored {stored}, found {found}"


class DifferentBlock(ImportFailure):
    """The store has another block with this number."""

    number: int
    stored: bytes
    found: bytes
    template = "block {number}: the store holds {stored}, the file has {found}"


class ServiceError(ForeblockError):
    """The service cannot run as configured."""


class BadSetting(ServiceError):
    """A setting has an invalid value; `name` includes where it was set."""

    name: str
    why: str
    template = "{name}: {why}"


class BadChain(ServiceError):
    """The name of a chain is unknown, or its file is invalid."""

    name: str
    why: str
    template = "chain {name}: {why}"


class AddressInUse(ServiceError):
    """Another process, perhaps another foreblock, listens at this address."""

    address: str
    owner: str = ""  # its name and id, if it can be seen

    def __str__(self) -> str:
        return f"{self.address}: address already in use{self.owner and ' by ' + self.owner}"


class AddressUnusable(ServiceError):
    address: str
    why: str
    template = "cannot listen on {address}: {why}"


class StateNotWritten(ServiceError):
    file: str
    why: str
    template = "{file}: the state was not written: {why}"


class WorkerFailed(ServiceError):
    """A worker or the writer could not be started, or ended before it could serve."""

    why: str


class StopForced(ServiceError):
    """Processes did not stop in time and were killed."""

    names: str
    template = "killed processes that did not stop in time: {names}"


class BusBroken(ServiceError):
    why: str
    template = "invalid message on the bus: {why}"


class BusMessageTooLong(ServiceError):
    """A request needs a longer message to the writer than is allowed."""

    size: int
    limit: int
    template = "the request needs {size} bytes for the writer, the limit is {limit}"


class StoreError(ForeblockError):
    """The store failed or was misused."""


class StoreMissing(StoreError):
    path: str
    template = "no store at {path}"


class StoreExists(StoreError):
    path: str
    template = "{path} already exists"


class NoChain(StoreError):
    path: str
    template = "the store at {path} holds no chain yet"


class StoreLocked(StoreError):
    path: str
    template = "the store at {path} is already being written by another process"


class StoreOpenHere(StoreError):
    path: str
    template = "the store at {path} is already open in this process"


class StoreReplaced(StoreError):
    """The directory no longer contains the store that was served."""

    path: str
    why: str
    template = "the store at {path} is not the one that was served: {why}; restart the service"


class StoreClosed(StoreError):
    """The store, or an object created from it, was used after it was closed."""

    template = "the store is closed"


class StoreReadOnly(StoreError):
    template = "the store was opened for reading only"


class StoreFull(StoreError):
    """The store cannot grow: the system lets the process map no more of it."""

    map_size: int
    template = "the store has reached its map size of {map_size} bytes, and no more can be mapped"


class DiskFull(StoreError):
    """The disk is full; the commit was not made."""

    why: str
    template = "the disk of the store is full: {why}"


class StaleBatch(StoreError):
    """Another commit happened after the batch was started."""

    made_at: int
    now: int
    template = "the batch was made at commit {made_at}, the store is at {now}"


class RefusedCommit(StoreError):
    """The batch would make the store inconsistent."""

    why: str


class CommitDeclined(StoreError):
    """The last check before a commit failed; the commit was not made."""

    template = "the commit was declined"


class StoreDamaged(StoreError):
    """The stored data cannot come from a whole commit."""

    why: str
    template = "the store is damaged: {why}"


class WrongStateRoot(StoreError):
    """The commits of a log result in another state root than the header of its block."""

    block: int
    found: bytes
    expected: bytes
    template = (
        "the state after block {block} has the root {found}, its header says {expected}: this "
        "replica has diverged and needs a snapshot"
    )


class UnknownStoreFormat(StoreError):
    """The store was written by a version with another layout."""

    found: int
    known: int
    template = "the store has format {found}, this program reads {known}"


class StoreFailed(StoreError):
    """The operating system or the store's library refused."""

    why: str
    template = "the store failed: {why}"


class MissingNode(StoreError):
    """A trie node that a root or a read needs is missing."""

    address: bytes  # whose storage trie it belongs to; empty: the trie of accounts
    path: str  # from the root, a hexadecimal digit for each step

    def __str__(self) -> str:
        owner = (
            f"the storage trie of 0x{self.address.hex()}" if self.address else "the account trie"
        )
        return f"no trie node at path '{self.path}' of {owner}"


class MissingCode(StoreError):
    hash: bytes
    template = "no code with hash {hash}"


class MissingHeader(StoreError):
    """A witness lacks the header that contains the hash of a block."""

    block: int
    template = "no header that names block {block}"


class FeedError(ForeblockError):
    """A message of a feed is unusable; connection and chain are not affected."""


class MalformedFlashblock(FeedError):
    """A message of a feed is invalid; `field` is a path in it, or `message`."""

    field: str
    why: str
    template = "malformed flashblock: {field}: {why}"


class BadRecording(FeedError):
    """A file is not a recording of a feed, or is damaged."""

    name: str
    line: int
    why: str
    template = "{name}: line {line}: {why}"


class LogError(ForeblockError):
    """The log of a network cannot be read or written; the store is not affected."""


class MalformedLogMessage(LogError):
    """Bytes that are not a valid message of a log; `what` was expected."""

    what: str
    why: str
    template = "malformed {what}: {why}"


class NewerLogFormat(LogError):
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
    """The log and this store have different histories."""

    sequence: int
    why: str
    template = "the log has a different history at sequence {sequence}: {why}"


class ForeignLog(LogError):
    """This store is not a prefix of the log."""

    found: bytes
    expected: bytes
    template = "the log is {found}, this store follows {expected}"


class LogBeginsLater(LogError):
    """The log does not have the commit after the last one of this store."""

    commit: int
    first: int
    template = "the log begins after commit {first}, this store is at {commit}: it needs a snapshot"


class LogLostCommits(LogError):
    """The log lacks commits that it acknowledged, and this node cannot append them again."""

    last: int
    expected: int
    template = (
        "the log ends at sequence {last}, this store is at {expected}: it has lost "
        "acknowledged commits"
    )


class Deposed(LogError):
    """Another writer appended to the log; this one must stop writing."""

    epoch: int
    sequence: int
    template = "deposed by the writer of epoch {epoch} at sequence {sequence}"


class LogUnreachable(LogError):
    """The log does not respond."""

    why: str
    template = "the log does not respond: {why}"


class NobodyListens(LogUnreachable):
    """A request was not delivered: it has no receiver, or was not sent."""


class LogServerTooOld(LogError):
    version: str
    needed: str
    template = (
        "the NATS server has version {version}, which is too old: the log needs {needed} or newer"
    )


class BadLogStream(LogError):
    """The stream of the log is missing or has wrong settings."""

    stream: str
    why: str
    template = "the stream {stream} cannot be the log: {why}"


class SnapshotError(ForeblockError):
    """A snapshot of another node is not available or not usable."""


class SnapshotRefused(SnapshotError):
    """A node sends no snapshot: it is unreachable, has none, or is busy."""

    url: str
    why: str
    template = "no snapshot from {url}: {why}"


class DamagedSnapshot(SnapshotError):
    why: str
    template = "damaged snapshot: {why}"


class UnfitSnapshot(SnapshotError):
    """A snapshot is complete but cannot be used here."""

    why: str
    template = "the snapshot cannot be used: {why}"


class NoSnapshot(SnapshotError):
    """No node provided a usable snapshot."""

    why: str
    template = "no snapshot: {why}"


class EndpointError(ForeblockError):
    """A request to a JSON-RPC endpoint had no result."""


class Unreachable(EndpointError):
    """The endpoint did not respond."""

    url: str
    why: str
    template = "no response from {url}: {why}"


class NotAnAnswer(EndpointError):
    """The response is not a JSON-RPC response."""

    url: str
    why: str
    template = "{url} is not a JSON-RPC endpoint: {why}"


class NoSuchBlock(EndpointError):
    url: str
    name: str
    template = "{url} has no block {name}"


class StaleEndpoint(EndpointError):
    """The endpoint does not include what the request demands, or does not say so."""

    url: str
    wanted: str
    why: str
    template = "{url} has not reached {wanted}: {why}"


class DisputedBlock(EndpointError):
    """The upstreams have different blocks with this number."""

    number: int
    said: str  # which upstream has which hash
    template = "the upstreams disagree about block {number}: {said}"


class ErrorAnswer(EndpointError):
    """The endpoint responded with an error; `data` is its data as text, or empty."""

    code: int
    message: str
    data: str = ""

    def __str__(self) -> str:
        data = f" (data {self.data})" if self.data else ""
        return f"error {self.code}: {self.message}{data}"


class RefusedAnswer(EndpointError):
    """A response of an upstream that is no value; `kind` is one of `upstream.json_rpc.RefusalKind`.

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
    """No upstream responded in time; retry after some seconds."""

    why: str
    retry_after: int
    template = "no upstream responded: {why}; try again in {retry_after} s"


class UnitsSpent(EndpointError):
    """The budget of all upstreams was spent for as long as could be waited."""

    retry_after: int
    template = "the budget of the upstreams is spent; try again in {retry_after} s"


class InvalidProofData(EndpointError):
    """The upstreams gave state that their proofs do not prove."""

    why: str
    template = "the response of an upstream is not proven: {why}"


class NewEpoch(EndpointError):
    """The requested state belongs to a base that the store has left."""

    template = "the store has begun anew at another block"
