//! Recomputes everything the engine stores of a chain and reports differences as damage.
//!
//! A check uses one view, so concurrent commits do not affect it. Each part is a separate function
//! that can run on its own thread; `CheckProgress` reports its progress to other threads, returns
//! the damage found and stops it. A damaged row is reported and the check continues; only other
//! errors end a part.
//!
//! Headers are rows defined by Python, so the caller supplies their state roots. Python checks
//! blocks, receipts and indices.

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
use crate::deadline::{Limits, Watch};
use crate::error::{Error, Result};

/// Something that no commit can have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub table: &'static str,
    /// The key of the row in its table; empty if the damage concerns the whole table.
    pub key: Vec<u8>,
    pub why: String,
}

/// The progress of a part, shared with other threads.
#[derive(Default)]
pub struct CheckProgress {
    done: AtomicU64,
    total: AtomicU64,
    stopped: Arc<AtomicBool>,
    found: Mutex<Vec<Damage>>,
}

impl CheckProgress {
    /// The work done by the running part and the approximate total.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Returns and removes the damage found since the last call.
    pub fn take(&self) -> Vec<Damage> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the running part end soon with `DeadlineExceeded`.
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

/// A check of one view, with the state roots from the headers of its blocks.
pub struct Check {
    view: View,
    /// The block of the first element of `roots`.
    first: u64,
    /// Zero if the header is damaged.
    roots: Vec<B256>,
    pub progress: CheckProgress,
    /// The number of versions in the flat table by block, counted by `entries`.
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

    /// The names of the parts in the order in which they must run: later parts use counts of
    /// earlier ones.
    pub const PARTS: [&'static str; 7] =
        ["heads", "codes", "entries", "changes", "nodes", "state", "history"];

    /// Runs one part.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for an unknown name, `DeadlineExceeded` if the check was stopped, or any
    /// error from reading the store that is not damage.
    pub fn run(&self, part: &str) -> Result<()> {
        // Roots and nodes can only be checked for a complete state, and a partial base is not
        // complete.
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
        // Damage that prevents the rest of this part.
        self.reported(table, &[], done)
    }

    /// The latest block; `None` if it is not sealed, which `heads` reports. Its number may then be
    /// arbitrary, and a loop over blocks practically endless.
    fn latest(&self) -> Option<u64> {
        let latest = self.view.heads().latest?.number;
        self.view.sealed(latest).ok().flatten().map(|_| latest)
    }

    /// The state root in the header of a block; `None` if it is not known.
    fn root(&self, block: u64) -> Option<B256> {
        let place = usize::try_from(block.checked_sub(self.first)?).ok()?;
        self.roots.get(place).copied().filter(|root| !root.is_zero())
    }

    /// Reports damage and returns the default; passes other errors on.
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

/// True for errors that an undamaged store never returns for blocks within its bounds.
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
