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
use alloy_trie::Nibbles;

use super::head_trie::{build, changes_of, root_of};
use super::nodes::StoredNodes;
use super::proof::MAX_UNWIND;
use super::state::State;
use super::view::View;
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::{AccountChange, AccountState, Changes, StateReader};
use crate::store::delta;
use crate::store::entry::{self, ACCOUNT, SLOT};
use crate::trie::proof::ProofNodes;
use crate::trie::proof_nodes::{Hints, WithProofNodes};
use crate::trie::state_root::StateRoot;
use crate::trie::{LayeredNodes, NodeReader, NodeWrites, Owner, ProofsNeeded, paths};

/// Estimated time of reading an account or a slot of an older state.
const ENTRY_NS: u64 = 4_000;
/// Estimated minimum time of reading the delta of a block.
const DELTA_NS: u64 = 20_000;

pub struct BranchTrie {
    pub(super) trie: StateRoot,
    stored: StoredNodes,
    /// All nodes of the state, if none are stored.
    built: Option<Arc<NodeWrites>>,
    /// Nodes of proofs, for a state whose nodes are only partly stored.
    hints: Hints,
    /// On a partial base, the block whose proofs contain the missing nodes. `None` on a complete
    /// base.
    pub(super) begun_at: Option<u64>,
}

/// The nodes of one state from all sources, and its root.
pub struct StateNodes {
    pub root: B256,
    layers: Vec<Arc<NodeWrites>>,
    stored: StoredNodes,
}

impl StateNodes {
    fn layered(&self) -> LayeredNodes<'_> {
        LayeredNodes { layers: self.layers.clone(), base: &self.stored }
    }
}

impl NodeReader for StateNodes {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        self.layered().node(owner, path)
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        self.stored.by_hash(hash)
    }

    fn is_partial(&self) -> bool {
        self.stored.is_partial()
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
        let mut branch = Self::start(StoredNodes::at(&view, base), None)?;
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
        let mut branch = Self::start(StoredNodes::at(&view, from), None)?;
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

    /// The nodes of any retained state, with a deadline. `root` is as in `open_under`.
    ///
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub(crate) fn settled(
        state: &State,
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<StateNodes> {
        Self::open_any(state, root, watch)?.settle()
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

    fn settle(mut self) -> Result<StateNodes> {
        let mut layers: Vec<_> = self.built.iter().cloned().collect();
        let nodes = LayeredNodes { layers: layers.clone(), base: &self.stored };
        let root = self.trie.root(&nodes)?;
        layers.push(Arc::new(self.trie.take_writes(&nodes)?));
        Ok(StateNodes { root, layers, stored: self.stored })
    }

    fn build(view: &View, state: &State) -> Result<Self> {
        Self::start(StoredNodes::none(view), Some(Arc::new(build(state)?)))
    }

    fn start(stored: StoredNodes, built: Option<Arc<NodeWrites>>) -> Result<Self> {
        let nodes = LayeredNodes { layers: built.iter().cloned().collect(), base: &stored };
        let trie = StateRoot::open(root_of(&nodes, None)?);
        Ok(Self { trie, stored, built, hints: Hints::default(), begun_at: None })
    }

    /// The trie with this root, for a state whose nodes are only partly stored.
    pub(super) fn at_root(root: B256, stored: StoredNodes, block: u64) -> Self {
        let (trie, hints) = (StateRoot::open(root), Hints::default());
        Self { trie, stored, built: None, hints, begun_at: Some(block) }
    }

    /// Applies changes that are relative to the current state of the trie.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or any error from reading the store. On a partial base
    /// `MissingTrieNodes`, and nothing is applied.
    pub fn apply(&mut self, changes: &Changes) -> Result<()> {
        if let Some(block) = self.begun_at {
            let Self { trie, stored, built, hints, .. } = self;
            with_nodes(stored, built, hints, |nodes| paths::check(trie, changes, block, nodes))?;
        }
        self.apply_within(changes, &mut Watch::default())
    }

    pub(super) fn apply_within(&mut self, changes: &Changes, watch: &mut Watch) -> Result<()> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.apply_within(changes, nodes, watch))
    }

    /// Applies all changes since the block that the trie starts at: `MissingTrieNodes`.
    pub(super) fn replay_at_once(&mut self, changes: &Changes, watch: &mut Watch) -> Result<()> {
        if changes.accounts.is_empty() {
            return Ok(());
        }
        let Self { trie, stored, built, hints, begun_at } = self;
        let block = begun_at.unwrap_or_default();
        with_nodes(stored, built, hints, |nodes| {
            paths::apply_known(trie, changes, block, nodes, watch)
        })
    }

    /// The nodes on the path to an account, its storage root, and the nodes on the paths to the
    /// slots.
    pub(super) fn prove(
        &mut self,
        address: &Address,
        account: Option<&AccountState>,
        slots: &[U256],
        watch: &mut Watch,
    ) -> Result<(ProofNodes, B256, Vec<ProofNodes>)> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.prove(address, account, slots, nodes, watch))
    }

    /// The account's leaf in the trie; `generation` is set in the result.
    pub(super) fn account(
        &mut self,
        address: &Address,
        generation: u64,
    ) -> Result<Option<AccountState>> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.account(address, generation, nodes))
    }

    /// The slot's value in the trie.
    pub(super) fn slot(&mut self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.slot(address, generation, slot, nodes))
    }

    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub fn root(&mut self) -> Result<B256> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.root(nodes))
    }

    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub fn storage_root(&mut self, address: &Address) -> Result<B256> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.storage_root(address, nodes))
    }

    /// The storage root of the account after changes, which are not applied.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or any error from reading the store.
    pub fn storage_root_after(&self, address: &Address, changes: &Changes) -> Result<B256> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.storage_root_after(address, changes, nodes))
    }

    /// The proofs without which `apply` and `root` fail with `MissingNode`; empty if all required
    /// nodes are known.
    ///
    /// # Errors
    ///
    /// `StoreDamaged`, or any error from reading the store.
    pub fn needs(&self, changes: &Changes) -> Result<ProofsNeeded> {
        let Self { trie, stored, built, hints, .. } = self;
        with_nodes(stored, built, hints, |nodes| trie.needs(changes, nodes))
    }

    /// Adds nodes of proofs. Each is used where the trie refers to its hash. An extension in them
    /// shows that its child is a branch only if it is reachable from `after`, the root after the
    /// changes.
    pub fn fill(&mut self, nodes: &[impl AsRef<[u8]>], after: Option<B256>) {
        self.hints.add(nodes, after);
    }
}

fn with_nodes<T>(
    stored: &StoredNodes,
    built: &Option<Arc<NodeWrites>>,
    hints: &Hints,
    read: impl FnOnce(&dyn NodeReader) -> T,
) -> T {
    let nodes = LayeredNodes { layers: built.iter().cloned().collect(), base: stored };
    read(&WithProofNodes { nodes: &nodes, hints })
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
