//! The state trie of one state of a view, and after changes above it.
//!
//! It reads and never writes, so any reader of a store can have one. Stored nodes are
//! versioned, so a state whose block lies within their window starts from them. What
//! is not stored as nodes yet, because the writer stores them behind the head or
//! because the block is not sealed, is replayed from its delta; where the store keeps
//! no nodes at all, the trie is built from the whole state. So it is for a state below
//! the window, if the caller says that it has the time.

use std::sync::Arc;

use alloy_primitives::{Address, B256};

use super::head_trie::{build, changes_of, root_of};
use super::nodes::StoredNodes;
use super::state::State;
use super::view::View;
use crate::error::{Error, Result};
use crate::state::Changes;
use crate::trie::state_root::StateRoot;
use crate::trie::{LayeredNodes, NodeWrites};

pub struct BranchTrie {
    trie: StateRoot,
    stored: StoredNodes,
    /// All nodes of the state, where none are stored.
    built: Option<Arc<NodeWrites>>,
}

impl BranchTrie {
    /// `PrunedState` when the nodes of the state's block are no longer kept.
    ///
    /// # Errors
    ///
    /// `PrunedState` when the nodes of the state's block are no longer kept; `MissingNode`, `StoreDamaged`, or what reading the store failed with.
    pub fn open(state: &State) -> Result<Self> {
        let view = View { lease: state.lease().clone() };
        let base = state.base();
        let Some(nodes) = view.heads().nodes else { return Self::build(&view, state) };
        let earliest = view.heads().nodes_earliest;
        if base < earliest {
            return Err(Error::PrunedState { block: base, earliest });
        }
        let mut branch = Self::start(StoredNodes::at(&view, base), None)?;
        for block in nodes + 1..=base {
            let sealed = view.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
            branch.apply(&changes_of(&view, &view.state(block - 1)?, sealed.delta)?)?;
        }
        for (before, delta) in state.unsealed() {
            branch.apply(&changes_of(&view, &before, delta)?)?;
        }
        Ok(branch)
    }

    /// The same for every state that is kept, however old. Below the window of nodes this
    /// takes as long as the state is large.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or what reading the store failed with.
    pub fn rebuild(state: &State) -> Result<Self> {
        let view = View { lease: state.lease().clone() };
        let heads = view.heads();
        if heads.nodes.is_some() && state.base() < heads.nodes_earliest {
            return Self::build(&view, state);
        }
        Self::open(state)
    }

    fn build(view: &View, state: &State) -> Result<Self> {
        Self::start(StoredNodes::none(view), Some(Arc::new(build(state)?)))
    }

    fn start(stored: StoredNodes, built: Option<Arc<NodeWrites>>) -> Result<Self> {
        let nodes = LayeredNodes { layers: built.iter().cloned().collect(), base: &stored };
        let trie = StateRoot::open(root_of(&nodes)?);
        Ok(Self { trie, stored, built })
    }

    /// Takes in changes that start from the state as it stands here.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or what reading the store failed with.
    pub fn apply(&mut self, changes: &Changes) -> Result<()> {
        let layers = self.built.iter().cloned().collect();
        self.trie.apply(changes, &LayeredNodes { layers, base: &self.stored })
    }

    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or what reading the store failed with.
    pub fn root(&mut self) -> Result<B256> {
        let layers = self.built.iter().cloned().collect();
        self.trie.root(&LayeredNodes { layers, base: &self.stored })
    }

    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or what reading the store failed with.
    pub fn storage_root(&mut self, address: &Address) -> Result<B256> {
        let layers = self.built.iter().cloned().collect();
        self.trie.storage_root(address, &LayeredNodes { layers, base: &self.stored })
    }
}
