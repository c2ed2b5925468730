//! A readable commit: a read transaction, the heads row as of it, and its leases.
//!
//! A process has one snapshot of a commit, however many requests read it. Each request has a
//! `Lease`. The transaction ends with the last lease, so the old pages and LMDB reader slots in use
//! depend on the number of commits that are being read, not on the number of requests.
//!
//! LMDB assigns a reader its transaction number first and its pages afterwards. A process that is
//! preempted in between while two commits pass reads pages of the second under the number of the
//! first. `begin` detects this and retries, so the number of a snapshot is the number of the data
//! that it reads.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, TryLockError, Weak,
};

use alloy_primitives::B256;
use heed::{AnyTls, Env, RoTxn, WithoutTls};

use super::delta_keys::{Delta, DeltaKeys};
use super::heads::Heads;
use super::lmdb;
use super::note_file::Record;
use super::tables::Tables;
use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;

pub(super) struct Snapshot {
    /// The transaction number, which is never reused.
    pub number: usize,
    pub tables: Tables,
    /// Shared by all snapshots of a store.
    pub delta_keys: Arc<DeltaKeys>,
    /// As stored in LMDB.
    row: Arc<Heads>,
    txn: RwLock<Option<SharedTxn>>,
    leases: AtomicUsize,
    /// Set when the store is closed.
    ended: AtomicBool,
    /// Sources of the states requested last, mostly of `latest` and `pending`.
    known: Mutex<Vec<(StateOf, Arc<Sources>)>>,
}

/// The block that a state is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateOf {
    Block(u64),
    Partial(u64),
}

/// The deltas and blocks in which the entries of a state are looked up.
#[derive(Clone, Default)]
pub(super) struct Sources {
    /// Newest first.
    pub deltas: Vec<Arc<Delta>>,
    /// The block at which the flat table is read.
    pub flat: u64,
    /// The sealed block of the state, or the one that its partial blocks build on.
    pub base: u64,
    /// The last block whose hash this state knows.
    pub top: u64,
    /// Parent hashes that unsealed blocks of the chain name, by block number.
    pub announced: Vec<(u64, B256)>,
}

/// The number of states cached per snapshot. The cache is cleared when it is full.
const KNOWN_STATES: usize = 4;

/// A read transaction that several threads may read concurrently.
pub(super) struct SharedTxn(RoTxn<'static, WithoutTls>);

// SAFETY: reading modifies a read-only LMDB transaction in one place: the first use of a table
// loads its root (`mdb_page_search`, DB_STALE). `load_roots` does that for every table before the
// transaction is shared. Cursors of a read-only transaction are not tracked in it. The only field
// that can still change is the flag for a damaged file.
unsafe impl Sync for SharedTxn {}

impl Snapshot {
    /// Begins a snapshot of the last commit, with its first lease.
    pub fn begin(
        env: &Env<WithoutTls>,
        tables: Tables,
        delta_keys: Arc<DeltaKeys>,
    ) -> Result<Lease> {
        let txn = begin(env)?;
        load_roots(&txn, &tables)?;
        let row = Arc::new(tables.heads(&txn)?);
        let snapshot = Arc::new(Self {
            number: txn.id(),
            tables,
            delta_keys,
            row: row.clone(),
            txn: RwLock::new(Some(SharedTxn(txn))),
            leases: AtomicUsize::new(1),
            ended: AtomicBool::new(false),
            known: Mutex::default(),
        });
        Ok(Lease { snapshot, heads: row, closed: AtomicBool::new(false), learned: None })
    }

    /// Returns the cached sources of a state, or those that `find` returns.
    pub fn sources(
        &self,
        of: StateOf,
        find: impl FnOnce() -> Result<Sources>,
    ) -> Result<Arc<Sources>> {
        if let Some((_, sources)) = self.known().iter().find(|(known, _)| *known == of) {
            return Ok(sources.clone());
        }
        let found = Arc::new(find()?);
        let mut known = self.known();
        if known.len() >= KNOWN_STATES {
            known.clear();
        }
        known.push((of, found.clone()));
        Ok(found)
    }

    fn known(&self) -> MutexGuard<'_, Vec<(StateOf, Arc<Sources>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub fn is_open(&self) -> bool {
        self.txn.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Ends the transaction, leased or not. Waits for reads in progress.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        *self.txn.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Releases one lease without blocking. A thread that is still reading ends the transaction
    /// when it drops the snapshot.
    fn release(&self) {
        self.leases.fetch_sub(1, Ordering::AcqRel);
        self.end_if_unused();
    }

    /// Blocks all reads until the guard is dropped.
    pub fn pause(&self) -> RwLockWriteGuard<'_, Option<SharedTxn>> {
        self.txn.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the transaction if it has no lease and no read is in progress.
    pub fn end_if_unused(&self) {
        if self.leases.load(Ordering::Acquire) > 0 {
            return;
        }
        match self.txn.try_write() {
            Ok(mut txn) => *txn = None,
            Err(TryLockError::Poisoned(txn)) => *txn.into_inner() = None,
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

/// The right to read a snapshot, until it is closed.
pub(super) struct Lease {
    snapshot: Arc<Snapshot>,
    /// Shared by all leases of one commit.
    pub heads: Arc<Heads>,
    closed: AtomicBool,
    /// The fallback for keys that the store does not know; `None` if the base is complete.
    pub learned: Option<Arc<FetchedState>>,
}

impl Lease {
    pub fn read<T>(&self, read: impl FnOnce(&RoTxn<'_, AnyTls>) -> Result<T>) -> Result<T> {
        self.check_open()?;
        let guard = self.snapshot.txn.read().unwrap_or_else(PoisonError::into_inner);
        read(&guard.as_ref().ok_or(Error::StoreClosed)?.0)
    }

    pub fn check_open(&self) -> Result<()> {
        let ended = self.snapshot.ended.load(Ordering::Relaxed);
        if ended || self.closed.load(Ordering::Relaxed) { Err(Error::StoreClosed) } else { Ok(()) }
    }

    /// Another lease of the same snapshot.
    pub fn share(&self) -> Result<Self> {
        // Incremented before the check: otherwise the last lease could be released in between.
        self.snapshot.leases.fetch_add(1, Ordering::AcqRel);
        let (snapshot, heads) = (self.snapshot.clone(), self.heads.clone());
        let (closed, learned) = (AtomicBool::new(false), self.learned.clone());
        let lease = Self { snapshot, heads, closed, learned };
        if self.closed.load(Ordering::Acquire) { Err(Error::StoreClosed) } else { Ok(lease) }
    }

    /// Sets the heads to those of the last commit of a note. Returns false if the commit that it
    /// follows is later than this snapshot.
    pub fn follow(&mut self, last: &Record) -> bool {
        if last.commit() != self.heads.commit
            && let Some(heads) = last.after(&self.row)
        {
            self.heads = Arc::new(heads);
        }
        !last.is_beyond(&self.row)
    }

    /// Adds learned values to the lease, if they are of its base.
    pub fn above(mut self, learned: Option<&Arc<FetchedState>>) -> Self {
        let epoch = self.heads.anchor.map(|anchor| anchor.epoch);
        self.learned = learned.filter(|learned| Some(learned.epoch) == epoch).cloned();
        self
    }

    pub fn downgrade(&self) -> Weak<Snapshot> {
        Arc::downgrade(&self.snapshot)
    }

    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.snapshot.release();
        }
    }
}

impl Deref for Lease {
    type Target = Snapshot;

    fn deref(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.close();
    }
}

/// Begins a transaction whose number is the number of the data that it reads.
///
/// The pages of number n are replaced by commit n + 2, which begins after n + 1 has finished. If a
/// second transaction gets the number n, then n + 1 had not finished when the first got its pages.
fn begin(env: &Env<WithoutTls>) -> Result<RoTxn<'static, WithoutTls>> {
    let open = || {
        let txn = open(env);
        fence(Ordering::SeqCst);
        txn
    };
    first_repeated(open, |txn| txn.id())
        .unwrap_or_else(|| Err(Error::Store("commits are faster than a view".into())))
}

/// The first value whose successor has the same number; `None` after `MOST_TRIES` attempts.
fn first_repeated<T>(
    mut open: impl FnMut() -> Result<T>,
    number: impl Fn(&T) -> usize,
) -> Option<Result<T>> {
    let mut last = match open() {
        Ok(first) => first,
        failed => return Some(failed),
    };
    for _ in 0..MOST_TRIES {
        match open() {
            Ok(next) if number(&next) == number(&last) => return Some(Ok(last)),
            Ok(next) => last = next,
            failed => return Some(failed),
        }
    }
    None
}

/// Opening takes 1 µs and a commit 50 µs, so a retry is rare.
const MOST_TRIES: usize = 10_000;

fn open(env: &Env<WithoutTls>) -> Result<RoTxn<'static, WithoutTls>> {
    env.clone().static_read_txn().or_else(|error| match error {
        heed::Error::Mdb(heed::MdbError::ReadersFull) => {
            // Killed readers may have left their slots.
            env.clear_stale_readers().map_err(lmdb)?;
            env.clone().static_read_txn().map_err(lmdb)
        }
        other => Err(lmdb(other)),
    })
}

fn load_roots(txn: &RoTxn<'_, WithoutTls>, tables: &Tables) -> Result<()> {
    tables.all().into_iter().try_for_each(|table| table.stat(txn).map(drop).map_err(lmdb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_when_the_next_one_is_the_same() {
        let chosen = |numbers: &[usize]| {
            let mut rest = numbers.iter().copied().enumerate();
            let open = || rest.next().ok_or(Error::StoreClosed);
            first_repeated(open, |(_, number)| *number).expect("tries enough").ok()
        };
        assert_eq!(chosen(&[5, 5]), Some((0, 5)));
        assert_eq!(chosen(&[5, 7, 8, 8]), Some((2, 8)));
        assert_eq!(chosen(&[5, 7]), None);
        let mut number = 0;
        let never = || {
            number += 1;
            Ok(number)
        };
        assert!(first_repeated(never, |number| *number).is_none());
    }
}
