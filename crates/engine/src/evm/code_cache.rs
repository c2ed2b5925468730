//! Analysed bytecode by code hash, shared by all threads of the process.
//!
//! Finding the jump destinations of 24 kB of code takes ten times as long as an ordinary call. Code
//! is immutable under its hash, so entries cannot become stale and are only evicted for capacity.
//! Cloning an entry increments a reference count.
//!
//! Two generations bound the cache: when the young generation is full it replaces the old one,
//! which is dropped. A hit in the old generation moves the entry to the young one.

use std::sync::{LazyLock, RwLock};

use alloy_primitives::{B256, Bytes, map::B256Map};
use revm::bytecode::Bytecode;

use crate::error::Result;

/// Maximum size of each generation. 24 kB of code with its jump table takes about 27 kB, so this
/// holds more than two thousand of the largest contracts.
const MAX_BYTES: usize = 64 << 20;
const MAX_ENTRIES: usize = 16_384;

static CACHE: LazyLock<RwLock<Generations>> = LazyLock::new(RwLock::default);

#[derive(Default)]
struct Generations {
    young: B256Map<Bytecode>,
    old: B256Map<Bytecode>,
    young_bytes: usize,
}

impl Generations {
    fn insert(&mut self, hash: B256, code: Bytecode) {
        let bytes = footprint(&code);
        let full = self.young.len() >= MAX_ENTRIES || self.young_bytes + bytes > MAX_BYTES;
        if full && !self.young.is_empty() {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(hash, code).is_none() {
            self.young_bytes += bytes;
        }
    }
}

/// Returns the analysed code with this hash. Calls `load` on a cache miss.
pub fn analysed(hash: B256, load: impl FnOnce() -> Result<Bytes>) -> Result<Bytecode> {
    // The maps are consistent at every step, so a poisoned lock can still be used.
    let cache = CACHE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(code) = cache.young.get(&hash) {
        return Ok(code.clone());
    }
    let from_old = cache.old.get(&hash).cloned();
    drop(cache);

    let code = match from_old {
        Some(code) => code,
        None => analyse(load()?),
    };
    let mut cache = CACHE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    cache.insert(hash, code.clone());
    Ok(code)
}

/// Bytes that start like an EIP-7702 delegation but are not one are ordinary code, as in other
/// clients: they halt at their first byte.
pub fn analyse(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

fn footprint(code: &Bytecode) -> usize {
    let bytes = code.bytecode().len();
    bytes + bytes / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn code_of(length: usize, seed: u8) -> Bytecode {
        analyse(vec![seed; length].into())
    }

    #[test]
    fn a_hash_is_loaded_once_and_a_failed_load_leaves_nothing() {
        let hash = B256::repeat_byte(0xa7);
        let failed = analysed(hash, || Err(Error::MissingCode(hash)));
        assert_eq!(failed, Err(Error::MissingCode(hash)));

        let bytes = Bytes::from_static(&[0x60, 0x01, 0x5b]);
        let loaded = analysed(hash, || Ok(bytes.clone())).expect("loads");
        let again = analysed(hash, || panic!("must come from the cache")).expect("cached");
        assert_eq!(loaded.original_bytes(), bytes);
        assert_eq!(again, loaded);
    }

    #[test]
    fn the_cache_is_bounded_in_entries_and_keeps_what_came_last() {
        let mut cache = Generations::default();
        for number in 0..(3 * MAX_ENTRIES + 5) {
            cache.insert(B256::left_padding_from(&number.to_be_bytes()), code_of(1, 0));
        }
        assert!(cache.young.len() + cache.old.len() <= 2 * MAX_ENTRIES);
        let last = (3 * MAX_ENTRIES + 4).to_be_bytes();
        assert!(cache.young.contains_key(&B256::left_padding_from(&last)));
    }

    #[test]
    fn the_cache_is_bounded_in_bytes() {
        let mut cache = Generations::default();
        let code = code_of(1 << 20, 0x5b);
        for number in 0..200_u64 {
            cache.insert(B256::left_padding_from(&number.to_be_bytes()), code.clone());
        }
        assert!(cache.young_bytes <= MAX_BYTES);
        let entries = cache.young.len() + cache.old.len();
        assert!(entries * footprint(&code) <= 2 * MAX_BYTES, "{entries} entries");
    }

    #[test]
    fn inserting_a_hash_again_does_not_count_its_bytes_twice() {
        let mut cache = Generations::default();
        let code = code_of(1000, 0);
        cache.insert(B256::ZERO, code.clone());
        cache.insert(B256::ZERO, code.clone());
        assert_eq!(cache.young_bytes, footprint(&code));
    }

    #[test]
    fn malformed_delegations_are_ordinary_code() {
        let designator = [&[0xef, 0x01, 0x00][..], &[0x11; 20]].concat();
        assert!(analyse(designator.clone().into()).is_eip7702());
        assert!(!analyse(designator[..22].to_vec().into()).is_eip7702());
        assert!(!analyse([&designator[..], &[0]].concat().into()).is_eip7702());
    }
}
