//! One commit, kept readable: a read transaction, the heads row as of it, and its leases.
//!
//! A process has one snapshot of a commit, however many requests read it. Each of them
//! has a `Lease`. The transaction ends with the last lease, so what keeps old pages and
//! a slot in LMDB's table of readers is the number of commits that are being read, not
//! the number of requests.
//!
//! LMDB gives a reader its number first and its pages afterwards. A process that is
//! preempted in between while two commits pass reads pages of the second under the
//! number of the first. `begin` notices that and begins anew, so the number of a
//! snapshot is the number of what it reads.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, TryLockError, Weak,
};

use heed::{AnyTls, Env, RoTxn, WithoutTls};

use super::heads::Heads;
use super::lmdb;
use super::open::Tables;
use super::state::Sources;
use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;

pub(super) struct Snapshot {
    /// The number of the transaction, which no other one ever has.
    pub number: usize,
    pub tables: Tables,
    pub heads: Arc<Heads>,
    txn: RwLock<Option<SharedTxn>>,
    leases: AtomicUsize,
    /// By the store, which was closed.
    ended: AtomicBool,
    /// Where the states lie that were asked for last: mostly of `latest` and `pending`.
    known: Mutex<Vec<(StateOf, Arc<Sources>)>>,
}

/// What a state is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateOf {
    Block(u64),
    Partial(u64),
}

/// States of a snapshot that are remembered; with more, all are forgotten.
const KNOWN_STATES: usize = 4;

/// A read transaction that several threads may read at once.
pub(super) struct SharedTxn(RoTxn<'static, WithoutTls>);

// SAFETY: reading changes a read-only transaction of LMDB in one place: the first use of
// a table loads its root (`mdb_page_search`, DB_STALE). `load_roots` has done that for
// every table before anybody else has the transaction. Cursors of such a transaction are
// not tracked in it. The one field that can still change is the flag of a damaged file.
unsafe impl Sync for SharedTxn {}

impl Snapshot {
    /// A snapshot of the last commit, with its first lease.
    pub fn begin(env: &Env<WithoutTls>, tables: Tables) -> Result<Lease> {
        let txn = begin(env)?;
        load_roots(&txn, &tables)?;
        let heads = Arc::new(tables.heads(&txn)?);
        let snapshot = Arc::new(Self {
            number: txn.id(),
            tables,
            heads,
            txn: RwLock::new(Some(SharedTxn(txn))),
            leases: AtomicUsize::new(1),
            ended: AtomicBool::new(false),
            known: Mutex::default(),
        });
        Ok(Lease { snapshot, closed: AtomicBool::new(false), learned: None })
    }

    /// What `find` finds out about a state, or what was found out before.
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

    /// End the transaction, leased or not. Waits for reads in progress.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        *self.txn.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// One lease less. A thread that still reads ends the transaction when it lets go
    /// of the snapshot: nobody waits here.
    fn release(&self) {
        self.leases.fetch_sub(1, Ordering::AcqRel);
        self.end_if_unused();
    }

    /// Nobody reads until this is dropped.
    pub fn pause(&self) -> RwLockWriteGuard<'_, Option<SharedTxn>> {
        self.txn.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// End the transaction, if it has no lease and nobody reads at this moment.
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
    closed: AtomicBool,
    /// What is asked for that the store does not know; none where the base is complete.
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
        // Counted first: between looking and counting, the last lease could go.
        self.snapshot.leases.fetch_add(1, Ordering::AcqRel);
        let (snapshot, learned) = (self.snapshot.clone(), self.learned.clone());
        let lease = Self { snapshot, closed: AtomicBool::new(false), learned };
        if self.closed.load(Ordering::Acquire) { Err(Error::StoreClosed) } else { Ok(lease) }
    }

    /// The same lease above what was learned, if that is of the base.
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

/// A transaction whose number is the number of what it reads.
///
/// The pages that belong to number n are replaced by the commit n + 2, which begins when
/// n + 1 is over. A second transaction that gets the number n says that n + 1 was not
/// over after the first had its pages.
fn begin(env: &Env<WithoutTls>) -> Result<RoTxn<'static, WithoutTls>> {
    let open = || {
        let txn = open(env);
        fence(Ordering::SeqCst);
        txn
    };
    first_repeated(open, |txn| txn.id())
        .unwrap_or_else(|| Err(Error::Store("commits are faster than a view".into())))
}

/// The first value that the next one has the same number as; none among very many.
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

/// Opening takes a microsecond and a commit takes fifty, so a second try is rare.
const MOST_TRIES: usize = 10_000;

fn open(env: &Env<WithoutTls>) -> Result<RoTxn<'static, WithoutTls>> {
    env.clone().static_read_txn().or_else(|error| match error {
        heed::Error::Mdb(heed::MdbError::ReadersFull) => {
            // Readers that were killed may have left their slots.
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
