//! A view: the last commit as a consistent snapshot for one request, until it is closed.
//!
//! Views of one commit share its snapshot (`snapshot`), so opening one only checks the number of
//! the last commit. A view keeps old pages from being reused, so it should live for one request.
//! Closing is explicit; a state of a closed view returns `StoreClosed`, and so does every view of a
//! closed store.

use std::sync::{Arc, MutexGuard, PoisonError};

use heed::{AnyTls, RoTxn};

use super::heads::Heads;
use super::open::Store;
use super::record::{Partial, SealedBlock};
use super::snapshot::Lease;
use super::state::State;
use super::tables::Tables;
use super::{check_row_key, lmdb};
use crate::error::Result;

/// A retry finds the commit that a note follows, unless the file of the store was replaced by an
/// older one.
const MAX_TRIES: usize = 8;

#[derive(Clone)]
pub struct View {
    pub(super) lease: Arc<Lease>,
}

impl Store {
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn view(&self) -> Result<View> {
        let mut tries = 0..MAX_TRIES;
        loop {
            let mut shared = self.current()?;
            let Some(lease) = shared.as_mut() else { continue };
            if self.last_note().is_none_or(|last| lease.follow(&last)) || tries.next().is_none() {
                return lease.share().map(|lease| self.view_of(lease));
            }
        }
    }

    /// The shared snapshot, which is of the last commit in LMDB.
    fn current(&self) -> Result<MutexGuard<'_, Option<Lease>>> {
        let last = self.env.last_number()?;
        let mut shared = self.shared();
        if shared.as_ref().is_none_or(|lease| lease.number != last) {
            self.find_notes();
            let lease = self.env.snapshot(self.tables)?;
            // A commit in progress already has a number, but cannot be read yet.
            if shared.as_ref().is_none_or(|known| known.number != lease.number) {
                *shared = Some(lease);
            }
        }
        Ok(shared)
    }

    /// Drops the snapshot that is kept for the next view if it is not of the last commit. For a
    /// process that may become idle: the snapshot would pin old pages.
    pub fn drop_stale_snapshot(&self) {
        let last = self.env.last_number().ok();
        let mut shared = self.shared();
        if shared.as_ref().is_some_and(|lease| Some(lease.number) != last) {
            *shared = None;
        }
    }

    /// Drops the snapshot that is kept for the next view, even if it is current.
    pub(super) fn drop_shared_snapshot(&self) {
        *self.shared() = None;
    }

    /// Learned values are only used above a partial base.
    fn view_of(&self, lease: Lease) -> View {
        match lease.heads.anchor {
            None => View::of(lease),
            Some(_) => View::of(lease.above(self.learned().as_ref())),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Option<Lease>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    fn of(lease: Lease) -> Self {
        Self { lease: Arc::new(lease) }
    }

    /// Shared by all views of one commit.
    pub fn heads(&self) -> &Arc<Heads> {
        &self.lease.heads
    }

    pub fn close(&self) {
        self.lease.close();
    }

    pub(super) fn check_open(&self) -> Result<()> {
        self.lease.check_open()
    }

    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn sealed(&self, block: u64) -> Result<Option<SealedBlock>> {
        self.lease.read(|txn| self.lease.tables.sealed_block(txn, block))
    }

    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn partial(&self, number: u64) -> Result<Option<Partial>> {
        self.lease.read(|txn| self.lease.tables.partial(txn, number))
    }

    /// The number of scheduled deletions.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn garbage_len(&self) -> Result<u64> {
        self.lease.read(|txn| self.lease.tables.trash.len(txn).map_err(lmdb))
    }

    /// The state after a sealed block.
    ///
    /// # Errors
    ///
    /// `UnknownBlock`, `PrunedState`, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn state(&self, block: u64) -> Result<State> {
        State::of_block(&self.lease, block)
    }

    /// The state after a partial block.
    ///
    /// # Errors
    ///
    /// `UnknownPartial`, `DroppedPartial`, `PrunedState`, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn state_of_partial(&self, number: u64) -> Result<State> {
        State::of_partial(&self.lease, number)
    }

    /// A Python-owned row.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a key is empty or too long, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn row(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        check_row_key(key)?;
        self.lease.read(|txn| {
            let row = self.lease.tables.rows.get(txn, key).map_err(lmdb)?;
            Ok(row.map(<[u8]>::to_vec))
        })
    }

    /// Returns what `take` makes of up to `limit` Python-owned rows whose keys start with `prefix`,
    /// in order. It copies only what it needs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the prefix is empty or too long, `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn rows<T>(
        &self,
        prefix: &[u8],
        limit: usize,
        take: impl Fn(&[u8], &[u8]) -> T,
    ) -> Result<Vec<T>> {
        check_row_key(prefix)?;
        self.lease.read(|txn| {
            let rows = self.lease.tables.rows.prefix_iter(txn, prefix).map_err(lmdb)?;
            let row = |row: heed::Result<(&[u8], &[u8])>| row.map(|(key, value)| take(key, value));
            rows.take(limit).map(|found| row(found).map_err(lmdb)).collect()
        })
    }
}

impl Tables {
    pub fn sealed_block(&self, txn: &RoTxn<AnyTls>, block: u64) -> Result<Option<SealedBlock>> {
        let row = self.sealed.get(txn, &block.to_be_bytes()).map_err(lmdb)?;
        row.map(SealedBlock::decode).transpose()
    }

    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn partial(&self, txn: &RoTxn<AnyTls>, number: u64) -> Result<Option<Partial>> {
        let row = self.partials.get(txn, &number.to_be_bytes()).map_err(lmdb)?;
        row.map(Partial::decode).transpose()
    }
}
