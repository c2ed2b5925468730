//! The parameters of an import, its progress and its result.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use alloy_primitives::B256;

use crate::error::{Error, Result};

/// The parameters of an import.
pub struct ImportOptions {
    /// The block whose state is imported.
    pub block: u64,
    /// The state root in the block's header.
    pub root: B256,
    /// The folder for runs; the caller removes it.
    pub folder: PathBuf,
    /// The limit for records in memory, in bytes.
    pub memory: usize,
}

/// The numbers of accounts and slots in a dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportStats {
    pub accounts: u64,
    pub slots: u64,
}

/// The progress of an import, readable by other threads.
#[derive(Default)]
pub struct Progress {
    stage: AtomicUsize,
    done: AtomicU64,
    stopped: AtomicBool,
    total: AtomicU64,
}

impl Progress {
    /// The names of the stages, in order.
    pub const STAGES: [&'static str; 4] = ["read", "root", "state", "nodes"];

    /// The stage, the amount done and the total: bytes of the dump in the first stage, records in
    /// the others.
    pub fn get(&self) -> (&'static str, u64, u64) {
        let stage = Self::STAGES[self.stage.load(Ordering::Relaxed)];
        (stage, self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Makes the import fail soon with `DeadlineExceeded`.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn begin(&self, stage: usize, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.stage.store(stage, Ordering::Relaxed);
    }

    pub(super) fn reach(&self, done: u64) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) { Err(Error::DeadlineExceeded) } else { Ok(()) }
    }
}
