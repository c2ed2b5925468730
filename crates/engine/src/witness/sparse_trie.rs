//! The root of a state after changes, where nodes come from anywhere.

use std::sync::Arc;

use alloy_primitives::{Address, B256};

use crate::error::{Error, Result};
use crate::evm::deadline::Watch;
use crate::state::Changes;
use crate::trie::proof_nodes::{Hints, WithProofNodes};
use crate::trie::state_root::StateRoot;
use crate::trie::{Keys, NodeReader, ProofsNeeded, paths};

/// After an error it must be dropped, but for `MissingTrieNodes`.
pub struct SparseTrie {
    trie: StateRoot,
    nodes: Arc<dyn NodeReader + Send + Sync>,
    hints: Hints,
    /// The block at which proofs have what is missing, where that can be asked for.
    asked_at: Option<u64>,
}

impl SparseTrie {
    pub(super) fn new(root: B256, nodes: Arc<dyn NodeReader + Send + Sync>) -> Self {
        Self { trie: StateRoot::open(root), nodes, hints: Hints::default(), asked_at: None }
    }

    /// The same above a partial base: what is missing is `MissingTrieNodes` at this block.
    pub(super) fn asking_at(self, block: Option<u64>) -> Self {
        Self { asked_at: block, ..self }
    }

    /// Takes in changes that start from the state as it stands here.
    ///
    /// # Errors
    ///
    /// `MissingNode` or `MissingTrieNodes`, or what reading nodes failed with.
    pub fn apply(&mut self, changes: &Changes) -> Result<()> {
        let nodes = WithProofNodes { nodes: &*self.nodes, hints: &self.hints };
        match self.asked_at {
            None => self.trie.apply(changes, &nodes),
            Some(block) => {
                let watch = &mut Watch::default();
                paths::apply_known(&mut self.trie, changes, block, &nodes, watch)
            }
        }
    }

    /// # Errors
    ///
    /// `MissingNode`, or what reading nodes failed with.
    pub fn root(&mut self) -> Result<B256> {
        self.trie.root(&WithProofNodes { nodes: &*self.nodes, hints: &self.hints })
    }

    /// # Errors
    ///
    /// `MissingNode` or `MissingTrieNodes`, or what reading nodes failed with.
    pub fn storage_root(&mut self, address: &Address) -> Result<B256> {
        let nodes = WithProofNodes { nodes: &*self.nodes, hints: &self.hints };
        let found = self.trie.storage_root(address, &nodes);
        found.map_err(|failed| match (failed, self.asked_at) {
            (Error::MissingNode(_), Some(block)) => {
                paths::missing(block, Keys::from([(*address, Default::default())]))
            }
            (failed, _) => failed,
        })
    }

    /// The root of the account's storage after changes that are not taken in.
    ///
    /// # Errors
    ///
    /// `MissingNode`, or what reading nodes failed with.
    pub fn storage_root_after(&self, address: &Address, changes: &Changes) -> Result<B256> {
        let nodes = WithProofNodes { nodes: &*self.nodes, hints: &self.hints };
        self.trie.storage_root_after(address, changes, &nodes)
    }

    /// The proofs without which `apply` and `root` end with `MissingNode`.
    ///
    /// # Errors
    ///
    /// What reading nodes failed with.
    pub fn needs(&self, changes: &Changes) -> Result<ProofsNeeded> {
        self.trie.needs(changes, &WithProofNodes { nodes: &*self.nodes, hints: &self.hints })
    }

    /// Takes in nodes of proofs. Each is used where its hash is referred to;
    /// what they show of other nodes counts if the root `after` the changes leads to it.
    pub fn fill(&mut self, nodes: &[impl AsRef<[u8]>], after: Option<B256>) {
        self.hints.add(nodes, after);
    }
}
