//! Hashes of two words computed by a run: Solidity and Vyper store mapping values at such slots.
//!
//! Recorded only above a partial base state, to attach the preimages of missing slot numbers
//! (`MissingKeys::hashed`). They allow predicting which slots a similar call will read. They are
//! hints, never values.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U256};

use crate::missing_keys::MissingKeys;

/// The size of two words in bytes.
pub(crate) const PAIR: usize = 64;
/// Maximum number of hashes recorded per run; later hashes are ignored.
const MOST_HASHES: usize = 4_096;
/// Slots at less than this offset from a hash are attributed to it, as the members of a struct.
const STRUCT: U256 = U256::from_limbs([64, 0, 0, 0]);
/// Maximum nesting depth of preimages: nested mappings, and one more level.
const NESTED: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct HashedPairs(BTreeMap<U256, [u8; PAIR]>);

impl HashedPairs {
    pub(crate) fn note(&mut self, hash: U256, pair: [u8; PAIR]) {
        if self.0.len() < MOST_HASHES {
            self.0.insert(hash, pair);
        }
    }

    /// Adds the preimages of missing slot numbers.
    pub(crate) fn explain(&self, missing: &mut MissingKeys) {
        if self.0.is_empty() {
            return;
        }
        for slot in missing.slots.values().flatten() {
            let below = self.0.range(..=*slot).next_back();
            if let Some((hash, _)) = below.filter(|(hash, _)| *slot - **hash < STRUCT) {
                self.add(*hash, NESTED, &mut missing.hashed);
            }
        }
    }

    fn add(&self, hash: U256, depth: usize, to: &mut BTreeMap<B256, [u8; PAIR]>) {
        let Some(pair) = self.0.get(&hash).filter(|_| depth > 0) else { return };
        to.insert(hash.into(), *pair);
        for word in pair.chunks_exact(PAIR / 2) {
            self.add(U256::from_be_slice(word), depth - 1, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, keccak256};

    use super::*;

    fn pair(key: U256, base: U256) -> [u8; PAIR] {
        let mut words = [0; PAIR];
        words[..32].copy_from_slice(&key.to_be_bytes::<32>());
        words[32..].copy_from_slice(&base.to_be_bytes::<32>());
        words
    }

    fn hash(words: &[u8; PAIR]) -> U256 {
        keccak256(words).into()
    }

    #[test]
    fn a_missing_slot_is_explained_with_all_that_led_to_it_and_nothing_else() {
        let (key, owner) = (U256::from(7), U256::from(8));
        let inner = pair(owner, U256::from(1));
        let outer = pair(key, hash(&inner));
        let other = pair(key, U256::from(2));
        let mut hashed = HashedPairs::default();
        for words in [&inner, &outer, &other] {
            hashed.note(hash(words), *words);
        }
        let slot = hash(&outer) + U256::from(2);
        let mut missing = MissingKeys::slot(Address::ZERO, slot);
        missing.insert_slot(Address::ZERO, U256::from(3));
        hashed.explain(&mut missing);
        let expected = [(hash(&inner).into(), inner), (hash(&outer).into(), outer)];
        assert_eq!(missing.hashed, BTreeMap::from(expected));
        assert_eq!(missing.len(), 2, "it is no key");
    }

    #[test]
    fn slots_far_from_any_hash_are_not_explained() {
        let words = pair(U256::from(7), U256::from(1));
        let mut hashed = HashedPairs::default();
        hashed.note(hash(&words), words);
        for slot in [hash(&words) + STRUCT, hash(&words) - U256::from(1), U256::ZERO] {
            let mut missing = MissingKeys::slot(Address::ZERO, slot);
            hashed.explain(&mut missing);
            assert!(missing.hashed.is_empty());
        }
    }
}
