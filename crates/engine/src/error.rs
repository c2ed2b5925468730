//! Everything that can go wrong in the engine, one variant per cause.
//!
//! A revert or an exceptional halt is not here: those are outcomes of a run
//! (`execute::Outcome`). The Python crate turns each variant into one exception.

use alloy_primitives::{Address, B256};

use crate::missing_keys::MissingKeys;
use crate::trie::MissingNode;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    // The caller is wrong.
    #[error("{0}")]
    InvalidArgument(String),
    /// An override of an account is well-formed and cannot be meant.
    #[error("{0}")]
    RefusedOverride(String),
    /// Bytes that are not what they are said to be: a transaction, a header, a block.
    #[error("{what}: {why}")]
    Undecodable { what: &'static str, why: String },

    /// A dump of a state that cannot be used; line 0 where it is of no line.
    #[error("line {line}: {why}")]
    BadState { line: u64, why: String },

    // The data is not here.
    #[error("unknown block {0}")]
    UnknownBlock(u64),
    #[error("unknown partial block {0}")]
    UnknownPartial(u64),
    #[error("partial block {0} was dropped")]
    DroppedPartial(u64),
    #[error("the state of block {block} is no longer kept; the earliest is {earliest}")]
    PrunedState { block: u64, earliest: u64 },
    /// The base of the store is partial, and these keys of it are not known.
    #[error("{} keys of the state are not known here", .0.len())]
    StateMissing(Box<MissingKeys>),
    /// The base of the store is partial, and nodes on the paths to these keys in the trie of
    /// this block are not known.
    #[error("the paths to {} keys in the trie of block {block} are not known here", keys.len())]
    MissingTrieNodes { keys: Box<MissingKeys>, block: u64 },
    /// The base of the store is partial, and this needs all of it.
    #[error("{0} needs the whole state, of which only a part is known here")]
    IncompleteState(&'static str),
    /// Nodes that do not lead from a root to a key.
    #[error("the proof is not one: {0}")]
    BadProof(String),

    // Execution could not give an outcome.
    /// The transaction may not stand in this block. Nothing of it was applied.
    #[error("invalid transaction {index}: {why}")]
    InvalidTransaction { index: usize, why: String },
    #[error("the message cannot be run: {0}")]
    InvalidMessage(String),
    #[error("execution stopped at its deadline")]
    DeadlineExceeded,
    /// A transaction took more than it was allowed. Nothing of it was applied.
    #[error("transaction {index} exceeds its allowance of {what}")]
    OverBudget { index: usize, what: &'static str },
    /// A trace would have more bytes than it may.
    #[error("the trace is longer than {0} bytes")]
    TraceTooLong(usize),
    #[error("{0} is not a precompile")]
    NotAPrecompile(Address),
    #[error("the queue for long calls is full ({0} waiting)")]
    PoolFull(usize),
    /// The EVM failed in a way that is our fault, not the message's.
    #[error("execution failed: {0}")]
    Execution(String),

    // The store broke, or was misused.
    #[error("no store at {0}")]
    StoreMissing(String),
    #[error("the store at {0} is already being written by another process")]
    StoreLocked(String),
    #[error("the store at {0} is already open in this process")]
    StoreOpenHere(String),
    #[error("the store is closed")]
    StoreClosed,
    #[error("the store was opened for reading only")]
    StoreReadOnly,
    #[error("the store has reached its map size of {0} bytes, and no more can be mapped")]
    StoreFull(usize),
    #[error("the store has grown beyond what is mapped")]
    MapOutgrown,
    #[error("the disk of the store is full: {0}")]
    DiskFull(String),
    #[error("the batch was made at commit {made_at}, the store is at {now}")]
    StaleBatch { made_at: u64, now: u64 },
    #[error("{0}")]
    RefusedCommit(String),
    /// All of it fits, and who was asked last did not agree.
    #[error("the commit was declined")]
    CommitDeclined,
    #[error("the store is damaged: {0}")]
    StoreDamaged(String),
    /// It was written by another version of this program.
    #[error("the store has format {found}, this program reads {known}")]
    UnknownStoreFormat { found: u8, known: u8 },
    #[error("the store failed: {0}")]
    Store(String),
    #[error("no trie node at {0}")]
    MissingNode(MissingNode),
    #[error("no code with hash {0}")]
    MissingCode(B256),
    /// BLOCKHASH asked for a block whose child's header is not here.
    #[error("no header that names block {0}")]
    MissingHeader(u64),
}

impl Error {
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::InvalidArgument(why.into())
    }
}
