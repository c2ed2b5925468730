//! The trie of the latest state, and the changes on top of it.
//!
//! It holds no view between calls: each call opens one while it reads. Blocks whose nodes are
//! neither stored nor pending as a layer, because the writer was killed or never computed them, are
//! replayed from their deltas when the trie is opened. If there are no nodes, the trie is built
//! from the whole state.
//!
//! On a partial base the trie is never built. If the caller supplies the root, nothing is replayed
//! either, because there may be blocks in between whose roots were not computed here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use alloy_primitives::{Address, B256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};

use super::heads::Anchor;
use super::nodes::StoredNodes;
use super::open::Store;
use super::record::Start;
use super::state::State;
use super::view::View;
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::{AccountChange, AccountState, Changes, StateReader};
use crate::store::delta;
use crate::store::entry::{self, ACCOUNT, SLOT};
use crate::trie::bulk_root::{BulkRoot, bulk_storage_root};
use crate::trie::state_root::StateRoot;
use crate::trie::{
    LayeredNodes, NodeReader, NodeSource, NodeWrites, Owner, StateTrie, leaf, node_key,
};

/// The maximum number of delta entries read while other work waits for the thread.
const READ_IN_PLACE: usize = 128;
/// Estimated time of reading a delta entry and the account before the block.
const ENTRY_NS: u64 = 2_000;

/// The trie of the latest block, whose nodes are to be stored.
pub type HeadTrie = StateTrie<HeadNodes>;

/// The nodes after a block, stored or in layers. Each use opens a view.
pub struct HeadNodes {
    store: Arc<Store>,
    block: u64,
}

impl HeadTrie {
    /// Opens the trie of the latest block.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, or any error from reading the store.
    pub fn open(store: Arc<Store>) -> Result<Self> {
        Self::open_at(store, None)
    }

    /// `root` is the state root of the latest block. It is only used on a partial base; without it,
    /// the layers above the stored nodes are computed again.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, `MissingNode` on a partial base, or any error from reading the store.
    pub fn open_at(store: Arc<Store>, root: Option<B256>) -> Result<Self> {
        let view = store.view()?;
        let latest = view.heads().latest.map(|latest| latest.number);
        let anchor = view.heads().anchor;
        let nodes = HeadNodes { store, block: latest.unwrap_or_default() };
        let root = match (root, latest) {
            (Some(root), _) if anchor.is_some() => root,
            (_, Some(latest)) => {
                restore_layers(&nodes.store, &view, latest)?;
                nodes.with_nodes(|nodes| root_of(nodes, anchor))?
            }
            (_, None) => EMPTY_ROOT_HASH,
        };
        Ok(Self::new(root, nodes))
    }

    /// The trie after a sealed block on a partial base, with the state root of that block.
    pub fn open_behind(store: Arc<Store>, block: u64, root: B256) -> Self {
        Self::new(root, HeadNodes { store, block })
    }
}

impl NodeSource for HeadNodes {
    fn with_nodes<T>(&self, read: impl FnOnce(&dyn NodeReader) -> Result<T>) -> Result<T> {
        with_nodes(&self.store, self.block, read)
    }
}

fn with_nodes<T>(
    store: &Store,
    block: u64,
    read: impl FnOnce(&dyn NodeReader) -> Result<T>,
) -> Result<T> {
    let view = store.view()?;
    let base = StoredNodes::at(&view, block);
    read(&LayeredNodes { layers: store.node_layers(block)?, base })
}

/// The state root according to `nodes`. The row of a root always exists, except that of an anchor.
pub(super) fn root_of(nodes: &dyn NodeReader, anchor: Option<Anchor>) -> Result<B256> {
    let row = nodes.node(&Owner::Accounts, &Nibbles::new())?;
    let otherwise = anchor.map_or(EMPTY_ROOT_HASH, |anchor| anchor.root);
    Ok(row.map_or(otherwise, keccak256))
}

/// Computes the missing layers up to `latest`.
fn restore_layers(store: &Store, view: &View, latest: u64) -> Result<()> {
    let Some(known) = store.layers()?.last_known(view.heads().nodes, latest) else {
        // A partial base has `heads.nodes` from its anchor on; without it, `build` refuses.
        let writes = build(&view.state(latest)?)?;
        return store.restore_layer(latest, Arc::new(writes));
    };
    if known >= latest {
        return Ok(());
    }
    let anchor = view.heads().anchor;
    let root = with_nodes(store, known, |nodes| root_of(nodes, anchor))?;
    let mut trie = StateRoot::open(root);
    for block in known + 1..=latest {
        let sealed = view.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
        let before = view.state(block - 1)?;
        let changes = changes_of(view, &before, sealed.delta, &mut Watch::default())?;
        let writes = with_nodes(store, known, |nodes| {
            trie.apply(&changes, nodes)?;
            trie.take_writes(nodes)
        })?;
        store.restore_layer(block, Arc::new(writes))?;
    }
    Ok(())
}

impl View {
    /// The changes of a sealed block that its root depends on.
    ///
    /// # Errors
    ///
    /// `UnknownBlock`, `PrunedState`, or any error from reading the store.
    pub fn changes(&self, block: u64) -> Result<Changes> {
        let sealed = self.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
        let below = block.checked_sub(1).ok_or(Error::UnknownBlock(block))?;
        changes_of(self, &self.state(below)?, sealed.delta, &mut Watch::default())
    }

    /// The changes of a partial block, as `changes`: since an earlier partial of its block, or since
    /// the start of the block.
    ///
    /// # Errors
    ///
    /// `UnknownPartial`, `DroppedPartial`, `PrunedState`, or any error from reading the store.
    pub fn changes_of_partial(&self, number: u64, since: Option<u64>) -> Result<Changes> {
        self.state_of_partial(number)?;
        let partial = self.partial(number)?.ok_or(Error::UnknownPartial(number))?;
        let before = match (since, partial.start) {
            (Some(earlier), _) | (None, Start::Partial(earlier)) => {
                self.state_of_partial(earlier)?
            }
            (None, Start::Sealed(block)) => self.state(block)?,
        };
        let read = |delta| {
            let deltas = self.lease.tables.deltas;
            self.lease.read(|txn| delta::scan(deltas, txn, delta, &[], &[], usize::MAX))
        };
        let mut entries = read(number)?;
        if let Some(earlier) = since {
            let known: BTreeMap<_, _> = read(earlier)?.into_iter().collect();
            entries.retain(|(key, value)| known.get(key) != Some(value));
        }
        changes_in(&before, &entries, &mut Watch::default())
    }
}

/// The changes of a block relative to the state `before` it, from its delta. Code is omitted,
/// because no root depends on it. A long delta is not read while other work waits for the thread:
/// `DeadlineExceeded`.
pub(super) fn changes_of(
    view: &View,
    before: &State,
    number: u64,
    watch: &mut Watch,
) -> Result<Changes> {
    let limit = if watch.in_place() { READ_IN_PLACE } else { usize::MAX };
    let deltas = view.lease.tables.deltas;
    let entries = view.lease.read(|txn| delta::scan(deltas, txn, number, &[], &[], limit))?;
    if entries.len() == limit {
        return Err(Error::DeadlineExceeded);
    }
    changes_in(before, &entries, watch)
}

/// The changes that these entries of a delta make to the state `before` them.
fn changes_in(
    before: &State,
    entries: &[(Vec<u8>, Vec<u8>)],
    watch: &mut Watch,
) -> Result<Changes> {
    let mut accounts: BTreeMap<Address, AccountChange> = BTreeMap::new();
    for (key, value) in entries {
        watch.step(ENTRY_NS)?;
        match key[0] {
            ACCOUNT => {
                let address = Address::from_slice(&key[1..]);
                let before = before.account(&address)?;
                let after = entry::decode_account(value)?;
                accounts.insert(address, AccountChange { before, after, ..Default::default() });
            }
            SLOT => {
                let (address, generation, slot) = entry::parse_slot_key(key)?;
                let change = match accounts.entry(address) {
                    Entry::Occupied(known) => known.into_mut(),
                    // Only its slots changed.
                    Entry::Vacant(new) => {
                        let same = before.account(&address)?;
                        new.insert(AccountChange {
                            before: same,
                            after: same,
                            ..Default::default()
                        })
                    }
                };
                // Slots of generations that began and ended inside the block are unreachable.
                if change.after.is_some_and(|after| after.generation == generation) {
                    change.slots.insert(slot, entry::decode_slot(value)?);
                }
            }
            _ => {}
        }
    }
    Ok(Changes { accounts, ..Changes::default() })
}

/// Builds all nodes of a state.
pub(super) fn build(state: &State) -> Result<NodeWrites> {
    const PORTION: usize = 10_000;
    let mut writes = NodeWrites::default();
    let mut leaves = Vec::new();
    let mut after = None;
    loop {
        let accounts = state.accounts(after.as_ref(), PORTION)?;
        for (address, account) in &accounts {
            let storage_root = build_storage(state, address, account, &mut writes)?;
            leaves.push((leaf::account_key(address), leaf::encode_account(account, storage_root)));
        }
        after = accounts.last().map(|(address, _)| *address);
        if accounts.len() < PORTION {
            break;
        }
    }
    leaves.sort_unstable_by_key(|(key, _)| *key);
    let mut trie = BulkRoot::new(emit_to(&mut writes, Owner::Accounts));
    for (key, value) in leaves {
        trie.push(key, &value)?;
    }
    trie.finish()?;
    Ok(writes)
}

fn build_storage(
    state: &State,
    address: &Address,
    account: &AccountState,
    writes: &mut NodeWrites,
) -> Result<B256> {
    let slots = state.slots(address, account.generation, None, usize::MAX)?;
    if slots.is_empty() {
        return Ok(EMPTY_ROOT_HASH);
    }
    let owner = Owner::Storage { address: *address, generation: account.generation };
    bulk_storage_root(slots, emit_to(writes, owner))
}

fn emit_to(
    writes: &mut NodeWrites,
    owner: Owner,
) -> impl FnMut(&Nibbles, &[u8]) -> Result<()> + '_ {
    move |path, node| {
        writes.nodes.insert(node_key(&owner, path), Some(node.to_vec()));
        Ok(())
    }
}
