//! Decodes many transactions on several threads, ahead of the one that consumes them in order.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Transaction, decode::decode_one};
use crate::error::Result;

/// The number of transactions for which one more thread is started. Recovering the sender of one
/// takes about as long as starting a thread.
const PER_THREAD: usize = 32;

/// Transactions that are being decoded.
pub struct Decoding<'a, T> {
    raws: &'a [T],
    homestead: bool,
    named: bool,
    /// The first that no thread has claimed.
    next: AtomicUsize,
    decoded: Vec<OnceLock<Result<Transaction>>>,
}

impl<'a, T: AsRef<[u8]> + Sync> Decoding<'a, T> {
    /// Without `homestead`, signatures with a high `s` are accepted; with `named`, transactions that
    /// name their sender.
    pub fn new(raws: &'a [T], homestead: bool, named: bool) -> Self {
        let decoded = raws.iter().map(|_| OnceLock::new()).collect();
        Self { raws, homestead, named, next: AtomicUsize::new(0), decoded }
    }

    /// Decodes on up to `threads` threads including this one, at most one per core, while this one
    /// calls `consume`. 0 means one per core.
    pub fn ahead<R>(&self, threads: usize, consume: impl FnOnce() -> R) -> R {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let threads = if threads == 0 { cores } else { threads.min(cores) };
        let helpers = threads.min(self.raws.len().div_ceil(PER_THREAD)).saturating_sub(1);
        thread::scope(|scope| {
            for _ in 0..helpers {
                // If a thread cannot be started, the others decode its share.
                let work = || while self.decode_next() {};
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            let consumed = consume();
            self.next.store(self.raws.len(), Ordering::Relaxed);
            consumed
        })
    }

    /// Returns a transaction. Until it is decoded, decodes others that no thread has claimed.
    ///
    /// # Errors
    ///
    /// As `check`.
    pub fn get(&self, index: usize) -> Result<&Transaction> {
        while self.decoded[index].get().is_none() && self.decode_next() {}
        self.decode(index).as_ref().map_err(|error| error.clone().at_index(index))
    }

    /// Decodes all.
    ///
    /// # Errors
    ///
    /// `Undecodable` with the index of the first that is not a transaction, and the reason.
    pub fn check(&self) -> Result<()> {
        (0..self.raws.len()).try_for_each(|index| self.get(index).map(drop))
    }

    fn decode_next(&self) -> bool {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let is_one = index < self.raws.len();
        if is_one {
            self.decode(index);
        }
        is_one
    }

    /// Waits if another thread decodes it.
    fn decode(&self, index: usize) -> &Result<Transaction> {
        let raw = self.raws[index].as_ref();
        self.decoded[index].get_or_init(|| decode_one(raw, self.homestead, self.named))
    }
}

/// Decodes transactions as `Decoding::ahead`, in input order.
///
/// # Errors
///
/// `Undecodable` with the index of the first that is not a transaction, and the reason.
pub fn decode_all<T: AsRef<[u8]> + Sync>(
    raws: &[T],
    homestead: bool,
    named: bool,
    threads: usize,
) -> Result<Vec<Transaction>> {
    let decoding = Decoding::new(raws, homestead, named);
    decoding.ahead(threads, || decoding.check())?;
    decoding.decoded.into_iter().filter_map(OnceLock::into_inner).collect()
}
