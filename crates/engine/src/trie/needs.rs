//! Which proofs are needed before the root after some changes can be computed.
//!
//! Where all nodes of a state are stored none are. Of a state of which only some are known,
//! a changed key needs the way to it, and a key that vanishes may need the node beside it
//! (`hints`): either the proof of its absence afterwards, or one from before of any key whose way
//! leads there (`key_search`). All of them are found at once, on a copy of the trie that takes what it lacks
//! for a branch and goes on; nothing of that copy is used otherwise.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, U256};
use alloy_trie::Nibbles;

use super::state_root::StateRoot;
use super::{NodeReader, Owner, Rows, Trie, key_search};
use crate::error::{Error, Result};
use crate::state::{AccountChange, AccountState, Changes};
use crate::trie::leaf::{account_key, slot_key, storage_root_of};

/// Accounts with slots of theirs. The account itself is always meant too.
pub type Keys = BTreeMap<Address, BTreeSet<U256>>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProofsNeeded {
    /// Keys to which the way is not known. A proof from any state in which nothing on the
    /// unknown part of the way has changed will do.
    pub before: Keys,
    /// Keys that vanish from beside a node that is not known: the proofs that they are
    /// absent after the changes.
    pub after: Keys,
    /// Where those nodes are. A proof from before of any key below each will do as well.
    pub beside: BTreeSet<Place>,
}

/// A place in the trie of the accounts, or of the storage of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub account: Option<Address>,
    pub path: Nibbles,
}

impl ProofsNeeded {
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Keys that nobody has, below the places of `beside`; none where one lies too deep.
    pub fn preimages_for_paths(&self) -> Option<Keys> {
        let mut keys = Keys::new();
        for Place { account, path } in &self.beside {
            match account {
                Some(address) => {
                    keys.entry(*address).or_default().insert(key_search::slot(path)?);
                }
                None => {
                    keys.entry(key_search::address(path)?).or_default();
                }
            }
        }
        Some(keys)
    }
}

impl StateRoot {
    /// The proofs without which `apply` and `root` end with `MissingNode`. Those after the
    /// changes are only known once none before them is needed.
    pub fn needs(&self, changes: &Changes, nodes: &dyn NodeReader) -> Result<ProofsNeeded> {
        let mut trial = self.clone();
        let mut needed = ProofsNeeded::default();
        for (address, change) in &changes.accounts {
            trial.find_ways(address, change, nodes, &mut needed.before)?;
        }
        if needed.before.is_empty() {
            trial.assume();
            trial.apply(changes, nodes)?;
            trial.root(nodes)?;
            (needed.after, needed.beside) = trial.assumed();
        }
        Ok(needed)
    }

    fn find_ways(
        &mut self,
        address: &Address,
        change: &AccountChange,
        nodes: &dyn NodeReader,
        unknown: &mut Keys,
    ) -> Result<()> {
        let rows = Rows { owner: Owner::Accounts, nodes };
        let found = known(self.accounts.get(&account_key(address), &rows))?;
        // Storage of a new life has no former nodes.
        let lives_on = match (change.before, change.after) {
            (Some(before), Some(after)) if before.generation == after.generation => Some(after),
            _ => None,
        };
        let slots = || lives_on.iter().flat_map(|_| change.slots.keys());
        let Some(leaf) = found else {
            unknown.entry(*address).or_default().extend(slots());
            return Ok(());
        };
        let Some(AccountState { generation, .. }) = lives_on else { return Ok(()) };
        let root = leaf.map(storage_root_of).transpose()?;
        let mut from_leaf = root.map(Trie::open);
        let Some(trie) = self.storage_of(address).or(from_leaf.as_mut()) else {
            return Ok(()); // `apply` says what is wrong.
        };
        let rows = Rows { owner: Owner::Storage { address: *address, generation }, nodes };
        for slot in slots() {
            if known(way(trie, &slot_key(slot), &rows))?.is_none() {
                unknown.entry(*address).or_default().insert(*slot);
            }
        }
        Ok(())
    }
}

fn way(trie: &mut Trie, key: &Nibbles, rows: &Rows<'_>) -> Result<()> {
    trie.get(key, rows).map(drop)
}

/// `None` where a node is missing.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::MissingNode(_)) => Ok(None),
        Err(other) => Err(other),
    }
}
