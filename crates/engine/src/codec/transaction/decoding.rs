//! Decodes many transactions on several threads, ahead of the one that consumes them in order.
//!
//! The consuming thread never waits for another: on a busy machine a thread that has claimed a
//! transaction may not run for milliseconds. A transaction that is claimed and not decoded is
//! decoded again, and threads are not joined.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::{Transaction, decode::decode_one};
use crate::error::Result;

/// The number of transactions for which one more thread is started. Recovering the sender of one
/// takes about as long as starting a thread.
const PER_THREAD: usize = 32;

/// Transactions that are being decoded, until this is dropped.
pub struct Decoding<T>(Arc<Shared<T>>);

struct Shared<T> {
    raws: Vec<T>,
    homestead: bool,
    named: bool,
    /// The first that no thread has claimed.
    next: AtomicUsize,
    decoded: Vec<OnceLock<Result<Transaction>>>,
}

impl<T: AsRef<[u8]> + Send + Sync + 'static> Decoding<T> {
    /// Decodes on up to `threads` threads including the consuming one, at most one per core. 0
    /// means one per core. Without `homestead`, signatures with a high `s` are accepted; with
    /// `named`, transactions that name their sender.
    pub fn start(raws: Vec<T>, homestead: bool, named: bool, threads: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let threads = if threads == 0 { cores } else { threads.min(cores) };
        let helpers = threads.min(raws.len().div_ceil(PER_THREAD)).saturating_sub(1);
        let decoded = raws.iter().map(|_| OnceLock::new()).collect();
        let shared = Arc::new(Shared { raws, homestead, named, next: 0.into(), decoded });
        for _ in 0..helpers {
            let shared = shared.clone();
            // If a thread cannot be started, the others decode its share.
            let _ = thread::Builder::new().spawn(move || while shared.decode_next() {});
        }
        Self(shared)
    }

    /// Returns a transaction. Until it is decoded, decodes others that no thread has claimed.
    ///
    /// # Errors
    ///
    /// As `check`.
    pub fn get(&self, index: usize) -> Result<&Transaction> {
        while self.0.decoded[index].get().is_none() && self.0.decode_next() {}
        self.0.decode(index).as_ref().map_err(|error| error.clone().at_index(index))
    }

    /// Decodes all.
    ///
    /// # Errors
    ///
    /// `Undecodable` with the index of the first that is not a transaction, and the reason.
    pub fn check(&self) -> Result<()> {
        (0..self.0.raws.len()).try_for_each(|index| self.get(index).map(drop))
    }
}

impl<T> Drop for Decoding<T> {
    fn drop(&mut self) {
        self.0.next.store(self.0.raws.len(), Ordering::Relaxed);
    }
}

impl<T: AsRef<[u8]>> Shared<T> {
    fn decode_next(&self) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let is_one = index < self.raws.len();
        if is_one {
            self.decode(index);
        }
        is_one
    }

    fn decode(&self, index: usize) -> &Result<Transaction> {
        self.decoded[index].get().unwrap_or_else(|| {
            let decoded = decode_one(self.raws[index].as_ref(), self.homestead, self.named);
            self.decoded[index].get_or_init(|| decoded)
        })
    }
}

/// Decodes transactions as `Decoding`, in input order.
///
/// # Errors
///
/// `Undecodable` with the index of the first that is not a transaction, and the reason.
pub fn decode_all<T: AsRef<[u8]> + Send + Sync + 'static>(
    raws: Vec<T>,
    homestead: bool,
    named: bool,
    threads: usize,
) -> Result<Vec<Transaction>> {
    let count = raws.len();
    let decoding = Decoding::start(raws, homestead, named, threads);
    (0..count).map(|index| decoding.get(index).cloned()).collect()
}
