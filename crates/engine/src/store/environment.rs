//! The environment of an open store, and the lock of its one writer, until it is closed.
//!
//! Closing means closed, whatever still refers to the store. LMDB forbids to close an
//! environment under a transaction, and to open it twice in a process. So nobody keeps
//! one: it is borrowed for one piece of work, and the transactions of snapshots
//! that are still leased are ended here. What was read from them then answers
//! `StoreClosed`, and the folder can be opened again at once.

use std::fs::File;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, TryLockError, Weak};

use heed::{Env, WithoutTls};

use super::open::Tables;
use super::snapshot::{Lease, Snapshot};
use super::{lmdb, map};
use crate::error::{Error, Result};

pub(super) struct Environment {
    opened: RwLock<Option<Opened>>,
    /// Those whose transactions may be open.
    snapshots: Mutex<Vec<Weak<Snapshot>>>,
}

struct Opened {
    env: Env<WithoutTls>,
    /// Held, never read: the lock goes when the file is closed, also by a kill.
    lock: Option<File>,
}

/// The environment for one piece of work, which closing waits for.
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
    /// `lock` is there in the process that writes.
    pub fn new(env: Env<WithoutTls>, lock: Option<File>) -> Self {
        Self { opened: RwLock::new(Some(Opened { env, lock })), snapshots: Mutex::default() }
    }

    /// Not to be asked for again while one is held: closing would wait in between.
    pub fn using(&self) -> Result<Using<'_>> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let env = opened.as_ref().ok_or(Error::StoreClosed)?.env.clone();
        Ok(Using { env, _not_closed: opened })
    }

    /// Whether `using` would wait: the file is being mapped anew, or the store closed.
    pub fn is_busy(&self) -> bool {
        matches!(self.opened.try_read(), Err(TryLockError::WouldBlock))
    }

    /// A snapshot of the last commit, with its first lease.
    pub fn snapshot(&self, tables: Tables) -> Result<Lease> {
        // It is registered before the environment can be closed or mapped anew.
        let (_using, lease) = loop {
            let env = self.using()?;
            match Snapshot::begin(&env, tables) {
                // The process that writes has made the file longer than what is mapped here.
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

    /// Map more than the size that turned out to be too small.
    pub fn raise_map(&self, full: usize) -> Result<()> {
        self.map_again(|mapped| if mapped > full { Ok(mapped) } else { map::twice(mapped) })
    }

    /// Map what the process that writes has added to the file.
    fn follow_map(&self) -> Result<()> {
        self.map_again(map::twice)
    }

    /// Map the file anew. Reads wait meanwhile, and then go on where they were.
    fn map_again(&self, size: impl FnOnce(usize) -> Result<usize>) -> Result<()> {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        let env = &opened.as_ref().ok_or(Error::StoreClosed)?.env;
        let size = size(env.info().map_size)?;
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<_> = snapshots.iter().filter_map(Weak::upgrade).collect();
        let mut paused: Vec<_> = open.iter().map(|snapshot| snapshot.pause()).collect();
        // SAFETY: LMDB asks that no transaction is open, because it looks for nobody who
        // has an address in the map. Nobody has one here: `opened` keeps away who begins a
        // transaction or writes, and `paused` who reads in one. What stays open are
        // snapshots, and those hold copies of roots and numbers of pages, never addresses;
        // every read begins with the map as it is then (`mdb_page_get`).
        let done = unsafe { env.resize(size) };
        if done.is_err() {
            // Nothing is mapped any more, so nobody may read on.
            paused.iter_mut().for_each(|txn| **txn = None);
            *opened = None;
        }
        drop(paused);
        open.iter().for_each(|snapshot| snapshot.end_if_unused());
        done.map_err(lmdb)
    }

    /// Wait for work that is under way, end every transaction, and close.
    pub fn close(&self) {
        let taken = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Opened { env, lock }) = taken else { return };
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        for snapshot in snapshots.drain(..).filter_map(|snapshot| snapshot.upgrade()) {
            snapshot.end();
        }
        // Another thread may be in the middle of letting a snapshot go.
        env.prepare_for_closing().wait();
        drop(lock);
    }
}
