//! The proofs required to compute the root after a set of changes.
//!
//! None are required if all nodes of the state are stored. In a partial state, each changed key
//! needs the nodes on its path, and each deleted key may also need the sibling node
//! (`proof_nodes`). The sibling is obtained either from the proof that the key is absent
//! afterwards, or from a proof of any key below it beforehand (`key_search`). A trial copy of the
//! trie that assumes missing nodes to be branches finds all required proofs in one pass. The copy
//! is discarded.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use alloy_trie::Nibbles;

use super::state_root::{Keys, Place, StateRoot};
use super::{NodeReader, Owner, Rows, Trie, key_search};
use crate::error::{Error, Result};
use crate::state::{AccountChange, AccountState, Changes};
use crate::trie::leaf::{account_key, slot_key, storage_root_of};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProofsNeeded {
    /// Keys whose paths have missing nodes. A proof is usable from any state in which the missing
    /// part of the path is the same.
    pub before: Keys,
    /// Deleted keys with a missing sibling node: proofs of their absence after the changes are
    /// required.
    pub after: Keys,
    /// The paths of the missing siblings. A proof from before the changes of any key below each
    /// path is sufficient too.
    pub beside: BTreeSet<Place>,
}

impl ProofsNeeded {
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// Unused keys below the paths of `beside`. `None` if a path is too deep to search.
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
    /// The proofs without which `apply` and `root` fail with `MissingNode`. `after` and `beside`
    /// are only filled if `before` is empty.
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
        // A new generation's storage has no earlier nodes.
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

/// `None` if a node is missing.
fn known<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::MissingNode(_)) => Ok(None),
        Err(other) => Err(other),
    }
}
