//! Filters of the keys of deltas, in memory.
//!
//! A state is a chain of deltas above the flat table, and most keys are in none of them. Searching
//! for a key descends LMDB's tree once for each delta. A delta never changes under its number, so a
//! process that has searched one often keeps a filter of its keys. The filter has no false
//! negatives: a key that passes is searched, so the result is that of `delta::get`.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use alloy_primitives::map::DefaultHashBuilder;
use heed::{AnyTls, RoTxn};

use crate::error::Result;
use crate::store::delta::{self, Table};

/// The number of searches after which a filter is built. Building takes as long as about one search
/// for ten entries. Few in tests, so that they read through filters.
const SEARCHES: u32 = if cfg!(test) { 3 } else { 256 };
/// The number of deltas whose filters are kept, the newest.
const KEPT: usize = 64;
/// Bits per entry; about one absent key in 50 passes.
const BITS: usize = 16;

/// The deltas that this process has read.
#[derive(Default)]
pub(super) struct DeltaKeys {
    deltas: Mutex<BTreeMap<u64, Arc<Delta>>>,
    /// Of all filters, so that a key is hashed once for a chain of deltas.
    hasher: DefaultHashBuilder,
}

impl DeltaKeys {
    pub fn delta(&self, number: u64) -> Arc<Delta> {
        let mut known = self.deltas.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Delta { number, searches: AtomicU32::new(0), filter: OnceLock::new() };
        let delta = known.entry(number).or_insert_with(|| Arc::new(new())).clone();
        if known.len() > KEPT {
            known.pop_first();
        }
        delta
    }

    /// The value of a key in the first of these deltas that has it. They are deltas of this store.
    pub fn find<'t>(
        &self,
        deltas: &[Arc<Delta>],
        table: Table,
        txn: &'t RoTxn<AnyTls>,
        key: &[u8],
    ) -> Result<Option<&'t [u8]>> {
        if deltas.is_empty() {
            return Ok(None);
        }
        let hash = self.hasher.hash_one(key);
        for delta in deltas {
            if delta.may_have(table, txn, hash, &self.hasher)
                && let Some(value) = delta::get(table, txn, delta.number, key)?
            {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// A delta and, once it was searched often, the filter of its keys.
pub(super) struct Delta {
    pub number: u64,
    searches: AtomicU32,
    filter: OnceLock<Filter>,
}

impl Delta {
    /// False if no key with this hash is in the delta.
    fn may_have(
        &self,
        table: Table,
        txn: &RoTxn<AnyTls>,
        hash: u64,
        hasher: &DefaultHashBuilder,
    ) -> bool {
        if let Some(filter) = self.filter.get() {
            return filter.may_have(hash);
        }
        if self.searches.fetch_add(1, Ordering::Relaxed) == SEARCHES {
            // A damaged delta has no filter: each search reports the damage that it finds.
            let filter = Filter::of(|each| {
                delta::keys(table, txn, self.number, &mut |key| each(hasher.hash_one(key)))
            });
            filter.into_iter().for_each(|filter| drop(self.filter.set(filter)));
        }
        true
    }
}

/// A Bloom filter whose bits of one key are in one word.
struct Filter {
    words: Vec<u64>,
}

impl Filter {
    /// `keys` calls a function with the hash of each key.
    fn of(keys: impl Fn(&mut dyn FnMut(u64)) -> Result<()>) -> Result<Self> {
        let mut count = 0_usize;
        keys(&mut |_| count += 1)?;
        let words = vec![0; (count * BITS).div_ceil(64).next_power_of_two()];
        let mut filter = Self { words };
        keys(&mut |hash| {
            let (word, bits) = filter.bits(hash);
            filter.words[word] |= bits;
        })?;
        Ok(filter)
    }

    fn may_have(&self, hash: u64) -> bool {
        let (word, bits) = self.bits(hash);
        self.words[word] & bits == bits
    }

    /// The word of a key with this hash, and its bits in it.
    fn bits(&self, hash: u64) -> (usize, u64) {
        let bits = (0..4).fold(0, |bits, at| bits | 1 << (hash >> (6 * at) & 63));
        ((hash >> 32) as usize & (self.words.len() - 1), bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_passes_and_few_others() {
        let deltas = DeltaKeys::default();
        let hash = |number: u32| deltas.hasher.hash_one(number);
        for count in [0, 1, 10, 1000] {
            let keys = |each: &mut dyn FnMut(u64)| {
                (0..count).for_each(|number| each(hash(number)));
                Ok(())
            };
            let filter = Filter::of(keys).unwrap();
            assert!((0..count).all(|number| filter.may_have(hash(number))));
            let others = (count..count + 1000).filter(|number| filter.may_have(hash(*number)));
            assert!(others.count() < 150, "of {count}");
        }
    }

    #[test]
    fn a_delta_is_kept_until_there_are_newer_ones() {
        let deltas = DeltaKeys::default();
        let first = deltas.delta(1);
        assert!(Arc::ptr_eq(&first, &deltas.delta(1)));
        (2..2 + KEPT as u64).for_each(|number| drop(deltas.delta(number)));
        assert!(!Arc::ptr_eq(&first, &deltas.delta(1)));
    }
}
