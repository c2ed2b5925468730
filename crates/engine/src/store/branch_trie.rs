//! The trie of one state of a view, and of changes on top of it.
//!
//! It never writes, so any reader of a store can open one. Stored nodes are versioned; a state
//! whose block is within their window starts from them. Blocks whose nodes are not stored yet
//! (unsealed, or nodes still pending) are replayed from their deltas. If no nodes are stored, the
//! trie is built from the whole state. Below the window, the trie of the oldest block in the window
//! is unwound (`unwound_trie`); only if too much has changed since is it built as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};

use super::head_trie::{build, changes_of, root_of};
use super::nodes::StoredNodes;
use super::state::State;
use super::view::View;
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::{AccountChange, Changes, StateReader};
use crate::store::delta;
use crate::store::entry::{self, ACCOUNT, SLOT};
use crate::trie::{LayeredNodes, NodeReader, NodeSource, StateTrie};

/// The maximum number of accounts and slots to unwind, at about 2 kB of memory and 30 µs each.
pub(super) const MAX_UNWIND: usize = 20_000;
/// Estimated time of reading an account or a slot of an older state.
const ENTRY_NS: u64 = 4_000;
/// Estimated minimum time of reading the delta of a block.
const DELTA_NS: u64 = 20_000;

/// The trie of any state of a view.
pub type BranchTrie = StateTrie<StateNodes>;

/// The nodes of one state: the stored ones, below all nodes that were built or changed.
pub type StateNodes = LayeredNodes<StoredNodes>;

impl NodeSource for StateNodes {
    fn with_nodes<T>(&self, read: impl FnOnce(&dyn NodeReader) -> Result<T>) -> Result<T> {
        read(self)
    }
}

impl BranchTrie {
    /// Opens the trie of a state.
    ///
    /// # Errors
    ///
    /// `PrunedState` if the nodes of the state's block are pruned; `MissingNode`, `StoreDamaged`,
    /// or any error from reading the store.
    pub fn open(state: &State) -> Result<Self> {
        Self::open_within(state, &mut Watch::default())
    }

    /// Like `open`, but on a partial base it uses `root`, the state root of the sealed block that
    /// the state belongs to or is based on.
    ///
    /// # Errors
    ///
    /// `MissingTrieNodes`, `IncompleteState`, and those of `open`.
    pub fn open_under(state: &State, root: Option<B256>) -> Result<Self> {
        match state.check_whole("a root") {
            Ok(()) => Self::open(state),
            Err(_) => Self::open_partial(state, root, &mut Watch::default()),
        }
    }

    /// Like `open`, with a deadline: `DeadlineExceeded`.
    pub(super) fn open_within(state: &State, watch: &mut Watch) -> Result<Self> {
        let view = View { lease: state.lease().clone() };
        if view.heads().anchor.is_some() {
            return Self::open_partial(state, None, watch);
        }
        let base = state.base();
        let Some(nodes) = view.heads().nodes else { return Self::build(&view, state) };
        let earliest = view.heads().nodes_earliest;
        if base < earliest {
            return Err(Error::PrunedState { block: base, earliest });
        }
        let mut branch = Self::start_at(&view, base)?;
        for block in nodes + 1..=base {
            let sealed = view.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
            branch.replay(&view, &view.state(block - 1)?, sealed.delta, watch)?;
        }
        for (before, delta) in state.unsealed() {
            branch.replay(&view, &before, delta, watch)?;
        }
        Ok(branch)
    }

    /// The trie of a state below the window of nodes: the trie of the oldest block in the window
    /// with the changes since reverted. `None` if more than `most` accounts and slots changed.
    pub(super) fn unwound_trie(
        state: &State,
        most: usize,
        watch: &mut Watch,
    ) -> Result<Option<Self>> {
        let view = View { lease: state.lease().clone() };
        let from = view.heads().nodes_earliest;
        let Some(changes) = inverse_changes(&view, from, state.base(), most, watch)? else {
            return Ok(None);
        };
        let mut branch = Self::start_at(&view, from)?;
        branch.apply_within(&changes, watch)?;
        for (before, delta) in state.unsealed() {
            branch.replay(&view, &before, delta, watch)?;
        }
        Ok(Some(branch))
    }

    fn replay(&mut self, view: &View, before: &State, delta: u64, watch: &mut Watch) -> Result<()> {
        let changes = changes_of(view, before, delta, watch)?;
        self.apply_within(&changes, watch)
    }

    /// Opens the trie of any retained state. Below the window of nodes, this reverts the changes
    /// since the oldest block in the window; if they are many, it takes time and memory
    /// proportional to the size of the state.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub fn rebuild(state: &State) -> Result<Self> {
        Self::open_any(state, None, &mut Watch::default())
    }

    /// The root and the nodes of any retained state, with a deadline. `root` is as in `open_under`.
    ///
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub(crate) fn root_and_nodes(
        state: &State,
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<(B256, StateNodes)> {
        let mut trie = Self::open_any(state, root, watch)?;
        let root = trie.root()?;
        let writes = Arc::new(trie.take()?);
        let mut nodes = trie.into_source();
        nodes.layers.push(writes);
        Ok((root, nodes))
    }

    fn open_any(state: &State, root: Option<B256>, watch: &mut Watch) -> Result<Self> {
        let view = View { lease: state.lease().clone() };
        let heads = view.heads();
        if heads.anchor.is_some() {
            return Self::open_partial(state, root, watch);
        }
        if heads.nodes.is_none() || state.base() >= heads.nodes_earliest {
            return Self::open_within(state, watch);
        }
        match Self::unwound_trie(state, MAX_UNWIND, watch)? {
            Some(branch) => Ok(branch),
            None => Self::build(&view, state),
        }
    }

    fn build(view: &View, state: &State) -> Result<Self> {
        let layers = vec![Arc::new(build(state)?)];
        Self::start(LayeredNodes { layers, base: StoredNodes::none(view) })
    }

    fn start_at(view: &View, block: u64) -> Result<Self> {
        Self::start(LayeredNodes { layers: Vec::new(), base: StoredNodes::at(view, block) })
    }

    fn start(nodes: StateNodes) -> Result<Self> {
        Ok(Self::new(root_of(&nodes, None)?, nodes))
    }

    /// The trie with this root, for a state whose nodes are only partly stored.
    pub(super) fn at_root(root: B256, base: StoredNodes, block: u64) -> Self {
        Self::new(root, LayeredNodes { layers: Vec::new(), base }).fetched_at(Some(block))
    }
}

/// The changes that revert the state after block `from` to the state after the earlier block `to`.
/// `None` if more than `most` accounts and slots differ.
pub(super) fn inverse_changes(
    view: &View,
    from: u64,
    to: u64,
    most: usize,
    watch: &mut Watch,
) -> Result<Option<Changes>> {
    let Some(touched) = touched_since(view, from, to, most, watch)? else { return Ok(None) };
    let (now, then) = (view.state(from)?, view.state(to)?);
    let mut accounts = BTreeMap::new();
    let mut left = most;
    for (address, slots) in touched {
        let (before, after) = (now.account(&address)?, then.account(&address)?);
        let slots = match (before, after) {
            (_, None) => BTreeMap::new(),
            (Some(before), Some(after)) if before.generation == after.generation => slots
                .into_iter()
                .filter(|(generation, _)| *generation == after.generation)
                .map(|(generation, slot)| {
                    watch.step(ENTRY_NS)?;
                    Ok((slot, then.storage(&address, generation, &slot)?))
                })
                .collect::<Result<_>>()?,
            // The account had another generation, whose storage nodes are not stored.
            (_, Some(after)) => {
                let slots = then.slots(&address, after.generation, None, left)?;
                left -= slots.len();
                if left == 0 {
                    return Ok(None);
                }
                slots.into_iter().collect()
            }
        };
        watch.step(ENTRY_NS)?;
        accounts.insert(address, AccountChange { before, after, slots });
    }
    Ok(Some(Changes { accounts, ..Changes::default() }))
}

/// Accounts by address, each with its slots by generation.
type Touched = BTreeMap<Address, BTreeSet<(u64, U256)>>;

/// The accounts and slots changed by blocks `to + 1` to `from`; `None` if more than `most`.
fn touched_since(
    view: &View,
    from: u64,
    to: u64,
    most: usize,
    watch: &mut Watch,
) -> Result<Option<Touched>> {
    let deltas = view.lease.tables.deltas;
    let mut touched = Touched::new();
    let mut slots = 0;
    for block in to + 1..=from {
        watch.step(DELTA_NS)?;
        let sealed = view.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
        let entries = view.lease.read(|txn| delta::read(deltas, txn, sealed.delta))?;
        for key in entries.keys() {
            match key[0] {
                ACCOUNT => {
                    touched.entry(Address::from_slice(&key[1..])).or_default();
                }
                SLOT => {
                    let (address, generation, slot) = entry::parse_slot_key(key)?;
                    let new = touched.entry(address).or_default().insert((generation, slot));
                    slots += usize::from(new);
                }
                _ => {}
            }
        }
        if touched.len() + slots > most {
            return Ok(None);
        }
    }
    Ok(Some(touched))
}
