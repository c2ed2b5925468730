//! The environment of an open store, and the lock of its one writer, until it is closed.
//!
//! Closing means closed, whatever still refers to the store. LMDB forbids to close an
//! environment under a transaction, and to open it twice in a process. So nobody keeps
//! one: whoever needs it has it for one piece of work, and the transactions of snapshots
//! that are still leased are ended here. What was read from them then answers
//! `StoreClosed`, and the folder can be opened again at once.

use std::fs::File;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};

use heed::{Env, WithoutTls};

use super::open::Tables;
use super::snapshot::{Lease, Snapshot};
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

    /// A snapshot of the last commit, with its first lease.
    pub fn snapshot(&self, tables: Tables) -> Result<Lease> {
        let env = self.using()?;
        let lease = Snapshot::begin(&env, tables)?;
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.retain(|snapshot| snapshot.strong_count() > 0);
        snapshots.push(lease.downgrade());
        Ok(lease)
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
