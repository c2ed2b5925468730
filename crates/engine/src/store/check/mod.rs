//! Everything that the engine keeps of a chain, computed again: what differs is damage.
//!
//! One view is checked, so a chain that is being written meanwhile changes nothing. Each part
//! is a function of its own, for a thread of its own: `CheckProgress` tells others how far it is,
//! takes what was found out of it, and stops it. Damage of a row is reported and the check goes
//! on; only a failure that is no damage ends a part.
//!
//! Headers are rows of Python's, so their state roots are given. Blocks, receipts and indices
//! are checked there too.

mod entries;
mod heads;
mod history;
mod nodes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::B256;

use super::view::View;
use crate::error::{Error, Result};
use crate::evm::deadline::{Limits, Watch};

/// Something that no commit can have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub table: &'static str,
    /// Of the row, as it is in the table; empty where it is of the whole table.
    pub key: Vec<u8>,
    pub why: String,
}

/// How far a part is, as other threads see it.
#[derive(Default)]
pub struct CheckProgress {
    done: AtomicU64,
    total: AtomicU64,
    stopped: Arc<AtomicBool>,
    found: Mutex<Vec<Damage>>,
}

impl CheckProgress {
    /// What is done of the part that runs, and how much there is about.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// What was found since the last call.
    pub fn take(&self) -> Vec<Damage> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The part that runs ends soon, with `DeadlineExceeded`.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn begin(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    fn advance(&self) -> Result<()> {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }

    fn report(&self, table: &'static str, key: &[u8], why: impl Into<String>) {
        let damage = Damage { table, key: key.to_vec(), why: why.into() };
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(damage);
    }
}

/// What is checked: one view, and the state roots in the headers of its blocks.
pub struct Check {
    view: View,
    /// The block of the first of `roots`.
    first: u64,
    /// Zero where the header is damaged.
    roots: Vec<B256>,
    pub progress: CheckProgress,
    /// Versions in the flat table by their block, as `entries` counts them.
    versions: Mutex<BTreeMap<u64, u64>>,
    accounts: AtomicU64,
}

impl Check {
    pub fn new(view: View, first: u64, roots: Vec<B256>) -> Self {
        Self {
            view,
            first,
            roots,
            progress: CheckProgress::default(),
            versions: Mutex::default(),
            accounts: AtomicU64::new(0),
        }
    }

    /// The names of the parts, in the order in which they are to be run: later ones rely on
    /// what earlier ones counted.
    pub const PARTS: [&'static str; 7] =
        ["heads", "codes", "entries", "changes", "nodes", "state", "history"];

    /// # Errors
    ///
    /// `InvalidArgument` for another name, `DeadlineExceeded` when it was stopped, or what
    /// reading the store failed with.
    pub fn run(&self, part: &str) -> Result<()> {
        // Roots and nodes are of a whole state; of a partial base only a part is known.
        let is_partial = self.view.heads().anchor.is_some();
        let (table, done) = match part {
            "nodes" | "state" | "history" if is_partial => return Ok(()),
            "heads" => ("meta", self.heads()),
            "codes" => ("codes", self.codes()),
            "entries" => ("flat", self.entries()),
            "changes" => ("deltas", self.changes()),
            "nodes" => ("nodes", self.nodes()),
            "state" => ("flat", self.state()),
            "history" => ("deltas", self.history()),
            other => return Err(Error::invalid(format!("{other} is no part of a check"))),
        };
        // Damage that prevents everything after it in this part.
        self.reported(table, &[], done)
    }

    /// The latest block; none where it is not sealed, of which `heads` tells: what is checked
    /// block by block would not come to an end.
    fn latest(&self) -> Option<u64> {
        let latest = self.view.heads().latest?.number;
        self.view.sealed(latest).ok().flatten().map(|_| latest)
    }

    /// The state root in the header of a block.
    fn root(&self, block: u64) -> Option<B256> {
        let place = usize::try_from(block.checked_sub(self.first)?).ok()?;
        self.roots.get(place).copied().filter(|root| !root.is_zero())
    }

    /// Damage is reported, and another failure given on.
    fn reported<T: Default>(&self, table: &'static str, key: &[u8], done: Result<T>) -> Result<T> {
        match done {
            Err(why) if is_damage(&why) => {
                let why = match why {
                    Error::StoreDamaged(why) => why,
                    other => other.to_string(),
                };
                self.progress.report(table, key, why);
                Ok(T::default())
            }
            done => done,
        }
    }

    fn watch(&self) -> Watch {
        Watch::new(Limits { cancel: Some(self.progress.stopped.clone()), ..Limits::default() })
    }
}

/// What a store that nobody damaged never answers within its bounds.
fn is_damage(error: &Error) -> bool {
    matches!(
        error,
        Error::StoreDamaged(_)
            | Error::MissingNode(_)
            | Error::MissingCode(_)
            | Error::StateMissing(_)
            | Error::UnknownBlock(_)
            | Error::UnknownPartial(_)
            | Error::DroppedPartial(_)
            | Error::PrunedState { .. }
            | Error::InvalidArgument(_)
    )
}
