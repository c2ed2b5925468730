//! Fetched data of an anchor's state that is not yet in the store: values of one epoch, and trie
//! nodes.
//!
//! A key missing from the store has not changed since the anchor, so its value is the same in every
//! block since. The values here are therefore valid below all deltas and are read after the store.
//! A value is inserted as reported by an endpoint, or with a verified proof (`proof`); the first
//! one is kept. For a slot this only holds while its account has the same generation as at the
//! anchor, which can change before Cancun: values of later blocks are then not kept here
//! (`State::is_same_life_as_anchor`).
//!
//! A slot that was never requested is known too if the nodes of other proofs lead to it or prove
//! its absence: a trie with few leaves is completely known after a few proofs. Reading such a slot
//! also inserts it, so that it is stored before a block changes it.
//!
//! All threads may read and insert concurrently. The size is bounded: the older half is evicted as
//! a whole. Entries that `Store::learn` has to store are kept until it has done so, so that no
//! block is stored whose changed keys are not. While it cannot store, nothing is inserted beyond
//! the bound.

mod proof;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use alloy_primitives::{
    Address, B256, Bytes, U256, keccak256,
    map::{AddressMap, B256Map, HashMap},
};
use alloy_trie::{EMPTY_ROOT_HASH, TrieAccount};

use crate::error::Result;
use crate::state::AccountState;
use crate::trie::leaf::{account_key, slot_key};

/// The approximate overhead of an entry in bytes.
const ENTRY: usize = 96;
/// The maximum size of unstored data, as a multiple of the limit.
const MOST_WAITING: usize = 4;

#[derive(Debug)]
pub struct FetchedState {
    pub epoch: u64,
    limit: usize,
    /// True if all proof nodes are stored. Only roots need them. Storage nodes are cached in any
    /// case.
    keeps_nodes: bool,
    halves: RwLock<TwoGenerations>,
}

/// A slot and its proof nodes.
pub type SlotNodes = (U256, Vec<Bytes>);

/// A fetched account. Its generation is ignored; the anchor's applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    account: Option<AccountState>,
    storage_root: Option<B256>,
}

#[derive(Debug, Default)]
struct TwoGenerations {
    young: Half,
    old: Half,
    /// Keys that are not stored yet, in insertion order.
    unstored: VecDeque<Key>,
    /// The number of keys inserted before the first of `unstored`.
    stored: u64,
    /// The number of keys inserted before the young half was started.
    inserted_before_young: u64,
    /// True if the inserted data are being stored.
    is_stored: bool,
}

#[derive(Debug, Default)]
struct Half {
    accounts: AddressMap<Known>,
    slots: HashMap<(Address, U256), U256>,
    codes: B256Map<Bytes>,
    blocks: HashMap<u64, B256>,
    nodes: B256Map<Bytes>,
    bytes: usize,
}

/// The key of a fetched value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Account(Address),
    Slot(Address, U256),
    Code(B256),
    Block(u64),
    Node(B256),
}

/// A value to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Account(Address, Option<AccountState>),
    Slot(Address, U256, U256),
    Code(B256, Bytes),
    Block(u64, B256),
    Node(B256, Bytes),
}

impl FetchedState {
    pub fn new(epoch: u64, limit: usize) -> Self {
        Self { epoch, limit, keeps_nodes: true, halves: RwLock::default() }
    }

    /// Disables storing proof nodes, which are most of the data.
    #[must_use]
    pub fn without_nodes(self) -> Self {
        Self { keeps_nodes: false, ..self }
    }

    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let halves = self.read();
        halves.young.bytes + halves.old.bytes
    }

    /// The number of keys that are not stored yet.
    pub fn unstored(&self) -> usize {
        self.read().unstored.len()
    }

    /// `None` if unknown, `Some(None)` if the account does not exist.
    pub fn account(&self, address: &Address) -> Option<Option<AccountState>> {
        self.read().find(|half| half.accounts.get(address)).map(|known| known.account)
    }

    pub fn slot(&self, address: &Address, slot: &U256) -> Option<U256> {
        let halves = self.read();
        if let Some(value) = halves.find(|half| half.slots.get(&(*address, *slot))) {
            return Some(value);
        }
        let value = halves.implied(address, slot)?;
        drop(halves);
        self.write(|halves| halves.put_slot(*address, *slot, value));
        Some(value)
    }

    pub fn code(&self, hash: &B256) -> Option<Bytes> {
        self.read().find_ref(|half| half.codes.get(hash)).cloned()
    }

    pub fn block(&self, number: u64) -> Option<B256> {
        self.read().find(|half| half.blocks.get(&number))
    }

    /// A trie node by hash.
    pub fn node(&self, hash: &B256) -> Option<Bytes> {
        self.read().find_ref(|half| half.nodes.get(hash)).cloned()
    }

    pub fn put_account(
        &self,
        address: Address,
        account: Option<AccountState>,
        storage_root: Option<B256>,
    ) {
        self.write(|halves| halves.put_account(address, Known { account, storage_root }));
    }

    pub fn put_slots(&self, address: Address, slots: impl IntoIterator<Item = (U256, U256)>) {
        self.write(|halves| {
            slots.into_iter().for_each(|(slot, value)| halves.put_slot(address, slot, value));
        });
    }

    pub fn put_code(&self, code: Bytes) -> B256 {
        let hash = keccak256(&code);
        self.write(|halves| halves.put_code(hash, code));
        hash
    }

    pub fn put_block(&self, number: u64, hash: B256) {
        self.write(|halves| halves.put_block(number, hash));
    }

    /// Inserts trie nodes. Their paths are not needed, because they are looked up by hash.
    pub fn put_nodes(&self, nodes: impl IntoIterator<Item = Bytes>) {
        let short = nodes.into_iter().filter(|node| node.len() <= proof::LONGEST_NODE);
        let nodes: Vec<_> = short.map(|node| (keccak256(&node), node)).collect();
        self.write(|halves| {
            nodes.into_iter().for_each(|(hash, node)| halves.put_node(hash, node));
        });
    }

    /// Verifies a proof of an account and of slots in its storage, and inserts the proven values
    /// and nodes.
    ///
    /// # Errors
    ///
    /// `BadProof`; nothing is inserted then.
    pub fn prove(
        &self,
        root: B256,
        address: Address,
        account_proof: &[Bytes],
        slots: &[SlotNodes],
    ) -> Result<(Option<AccountState>, Vec<U256>)> {
        let shown = ProofClaims::check(root, &address, account_proof, slots)?;
        let (account, storage_root) = (shown.account, Some(shown.storage_root));
        self.write(|halves| {
            halves.put_account(address, Known { account, storage_root });
            for ((slot, _), value) in slots.iter().zip(&shown.values) {
                halves.put_slot(address, *slot, *value);
            }
            self.take_nodes(halves, shown.account_nodes, shown.slot_nodes);
        });
        Ok((account, shown.values))
    }

    /// Like `prove`, for a block at which the account's generation differs from the anchor's: only
    /// the nodes are inserted, since they are valid for any block.
    ///
    /// # Errors
    ///
    /// `BadProof`; nothing is inserted then.
    pub fn prove_nodes_only(
        &self,
        root: B256,
        address: Address,
        account_proof: &[Bytes],
        slots: &[SlotNodes],
    ) -> Result<(Option<AccountState>, Vec<U256>)> {
        let shown = ProofClaims::check(root, &address, account_proof, slots)?;
        self.write(|halves| self.take_nodes(halves, shown.account_nodes, shown.slot_nodes));
        Ok((shown.account, shown.values))
    }

    fn take_nodes(&self, halves: &mut TwoGenerations, of_account: Nodes, of_slots: Nodes) {
        if self.keeps_nodes {
            of_account.into_iter().for_each(|(hash, node)| halves.put_node(hash, node));
            of_slots.into_iter().for_each(|(hash, node)| halves.put_node(hash, node));
        } else {
            of_slots.into_iter().for_each(|(hash, node)| halves.remember_node(hash, node));
        }
    }

    /// Copies the nodes of another epoch. They are valid by their hashes, so storage with the same
    /// root or the same subtrees need not be proven again.
    pub fn remember_nodes_of(&self, other: &Self) {
        let nodes: Vec<_> = {
            let halves = other.read();
            let all = halves.old.nodes.iter().chain(&halves.young.nodes);
            all.map(|(hash, node)| (*hash, node.clone())).collect()
        };
        self.write(|halves| {
            nodes.into_iter().for_each(|(hash, node)| halves.remember_node(hash, node));
        });
    }

    /// The rows that are not stored yet, and the counter to pass to `stored` afterwards.
    pub fn rows(&self) -> (Vec<Row>, u64) {
        let mut halves = self.halves.write().unwrap_or_else(PoisonError::into_inner);
        halves.is_stored = true;
        (halves.unstored.iter().filter_map(|key| halves.row(key)).collect(), halves.inserted())
    }

    /// Marks all keys up to this counter as stored.
    pub fn stored(&self, inserted: u64) {
        let mut halves = self.halves.write().unwrap_or_else(PoisonError::into_inner);
        halves.drop_keys(inserted);
        halves.bound(self.limit);
    }

    fn read(&self) -> RwLockReadGuard<'_, TwoGenerations> {
        self.halves.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(&mut TwoGenerations)) {
        let mut halves: RwLockWriteGuard<'_, TwoGenerations> =
            self.halves.write().unwrap_or_else(PoisonError::into_inner);
        if halves.waits() && halves.young.bytes > MOST_WAITING * self.limit {
            return;
        }
        change(&mut halves);
        halves.bound(self.limit);
    }
}

type Nodes = Vec<(B256, Bytes)>;

/// The values and nodes of a verified proof.
struct ProofClaims {
    account: Option<AccountState>,
    storage_root: B256,
    values: Vec<U256>,
    account_nodes: Nodes,
    slot_nodes: Nodes,
}

impl ProofClaims {
    fn check(
        root: B256,
        address: &Address,
        account_proof: &[Bytes],
        slots: &[SlotNodes],
    ) -> Result<Self> {
        let shown = proof::check(root, &account_key(address), account_proof)?;
        let leaf = shown.value.as_deref().map(proof::account).transpose()?;
        let (account_nodes, mut slot_nodes) = (shown.nodes, Vec::new());
        let storage_root = leaf.map_or(EMPTY_ROOT_HASH, |leaf| leaf.storage_root);
        let mut values = Vec::with_capacity(slots.len());
        for (slot, slot_proof) in slots {
            let shown = proof::check(storage_root, &slot_key(slot), slot_proof)?;
            values.push(shown.value.as_deref().map(proof::slot).transpose()?.unwrap_or_default());
            slot_nodes.extend(shown.nodes);
        }
        Ok(Self { account: leaf.map(state_of), storage_root, values, account_nodes, slot_nodes })
    }
}

fn state_of(leaf: TrieAccount) -> AccountState {
    let TrieAccount { nonce, balance, code_hash, .. } = leaf;
    AccountState { nonce, balance, code_hash, generation: 0 }
}

impl TwoGenerations {
    fn find<T: Copy>(&self, get: impl Fn(&Half) -> Option<&T>) -> Option<T> {
        self.find_ref(get).copied()
    }

    fn find_ref<'h, T>(&'h self, get: impl Fn(&'h Half) -> Option<&'h T>) -> Option<&'h T> {
        get(&self.young).or_else(|| get(&self.old))
    }

    /// The value of a slot that follows from the known nodes of its account.
    fn implied(&self, address: &Address, slot: &U256) -> Option<U256> {
        let known = self.find(|half| half.accounts.get(address))?;
        if known.account.is_none() {
            return Some(U256::ZERO);
        }
        let node = |hash: &B256| self.find_ref(|half| half.nodes.get(hash));
        let leaf = proof::recall(known.storage_root?, &slot_key(slot), node).ok()??;
        leaf.as_deref().map_or(Some(U256::ZERO), |leaf| proof::slot(leaf).ok())
    }

    /// Starts a new half if the young one is full. Unstored data are not evicted if they are being
    /// stored.
    fn bound(&mut self, limit: usize) {
        if self.young.bytes > limit / 2 && !self.waits() {
            self.drop_keys(self.inserted_before_young);
            self.inserted_before_young = self.inserted();
            self.old = mem::take(&mut self.young);
        }
    }

    /// True if the old half has data that must be stored first.
    fn waits(&self) -> bool {
        self.is_stored && self.stored < self.inserted_before_young
    }

    /// The total number of keys inserted.
    fn inserted(&self) -> u64 {
        self.stored + self.unstored.len() as u64
    }

    /// Removes the keys up to this counter from `unstored`.
    fn drop_keys(&mut self, until: u64) {
        let count = until.saturating_sub(self.stored).min(self.unstored.len() as u64);
        self.unstored.drain(..count as usize);
        self.stored += count;
    }

    fn add(&mut self, key: Key, bytes: usize) {
        self.young.bytes += ENTRY + bytes;
        self.unstored.push_back(key);
    }

    fn row(&self, key: &Key) -> Option<Row> {
        Some(match *key {
            Key::Account(address) => {
                Row::Account(address, self.find(|half| half.accounts.get(&address))?.account)
            }
            Key::Slot(address, slot) => {
                Row::Slot(address, slot, self.find(|half| half.slots.get(&(address, slot)))?)
            }
            Key::Code(hash) => {
                Row::Code(hash, self.find_ref(|half| half.codes.get(&hash))?.clone())
            }
            Key::Block(number) => Row::Block(number, self.find(|half| half.blocks.get(&number))?),
            Key::Node(hash) => {
                Row::Node(hash, self.find_ref(|half| half.nodes.get(&hash))?.clone())
            }
        })
    }

    /// Keeps the first account but the last storage root, because the most recent proofs belong to
    /// it: an unknown slot has the same value under each of these roots.
    fn put_account(&mut self, address: Address, known: Known) {
        let Some(before) = self.find(|half| half.accounts.get(&address)) else {
            self.young.accounts.insert(address, known);
            self.add(Key::Account(address), mem::size_of::<Known>());
            return;
        };
        if known.storage_root.is_some() && known.storage_root != before.storage_root {
            let storage_root = known.storage_root;
            self.young.accounts.insert(address, Known { storage_root, ..before });
        }
    }

    fn put_slot(&mut self, address: Address, slot: U256, value: U256) {
        if self.find(|half| half.slots.get(&(address, slot))).is_none() {
            self.young.slots.insert((address, slot), value);
            self.add(Key::Slot(address, slot), 84);
        }
    }

    fn put_code(&mut self, hash: B256, code: Bytes) {
        if self.find_ref(|half| half.codes.get(&hash)).is_none() {
            self.add(Key::Code(hash), 32 + code.len());
            self.young.codes.insert(hash, code);
        }
    }

    fn put_block(&mut self, number: u64, hash: B256) {
        if self.find(|half| half.blocks.get(&number)).is_none() {
            self.young.blocks.insert(number, hash);
            self.add(Key::Block(number), 40);
        }
    }

    fn put_node(&mut self, hash: B256, node: Bytes) {
        if self.find_ref(|half| half.nodes.get(&hash)).is_none() {
            self.add(Key::Node(hash), 32 + node.len());
            self.young.nodes.insert(hash, node);
        }
    }

    /// Caches a node without storing it.
    fn remember_node(&mut self, hash: B256, node: Bytes) {
        if self.find_ref(|half| half.nodes.get(&hash)).is_none() {
            self.young.bytes += ENTRY + 32 + node.len();
            self.young.nodes.insert(hash, node);
        }
    }
}
