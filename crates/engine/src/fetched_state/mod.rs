//! What is known of an anchor's state beside the store: values of one epoch, and trie nodes.
//!
//! A key that is unknown has not changed since the anchor, so its value is that of every block
//! since; what is here is right below all deltas and is asked after the store. A value is put
//! here as it is said to be, or with a proof that was checked (`proof`); the first one stays.
//! For a slot that holds as long as its account lives as it did at the anchor, which rules before
//! Cancun may end: values of later blocks are not kept here (`State::is_same_life_as_anchor`).
//!
//! A slot that nobody asked for is known too where the nodes of other proofs lead to it, or to that
//! it is not there: a trie with few leaves is known whole after a few proofs. Whoever reads such a
//! slot has it learned, so that it is stored before a block changes it.
//!
//! Any thread may fill it while others read. It is bounded: what was learned first goes first,
//! in halves. What `Store::learn` is to store stays until it has, so that no block is stored
//! that has changed what is not; while it cannot store, nothing more is learned beyond the bound.

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

/// About what an entry takes besides the bytes in it.
const ENTRY: usize = 96;
/// Times the limit that may wait to be stored.
const MOST_WAITING: usize = 4;

#[derive(Debug)]
pub struct FetchedState {
    pub epoch: u64,
    limit: usize,
    /// Whether all nodes of proofs are stored, which only roots need; those of storage are
    /// remembered in any case.
    keeps_nodes: bool,
    halves: RwLock<TwoGenerations>,
}

/// A slot and the nodes on the way to it.
pub type SlotNodes = (U256, Vec<Bytes>);

/// An account as it is learned; its generation is the anchor's, whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    account: Option<AccountState>,
    storage_root: Option<B256>,
}

#[derive(Debug, Default)]
struct TwoGenerations {
    young: Half,
    old: Half,
    /// Keys that are not stored yet, in the order in which they came.
    unstored: VecDeque<Key>,
    /// How many keys came before the first of them.
    stored: u64,
    /// How many keys came before the young half was begun.
    inserted_before_young: u64,
    /// Somebody stores what comes in.
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

/// What a value is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Account(Address),
    Slot(Address, U256),
    Code(B256),
    Block(u64),
    Node(B256),
}

/// A value to be stored.
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

    /// The same without nodes of proofs: they are most of what is learned.
    #[must_use]
    pub fn without_nodes(self) -> Self {
        Self { keeps_nodes: false, ..self }
    }

    /// What it takes, about.
    pub fn bytes(&self) -> usize {
        let halves = self.read();
        halves.young.bytes + halves.old.bytes
    }

    /// How much waits to be stored.
    pub fn unstored(&self) -> usize {
        self.read().unstored.len()
    }

    /// `None` when it is unknown, `Some(None)` when there is no such account.
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

    /// A trie node of a proof that was checked, whatever its place.
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

    /// Take trie nodes, whatever their places: they are asked for by their hashes.
    pub fn put_nodes(&self, nodes: impl IntoIterator<Item = Bytes>) {
        let short = nodes.into_iter().filter(|node| node.len() <= proof::LONGEST_NODE);
        let nodes: Vec<_> = short.map(|node| (keccak256(&node), node)).collect();
        self.write(|halves| {
            nodes.into_iter().for_each(|(hash, node)| halves.put_node(hash, node));
        });
    }

    /// Check a proof of an account and of slots in its storage, and take all that it shows.
    ///
    /// # Errors
    ///
    /// `BadProof`; nothing is taken then.
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

    /// The same of a block at which the account does not live as it did at the anchor: nodes are
    /// right for any block, and nothing else is taken.
    ///
    /// # Errors
    ///
    /// `BadProof`; nothing is taken then.
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

    /// Remember the nodes of another epoch: they are right by their hashes, so that the storage of
    /// an account that has the same root there, or the same parts, need not be proven again.
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

    /// What waits to be stored, and for `stored` how far that goes.
    pub fn rows(&self) -> (Vec<Row>, u64) {
        let mut halves = self.halves.write().unwrap_or_else(PoisonError::into_inner);
        halves.is_stored = true;
        (halves.unstored.iter().filter_map(|key| halves.row(key)).collect(), halves.came())
    }

    /// All is stored that had come so far.
    pub fn stored(&self, came: u64) {
        let mut halves = self.halves.write().unwrap_or_else(PoisonError::into_inner);
        halves.drop_keys(came);
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

/// What a proof shows.
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

    /// The value of a slot that follows from what is known of its account.
    fn implied(&self, address: &Address, slot: &U256) -> Option<U256> {
        let known = self.find(|half| half.accounts.get(address))?;
        if known.account.is_none() {
            return Some(U256::ZERO);
        }
        let node = |hash: &B256| self.find_ref(|half| half.nodes.get(hash));
        let leaf = proof::recall(known.storage_root?, &slot_key(slot), node).ok()??;
        leaf.as_deref().map_or(Some(U256::ZERO), |leaf| proof::slot(leaf).ok())
    }

    /// Nothing that waits to be stored is forgotten, if somebody stores it.
    fn bound(&mut self, limit: usize) {
        if self.young.bytes > limit / 2 && !self.waits() {
            self.drop_keys(self.inserted_before_young);
            self.inserted_before_young = self.came();
            self.old = mem::take(&mut self.young);
        }
    }

    /// Whether something in the old half is to be stored first.
    fn waits(&self) -> bool {
        self.is_stored && self.stored < self.inserted_before_young
    }

    /// How many keys have come.
    fn came(&self) -> u64 {
        self.stored + self.unstored.len() as u64
    }

    /// The first keys do not wait any more.
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

    /// The first account stays. The last root does, since what was proven last hangs below it:
    /// a slot that is not known has the same value below each of them.
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

    /// Keep a node without storing it.
    fn remember_node(&mut self, hash: B256, node: Bytes) {
        if self.find_ref(|half| half.nodes.get(&hash)).is_none() {
            self.young.bytes += ENTRY + 32 + node.len();
            self.young.nodes.insert(hash, node);
        }
    }
}
