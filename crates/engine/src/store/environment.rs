//! The LMDB environment of an open store, and the writer lock, until it is closed.
//!
//! Closing takes effect at once, even if references to the store remain. LMDB forbids closing an
//! environment with open transactions and opening it twice in a process. So callers only borrow it
//! for one operation, and `close` ends the transactions of snapshots that are still leased. Reads
//! of them then fail with `StoreClosed`, and the directory can be opened again at once.

use std::fs::File;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError, Weak};

use heed::{Env, WithoutTls};

use super::delta_keys::DeltaKeys;
use super::snapshot::{Lease, Snapshot};
use super::tables::Tables;
use super::{lmdb, map};
use crate::error::{Error, Result};

pub(super) struct Environment {
    opened: RwLock<Option<Opened>>,
    /// Snapshots whose transactions may be open.
    snapshots: Mutex<Vec<Weak<Snapshot>>>,
    delta_keys: Arc<DeltaKeys>,
}

struct Opened {
    env: Env<WithoutTls>,
    /// Never read. The lock is released when the file is closed, also if the process is killed.
    lock: Option<File>,
}

/// The environment during one operation; `close` waits for it.
pub(super) struct Using<'a> {
    env: Env<WithoutTls>,
    _not_closed: RwLockReadGuard<'a, Option<Opened>>,
}

impl Deref for Using<'_> {
    type Target = Env<WithoutTls>;

    fn deref(&self) -> &Env<WithoutTls> {
        &self.env
    }
}

impl Environment {
    /// `lock` is `Some` in the process that writes.
    pub fn new(env: Env<WithoutTls>, lock: Option<File>) -> Self {
        let opened = RwLock::new(Some(Opened { env, lock }));
        Self { opened, snapshots: Mutex::default(), delta_keys: Arc::default() }
    }

    /// Must not be called while the same thread holds a `Using`: a waiting `close` would cause a
    /// deadlock.
    pub fn using(&self) -> Result<Using<'_>> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let env = opened.as_ref().ok_or(Error::StoreClosed)?.env.clone();
        Ok(Using { env, _not_closed: opened })
    }

    /// The transaction number of the last commit.
    pub fn last_number(&self) -> Result<usize> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        Ok(opened.as_ref().ok_or(Error::StoreClosed)?.env.info().last_txn_id)
    }

    /// True if `using` would block: the file is being remapped, or the store closed.
    pub fn is_busy(&self) -> bool {
        matches!(self.opened.try_read(), Err(TryLockError::WouldBlock))
    }

    /// A snapshot of the last commit, with its first lease.
    pub fn snapshot(&self, tables: Tables) -> Result<Lease> {
        // The snapshot is registered before the environment can be closed or remapped.
        let (_using, lease) = loop {
            let env = self.using()?;
            match Snapshot::begin(&env, tables, self.delta_keys.clone()) {
                // The writing process has extended the file beyond this process's map.
                Err(Error::MapOutgrown) => {
                    drop(env);
                    self.follow_map()?;
                }
                begun => break (env, begun?),
            }
        };
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.retain(|snapshot| snapshot.strong_count() > 0);
        snapshots.push(lease.downgrade());
        Ok(lease)
    }

    /// Enlarges the map, unless it is already larger than `full`, the size that was too small.
    pub fn raise_map(&self, full: usize) -> Result<()> {
        self.map_again(|mapped| if mapped > full { Ok(mapped) } else { map::twice(mapped) })
    }

    /// Enlarges the map because the writing process has extended the file.
    fn follow_map(&self) -> Result<()> {
        self.map_again(map::twice)
    }

    /// Remaps the file. Reads wait for it and then continue.
    fn map_again(&self, size: impl FnOnce(usize) -> Result<usize>) -> Result<()> {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        let env = &opened.as_ref().ok_or(Error::StoreClosed)?.env;
        let size = size(env.info().map_size)?;
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<_> = snapshots.iter().filter_map(Weak::upgrade).collect();
        let mut paused: Vec<_> = open.iter().map(|snapshot| snapshot.pause()).collect();
        // SAFETY: LMDB requires that no transaction is open, because it does not check for
        // addresses into the old map. There are none here: `opened` excludes threads that begin a
        // transaction or write, and `paused` excludes reads. Snapshots stay open, but hold copies
        // of roots and page numbers, never addresses; every read resolves pages in the current map
        // (`mdb_page_get`).
        let done = unsafe { env.resize(size) };
        if done.is_err() {
            // Nothing is mapped any more, so no reads are allowed.
            paused.iter_mut().for_each(|txn| **txn = None);
            *opened = None;
        }
        drop(paused);
        open.iter().for_each(|snapshot| snapshot.end_if_unused());
        done.map_err(lmdb)
    }

    /// Waits for running operations, ends every transaction, and closes the environment.
    pub fn close(&self) {
        let taken = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Opened { env, lock }) = taken else { return };
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        for snapshot in snapshots.drain(..).filter_map(|snapshot| snapshot.upgrade()) {
            snapshot.end();
        }
        // Another thread may be releasing a snapshot.
        env.prepare_for_closing().wait();
        drop(lock);
    }
}
