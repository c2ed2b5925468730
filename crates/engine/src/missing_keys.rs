//! State keys that a run requested and that the store does not know.
//!
//! Only a store with a partial base state misses keys (`store::Heads::anchor`). A single read that
//! misses fails with one key. A run continues with a default value and collects keys; its only
//! result is then the list of keys. Requests after the first miss may depend on defaults and be
//! wrong. The list is therefore bounded, and a listed key need not exist.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256};

/// Maximum number of keys that one run collects before it ends.
pub const MOST_KEYS: usize = 20_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingKeys {
    pub accounts: BTreeSet<Address>,
    pub slots: BTreeMap<Address, BTreeSet<U256>>,
    /// Code hashes, each with an account that has this code, if known.
    pub codes: BTreeMap<B256, Option<Address>>,
    /// Blocks whose hashes are missing.
    pub blocks: BTreeSet<u64>,
    /// Preimages of slot numbers: for each hash, the two words that were hashed. Not keys.
    pub hashed: BTreeMap<B256, [u8; 64]>,
    /// For each account destroyed after the anchor, a block before its destruction. Only proofs at
    /// or before that block contain its slots. Not keys.
    pub destroyed_after: BTreeMap<Address, u64>,
}

impl MissingKeys {
    pub fn account(address: Address) -> Self {
        Self { accounts: BTreeSet::from([address]), ..Self::default() }
    }

    pub fn slot(address: Address, slot: U256) -> Self {
        let slots = BTreeMap::from([(address, BTreeSet::from([slot]))]);
        Self { slots, ..Self::default() }
    }

    pub fn code(hash: B256) -> Self {
        Self { codes: BTreeMap::from([(hash, None)]), ..Self::default() }
    }

    pub fn block(number: u64) -> Self {
        Self { blocks: BTreeSet::from([number]), ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
            && self.slots.is_empty()
            && self.codes.is_empty()
            && self.blocks.is_empty()
    }

    pub fn len(&self) -> usize {
        let slots: usize = self.slots.values().map(BTreeSet::len).sum();
        self.accounts.len() + slots + self.codes.len() + self.blocks.len()
    }

    pub fn merge(&mut self, other: Self) {
        self.accounts.extend(other.accounts);
        for (address, slots) in other.slots {
            self.slots.entry(address).or_default().extend(slots);
        }
        for (hash, account) in other.codes {
            let known = self.codes.entry(hash).or_default();
            *known = known.or(account);
        }
        self.blocks.extend(other.blocks);
        self.hashed.extend(other.hashed);
        for (address, block) in other.destroyed_after {
            // Keep the later block: upstreams are more likely to serve proofs for it.
            let known = self.destroyed_after.entry(address).or_default();
            *known = block.max(*known);
        }
    }

    pub fn insert_slot(&mut self, address: Address, slot: U256) {
        self.slots.entry(address).or_default().insert(slot);
    }
}

/// The keys missed so far. Without misses this is one null pointer with nothing to drop, so a
/// complete base state pays no cost.
#[derive(Debug, Clone, Default)]
pub struct Missed(Option<Box<MissingKeys>>);

impl Missed {
    pub fn is_empty(&self) -> bool {
        self.keys().is_none()
    }

    /// `None` if no key was missed.
    pub fn keys(&self) -> Option<&MissingKeys> {
        self.0.as_deref().filter(|keys| !keys.is_empty())
    }

    pub fn keys_mut(&mut self) -> &mut MissingKeys {
        self.0.get_or_insert_default()
    }

    pub fn into_keys(self) -> Option<Box<MissingKeys>> {
        self.0.filter(|keys| !keys.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_was_missed_until_there_is_a_key() {
        let mut missed = Missed::default();
        missed.keys_mut().merge(MissingKeys::default());
        assert!(missed.is_empty() && missed.check().is_ok());
        assert_eq!(missed.clone().into_keys(), None);
        missed.keys_mut().merge(MissingKeys::block(7));
        assert_eq!(missed.check(), Err(MissingKeys::block(7).into()));
        assert_eq!(missed.into_keys(), Some(Box::new(MissingKeys::block(7))));
    }

    #[test]
    fn keys_of_both_are_counted_once() {
        let (address, hash) = (Address::repeat_byte(1), B256::repeat_byte(2));
        let mut misses = MissingKeys::account(address);
        misses.merge(MissingKeys::slot(address, U256::from(1)));
        misses.merge(MissingKeys::slot(address, U256::from(1)));
        misses.merge(MissingKeys::slot(address, U256::from(2)));
        misses.merge(MissingKeys {
            codes: BTreeMap::from([(hash, Some(address))]),
            ..MissingKeys::default()
        });
        misses.merge(MissingKeys::code(hash));
        misses.merge(MissingKeys::block(7));
        assert_eq!(misses.len(), 5);
        assert_eq!(misses.codes[&hash], Some(address), "an account that is known stays");
        assert!(!misses.is_empty() && MissingKeys::default().is_empty());
    }
}
