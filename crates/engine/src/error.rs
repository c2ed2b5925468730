//! All errors of the engine, one variant per cause.
//!
//! Reverts and exceptional halts are not errors but outcomes of a run (`evm::outcome::Outcome`).
//! The Python crate maps each variant to one exception.

use alloy_primitives::{Address, B256};

use crate::missing_keys::{Missed, MissingKeys};
use crate::node_key::MissingNode;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    // Invalid input.
    #[error("{0}")]
    InvalidArgument(String),
    /// A well-formed but inconsistent override: `state` with `stateDiff`, or an invalid move.
    #[error("{0}")]
    RefusedOverride(String),
    /// Bytes that do not decode as the stated type: a transaction, a header, a block.
    #[error("{what}: {why}")]
    Undecodable { what: &'static str, why: String },

    /// An unusable state dump. `line` is 0 if the error does not belong to a line.
    #[error("line {line}: {why}")]
    BadState { line: u64, why: String },

    // Missing data.
    #[error("unknown block {0}")]
    UnknownBlock(u64),
    #[error("unknown partial block {0}")]
    UnknownPartial(u64),
    #[error("partial block {0} was dropped")]
    DroppedPartial(u64),
    #[error("the state of block {block} is no longer kept; the earliest is {earliest}")]
    PrunedState { block: u64, earliest: u64 },
    /// The base state is partial, and these keys are unknown.
    #[error("{} keys of the state are not known here", .0.len())]
    StateMissing(Box<MissingKeys>),
    /// The base state is partial, and trie nodes on the paths to these keys in this block are
    /// unknown.
    #[error("the paths to {} keys in the trie of block {block} are not known here", keys.len())]
    MissingTrieNodes { keys: Box<MissingKeys>, block: u64 },
    /// The base state is partial, and the operation needs the complete state.
    #[error("{0} needs the whole state, of which only a part is known here")]
    IncompleteState(&'static str),
    /// Trie nodes that do not form a path from a root to a key.
    #[error("the proof is not one: {0}")]
    BadProof(String),

    // Execution without an outcome.
    /// The transaction is not valid in this block. None of its effects were applied.
    #[error("invalid transaction {index}: {why}")]
    InvalidTransaction { index: usize, why: String },
    #[error("the message cannot be run: {0}")]
    InvalidMessage(String),
    #[error("execution stopped at its deadline")]
    DeadlineExceeded,
    /// A transaction exceeded its allowance. None of its effects were applied.
    #[error("transaction {index} exceeds its allowance of {what}")]
    OverBudget { index: usize, what: &'static str },
    /// A trace exceeds its size limit in bytes.
    #[error("the trace is longer than {0} bytes")]
    TraceTooLong(usize),
    #[error("{0} is not a precompile")]
    NotAPrecompile(Address),
    #[error("the queue for long calls is full ({0} waiting)")]
    PoolFull(usize),
    /// An internal EVM failure that the message did not cause.
    #[error("execution failed: {0}")]
    Execution(String),

    // Store failure or misuse.
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
    /// The commit was valid, but the final confirmation callback rejected it.
    #[error("the commit was declined")]
    CommitDeclined,
    #[error("the store is damaged: {0}")]
    StoreDamaged(String),
    /// The store was written by a different version of this program.
    #[error("the store has format {found}, this program reads {known}")]
    UnknownStoreFormat { found: u8, known: u8 },
    #[error("the store failed: {0}")]
    Store(String),
    #[error("no trie node at {0}")]
    MissingNode(MissingNode),
    #[error("no code with hash {0}")]
    MissingCode(B256),
    /// BLOCKHASH requested a block whose child header is not stored.
    #[error("no header that names block {0}")]
    MissingHeader(u64),
}

impl Error {
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::InvalidArgument(why.into())
    }

    /// Adds the position of a transaction to an error of its decoding.
    #[must_use]
    pub fn at_index(self, index: usize) -> Self {
        match self {
            Self::Undecodable { what, why } => {
                Self::Undecodable { what, why: format!("index {index}: {why}") }
            }
            other => other,
        }
    }
}

impl From<MissingKeys> for Error {
    fn from(misses: MissingKeys) -> Self {
        Self::StateMissing(Box::new(misses))
    }
}

impl MissingKeys {
    /// Returns the value read. If it is missing, records its keys and returns `None`.
    ///
    /// # Errors
    ///
    /// Any error of the read other than `StateMissing`.
    pub fn note<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(Error::StateMissing(keys)) => {
                self.merge(*keys);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }
}

impl Missed {
    /// # Errors
    ///
    /// `StateMissing` with the missed keys.
    pub fn check(&self) -> Result<()> {
        match self.keys() {
            Some(keys) => Err(keys.clone().into()),
            None => Ok(()),
        }
    }
}
