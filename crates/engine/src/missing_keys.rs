//! The keys that a run wanted and that the store does not know.
//!
//! Only a store whose base is partial misses anything (`store::Heads::anchor`). A read that
//! misses fails with one key. A run goes on with a default in its place and collects: a list of
//! keys is then all that it gives. What it wanted after the first miss may be nonsense, so a list
//! is bounded, and a key in it is wanted, never known.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256};

use crate::error::{Error, Result};

/// Keys that one run collects; then it ends.
pub const MOST_KEYS: usize = 20_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingKeys {
    pub accounts: BTreeSet<Address>,
    pub slots: BTreeMap<Address, BTreeSet<U256>>,
    /// By hash, each with an account that has it, if one is known.
    pub codes: BTreeMap<B256, Option<Address>>,
    /// Numbers of blocks whose hashes are wanted.
    pub blocks: BTreeSet<u64>,
    /// How the numbers of some slots came about: by hash, the two words that were hashed. No keys.
    pub hashed: BTreeMap<B256, [u8; 64]>,
    /// Accounts that were destroyed after the anchor: for each, a block before its destruction.
    /// Only proofs up to that block have their slots. Not keys.
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

    /// The number of keys.
    pub fn len(&self) -> usize {
        let slots: usize = self.slots.values().map(BTreeSet::len).sum();
        self.accounts.len() + slots + self.codes.len() + self.blocks.len()
    }

    /// Takes in the keys of another.
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
            // The later block is the one that others are more likely to prove.
            let known = self.destroyed_after.entry(address).or_default();
            *known = block.max(*known);
        }
    }

    /// What was read, or the keys of it that are missing.
    ///
    /// # Errors
    ///
    /// What the reading failed with besides.
    pub fn note<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(Error::StateMissing(keys)) => {
                self.merge(*keys);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    pub fn insert_slot(&mut self, address: Address, slot: U256) {
        self.slots.entry(address).or_default().insert(slot);
    }
}

/// What was missed so far. While that is nothing it is one word, and there is nothing to drop:
/// a complete base pays nothing for it.
#[derive(Debug, Clone, Default)]
pub struct Missed(Option<Box<MissingKeys>>);

impl Missed {
    pub fn is_empty(&self) -> bool {
        self.keys().is_none()
    }

    /// The keys, if there is one.
    pub fn keys(&self) -> Option<&MissingKeys> {
        self.0.as_deref().filter(|keys| !keys.is_empty())
    }

    /// The keys, to add to them.
    pub fn keys_mut(&mut self) -> &mut MissingKeys {
        self.0.get_or_insert_default()
    }

    pub fn into_keys(self) -> Option<Box<MissingKeys>> {
        self.0.filter(|keys| !keys.is_empty())
    }

    /// # Errors
    ///
    /// `StateMissing` with what was missed.
    pub fn check(&self) -> Result<()> {
        match self.keys() {
            Some(keys) => Err(keys.clone().into()),
            None => Ok(()),
        }
    }
}

impl From<MissingKeys> for Error {
    fn from(misses: MissingKeys) -> Self {
        Self::StateMissing(Box::new(misses))
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
