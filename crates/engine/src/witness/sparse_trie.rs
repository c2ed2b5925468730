//! State roots after changes, with nodes from any source.

use std::sync::Arc;

use alloy_primitives::{Address, B256};

use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::Changes;
use crate::trie::proof_nodes::{Hints, WithProofNodes};
use crate::trie::state_root::StateRoot;
use crate::trie::{Keys, NodeReader, ProofsNeeded, paths};

/// After an error other than `MissingTrieNodes` it must be dropped.
pub struct SparseTrie {
    trie: StateRoot,
    nodes: Arc<dyn NodeReader + Send + Sync>,
    hints: Hints,
    /// The block whose proofs contain the missing nodes, if they can be fetched.
    asked_at: Option<u64>,
}

impl SparseTrie {
    pub(super) fn new(root: B256, nodes: Arc<dyn NodeReader + Send + Sync>) -> Self {
        Self { trie: StateRoot::open(root), nodes, hints: Hints::default(), asked_at: None }
    }

    /// For a partial base: missing nodes are reported as `MissingTrieNodes` at this block.
    pub(super) fn asking_at(self, block: Option<u64>) -> Self {
        Self { asked_at: block, ..self }
    }

    /// Applies changes that are based on the current state of this trie.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `MissingTrieNodes`, or an error from reading nodes.
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
    /// `MissingNode`, or an error from reading nodes.
    pub fn root(&mut self) -> Result<B256> {
        self.trie.root(&WithProofNodes { nodes: &*self.nodes, hints: &self.hints })
    }

    /// # Errors
    ///
    /// `MissingNode`, `MissingTrieNodes`, or an error from reading nodes.
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

    /// The account's storage root after changes that are not applied.
    ///
    /// # Errors
    ///
    /// `MissingNode`, or an error from reading nodes.
    pub fn storage_root_after(&self, address: &Address, changes: &Changes) -> Result<B256> {
        let nodes = WithProofNodes { nodes: &*self.nodes, hints: &self.hints };
        self.trie.storage_root_after(address, changes, &nodes)
    }

    /// The proofs without which `apply` and `root` fail with `MissingNode`.
    ///
    /// # Errors
    ///
    /// An error from reading nodes.
    pub fn needs(&self, changes: &Changes) -> Result<ProofsNeeded> {
        self.trie.needs(changes, &WithProofNodes { nodes: &*self.nodes, hints: &self.hints })
    }

    /// Adds proof nodes. Each is used wherever its hash is referenced. The branches they imply are
    /// accepted only if reachable from the root `after` the changes.
    pub fn fill(&mut self, nodes: &[impl AsRef<[u8]>], after: Option<B256>) {
        self.hints.add(nodes, after);
    }
}
