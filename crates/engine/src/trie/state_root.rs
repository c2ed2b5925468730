//! Computes the state root after changes, at the cost of what changed.
//!
//! A `StateRoot` holds the account trie and the touched storage tries. Storage roots are written
//! into the account leaves when a root is computed. It stores nothing: `take_writes` returns the
//! rows that a store, or a layer above it, must apply. After an error it must be dropped.
//!
//! Deletions are applied last. A branch that loses one child and gains another then never has a
//! single child, whose node would have to be read although no root depends on it and which a
//! partial state may lack.
//!
//! Every call gets the nodes that it may read: those of the state the trie was opened on, with or
//! without all writes taken since. `bulk_root` computes roots from scratch.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256, map::AddressMap};
use alloy_trie::Nibbles;

use crate::{
    deadline::Watch,
    error::{Error, Result},
    state::{AccountChange, AccountState, Changes},
    trie::{
        EMPTY_ROOT_HASH, NodeReader, NodeWrites, Owner, Rows, Trie,
        leaf::{
            account_key, account_keys, decode_account, decode_slot, encode_account, encode_slot,
            slot_key, slot_keys, storage_root_of,
        },
        proof::ProofNodes,
        tree,
    },
};

/// Estimated time per changed account or slot: reading and hashing the nodes on its path.
const CHANGE_NS: u64 = 10_000;
/// Estimated time to prove a slot: eight nodes read and checked, mostly in the cache.
const SLOT_NS: u64 = 20_000;

/// Accounts and slots. Each account itself is included.
pub type Keys = BTreeMap<Address, BTreeSet<U256>>;

/// A path in the account trie (`account` is `None`) or in a storage trie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub account: Option<Address>,
    pub path: Nibbles,
}

#[derive(Debug, Clone)]
pub struct StateRoot {
    pub(super) accounts: Trie,
    /// Touched storage tries, of the accounts' current generations.
    storage: AddressMap<StorageTrie>,
    /// Accounts whose leaves have to be updated before the next root, in key order so that adjacent
    /// rows are read together.
    waiting: BTreeMap<Nibbles, (Address, Option<AccountState>)>,
    retired: BTreeSet<Owner>,
    /// In a trial copy (`needs`): keys whose deletion assumed a missing sibling to be a branch.
    assumed: Option<Keys>,
}

#[derive(Debug, Clone)]
struct StorageTrie {
    generation: u64,
    trie: Trie,
}

impl StateRoot {
    pub fn open(state_root: B256) -> Self {
        Self {
            accounts: Trie::open(state_root),
            storage: AddressMap::default(),
            waiting: BTreeMap::new(),
            retired: BTreeSet::new(),
            assumed: None,
        }
    }

    /// From now on, assumes missing siblings of deleted nodes to be branches. Later roots are
    /// invalid.
    pub(super) fn assume(&mut self) {
        self.assumed = Some(Keys::new());
        self.accounts.assumed = Some(Vec::new());
        for touched in self.storage.values_mut() {
            touched.trie.assumed = Some(Vec::new());
        }
    }

    /// The keys whose deletion assumed a missing node to be a branch, and the paths of these nodes.
    pub(super) fn assumed(self) -> (Keys, BTreeSet<Place>) {
        let of = |account, trie: Trie| {
            let paths = trie.assumed.unwrap_or_default();
            paths.into_iter().map(move |path| Place { account, path })
        };
        let storage = self.storage.into_iter();
        let below = storage.flat_map(|(address, touched)| of(Some(address), touched.trie));
        let places = of(None, self.accounts).chain(below).collect();
        (self.assumed.unwrap_or_default(), places)
    }

    /// The storage trie of an account, if it was touched.
    pub(super) fn storage_of(&mut self, address: &Address) -> Option<&mut Trie> {
        self.storage.get_mut(address).map(|touched| &mut touched.trie)
    }

    /// Applies the changes. They must be based on the current state of this trie.
    pub fn apply(&mut self, changes: &Changes, nodes: &dyn NodeReader) -> Result<()> {
        self.apply_within(changes, nodes, &mut Watch::default())
    }

    /// Like `apply`, but fails with `DeadlineExceeded` after the deadline.
    pub fn apply_within(
        &mut self,
        changes: &Changes,
        nodes: &dyn NodeReader,
        watch: &mut Watch,
    ) -> Result<()> {
        for change in changes.accounts.values() {
            watch.step(CHANGE_NS * (1 + change.slots.len() as u64))?;
        }
        let keys = account_keys(changes.accounts.keys());
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        self.accounts.load(&sorted, &Rows { owner: Owner::Accounts, nodes })?;
        for (key, (address, change)) in keys.into_iter().zip(&changes.accounts) {
            self.apply_to_account(key, address, change, nodes)?;
        }
        Ok(())
    }

    pub fn root(&mut self, nodes: &dyn NodeReader) -> Result<B256> {
        tree::hash_all(self.storage.values_mut().map(|touched| &mut touched.trie));
        let rows = Rows { owner: Owner::Accounts, nodes };
        let mut gone = Vec::new();
        for (key, (address, account)) in std::mem::take(&mut self.waiting) {
            let Some(account) = account else {
                gone.push((key, address));
                continue;
            };
            let storage_root = self.storage.get_mut(&address).map(|touched| touched.trie.root());
            self.accounts.update(&key, &rows, |leaf| {
                let storage_root = match (storage_root, leaf) {
                    (Some(root), _) => root,
                    (None, Some(leaf)) => storage_root_of(leaf)?,
                    (None, None) => return Err(not_in_trie(&address)),
                };
                Ok(Some(encode_account(&account, storage_root)))
            })?;
        }
        for (key, address) in gone {
            let before = self.accounts.assumptions();
            self.accounts.delete(&key, &rows)?;
            if self.accounts.assumptions() != before
                && let Some(assumed) = &mut self.assumed
            {
                assumed.entry(address).or_default();
            }
        }
        Ok(self.accounts.root())
    }

    /// The current storage root of an account; the empty root if the account does not exist.
    pub fn storage_root(&mut self, address: &Address, nodes: &dyn NodeReader) -> Result<B256> {
        if let Some(touched) = self.storage.get_mut(address) {
            return Ok(touched.trie.root());
        }
        let key = account_key(address);
        if let Some((_, None)) = self.waiting.get(&key) {
            return Ok(EMPTY_ROOT_HASH);
        }
        let rows = Rows { owner: Owner::Accounts, nodes };
        self.accounts.get(&key, &rows)?.map_or(Ok(EMPTY_ROOT_HASH), storage_root_of)
    }

    /// The proof of an account, its storage root, and the proofs of some of its slots. `account` is
    /// the account in this state.
    pub fn prove(
        &mut self,
        address: &Address,
        account: Option<&AccountState>,
        slots: &[U256],
        nodes: &dyn NodeReader,
        watch: &mut Watch,
    ) -> Result<(ProofNodes, B256, Vec<ProofNodes>)> {
        self.root(nodes)?;
        let rows = Rows { owner: Owner::Accounts, nodes };
        let to_account = self.accounts.prove(&account_key(address), &rows)?;
        let storage_root = self.storage_root(address, nodes)?;
        let to_slots = match account {
            Some(AccountState { generation, .. }) if storage_root != EMPTY_ROOT_HASH => {
                let owner = Owner::Storage { address: *address, generation: *generation };
                let trie = self.storage_trie(address, *generation, nodes)?;
                let rows = Rows { owner, nodes };
                let prove = |slot| {
                    watch.step(SLOT_NS)?;
                    trie.prove(&slot_key(slot), &rows)
                };
                slots.iter().map(prove).collect::<Result<_>>()?
            }
            _ => vec![ProofNodes::new(); slots.len()],
        };
        Ok((to_account, storage_root, to_slots))
    }

    /// Reads an account from its leaf. Call `root` first.
    pub fn account(
        &mut self,
        address: &Address,
        generation: u64,
        nodes: &dyn NodeReader,
    ) -> Result<Option<AccountState>> {
        let rows = Rows { owner: Owner::Accounts, nodes };
        let leaf = self.accounts.get(&account_key(address), &rows)?;
        leaf.map(|leaf| Ok(decode_account(leaf, generation)?.0)).transpose()
    }

    /// Reads a slot of an existing account from its leaf.
    pub fn slot(
        &mut self,
        address: &Address,
        generation: u64,
        slot: &U256,
        nodes: &dyn NodeReader,
    ) -> Result<U256> {
        let rows = Rows { owner: Owner::Storage { address: *address, generation }, nodes };
        let trie = self.storage_trie(address, generation, nodes)?;
        let leaf = trie.get(&slot_key(slot), &rows)?;
        Ok(leaf.map(decode_slot).transpose()?.unwrap_or_default())
    }

    /// Computes the root and returns all changes since the last call.
    pub fn take_writes(&mut self, nodes: &dyn NodeReader) -> Result<NodeWrites> {
        self.root(nodes)?;
        let mut writes = NodeWrites::default();
        self.accounts.take_writes(&Owner::Accounts, &mut writes.nodes);
        for (&address, StorageTrie { generation, trie }) in &mut self.storage {
            let owner = Owner::Storage { address, generation: *generation };
            trie.take_writes(&owner, &mut writes.nodes);
        }
        writes.retired = std::mem::take(&mut self.retired).into_iter().collect();
        Ok(writes)
    }

    fn apply_to_account(
        &mut self,
        key: Nibbles,
        address: &Address,
        change: &AccountChange,
        nodes: &dyn NodeReader,
    ) -> Result<()> {
        if let Some(generation) = change.retired() {
            self.storage.remove(address);
            self.retired.insert(Owner::Storage { address: *address, generation });
        }
        self.waiting.insert(key, (*address, change.after));
        let Some(AccountState { generation, .. }) = change.after else { return Ok(()) };

        let owner = Owner::Storage { address: *address, generation };
        let lives_on = change.before.is_some_and(|before| before.generation == generation);
        if !lives_on {
            // A generation that ended and restarted under the same number has no stored rows, or
            // rows that its new trie never refers to.
            self.retired.remove(&owner);
            self.storage.insert(*address, StorageTrie { generation, trie: Trie::default() });
        }
        if change.slots.is_empty() {
            return Ok(());
        }
        let mut assumed = self.assumed.take();
        let trie = self.storage_trie(address, generation, nodes)?;
        let rows = Rows { owner, nodes };
        let mut keys = slot_keys(change.slots.keys());
        let slots: Vec<_> = keys.iter().copied().zip(&change.slots).collect();
        keys.sort_unstable();
        trie.load(&keys, &rows)?;
        let set = slots.iter().filter(|(_, (_, value))| !value.is_zero());
        let cleared = slots.iter().filter(|(_, (_, value))| value.is_zero());
        for (key, (slot, value)) in set.chain(cleared) {
            let before = trie.assumptions();
            trie.update(key, &rows, |_| Ok(encode_slot(value)))?;
            if trie.assumptions() != before
                && let Some(assumed) = &mut assumed
            {
                assumed.entry(*address).or_default().insert(**slot);
            }
        }
        self.assumed = assumed;
        Ok(())
    }

    fn storage_trie(
        &mut self,
        address: &Address,
        generation: u64,
        nodes: &dyn NodeReader,
    ) -> Result<&mut Trie> {
        if !self.storage.contains_key(address) {
            let rows = Rows { owner: Owner::Accounts, nodes };
            let leaf = self.accounts.get(&account_key(address), &rows)?;
            let root = storage_root_of(leaf.ok_or_else(|| not_in_trie(address))?)?;
            let mut trie = Trie::open(root);
            trie.assumed = self.accounts.assumed.as_ref().map(|_| Vec::new());
            self.storage.insert(*address, StorageTrie { generation, trie });
        }
        match self.storage.get_mut(address) {
            Some(touched) if touched.generation == generation => Ok(&mut touched.trie),
            _ => Err(Error::invalid(format!(
                "storage of {address} was changed in generation {generation}, which is not its own"
            ))),
        }
    }
}

fn not_in_trie(address: &Address) -> Error {
    Error::StoreDamaged(format!("account {address} is not in the trie"))
}

#[cfg(test)]
mod tests;
