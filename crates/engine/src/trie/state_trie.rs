//! The trie of one state with changes applied, from nodes of any source.
//!
//! Nodes of proofs (`fill`) supplement a state whose nodes are only partly known.

use alloy_primitives::{Address, B256, U256};

use super::proof::ProofNodes;
use super::proof_nodes::{Hints, WithProofNodes};
use super::state_root::{Keys, StateRoot};
use super::{NodeReader, NodeWrites, ProofsNeeded, paths};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::{AccountState, Changes};

/// A source of the nodes of one state.
pub trait NodeSource {
    /// # Errors
    ///
    /// Those of `read`, and of opening the source.
    fn with_nodes<T>(&self, read: impl FnOnce(&dyn NodeReader) -> Result<T>) -> Result<T>;
}

/// After an error other than `MissingTrieNodes` it must be dropped.
pub struct StateTrie<N> {
    trie: StateRoot,
    source: N,
    hints: Hints,
    /// The block whose proofs contain the missing nodes, if they can be fetched. Missing nodes are
    /// then `MissingTrieNodes` at this block.
    fetched_at: Option<u64>,
}

impl<N> StateTrie<N> {
    pub(crate) fn new(root: B256, source: N) -> Self {
        Self { trie: StateRoot::open(root), source, hints: Hints::default(), fetched_at: None }
    }

    pub(crate) fn fetched_at(self, block: Option<u64>) -> Self {
        Self { fetched_at: block, ..self }
    }

    /// The same trie with its source wrapped.
    pub fn map_source<M>(self, wrap: impl FnOnce(N) -> M) -> StateTrie<M> {
        let Self { trie, source, hints, fetched_at } = self;
        StateTrie { trie, source: wrap(source), hints, fetched_at }
    }

    pub fn source(&self) -> &N {
        &self.source
    }

    pub(crate) fn into_source(self) -> N {
        self.source
    }

    /// Adds nodes of proofs until the next `take`. Each is used where the trie refers to its hash.
    /// An extension in them shows that its child is a branch only if it is reachable from `after`,
    /// the root after the changes.
    pub fn fill(&mut self, nodes: &[impl AsRef<[u8]>], after: Option<B256>) {
        self.hints.add(nodes, after);
    }
}

impl<N: NodeSource> StateTrie<N> {
    fn edit<T>(
        &mut self,
        work: impl FnOnce(&mut StateRoot, &dyn NodeReader) -> Result<T>,
    ) -> Result<T> {
        let Self { trie, source, hints, .. } = self;
        source.with_nodes(|nodes| work(trie, &WithProofNodes { nodes, hints }))
    }

    fn read<T>(&self, work: impl FnOnce(&StateRoot, &dyn NodeReader) -> Result<T>) -> Result<T> {
        let Self { trie, source, hints, .. } = self;
        source.with_nodes(|nodes| work(trie, &WithProofNodes { nodes, hints }))
    }

    /// Applies changes that are relative to the current state of the trie.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or an error from reading nodes. `MissingTrieNodes`, after
    /// which nothing is applied.
    pub fn apply(&mut self, changes: &Changes) -> Result<()> {
        let watch = &mut Watch::default();
        match self.fetched_at {
            None => self.apply_within(changes, watch),
            Some(_) => self.apply_known(changes, watch),
        }
    }

    /// Applies changes with a deadline: `DeadlineExceeded`.
    pub(crate) fn apply_within(&mut self, changes: &Changes, watch: &mut Watch) -> Result<()> {
        self.edit(|trie, nodes| trie.apply_within(changes, nodes, watch))
    }

    /// Applies changes whose nodes may be missing: `MissingTrieNodes`.
    pub(crate) fn apply_known(&mut self, changes: &Changes, watch: &mut Watch) -> Result<()> {
        if changes.accounts.is_empty() {
            return Ok(());
        }
        let block = self.fetched_at.unwrap_or_default();
        self.edit(|trie, nodes| paths::apply_known(trie, changes, block, nodes, watch))
    }

    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or an error from reading nodes.
    pub fn root(&mut self) -> Result<B256> {
        self.edit(StateRoot::root)
    }

    /// # Errors
    ///
    /// `MissingNode`, `MissingTrieNodes`, `StoreDamaged`, or an error from reading nodes.
    pub fn storage_root(&mut self, address: &Address) -> Result<B256> {
        let found = self.edit(|trie, nodes| trie.storage_root(address, nodes));
        found.map_err(|failed| self.missing(failed, address, &[]))
    }

    /// The proofs without which `apply` and `root` fail with `MissingNode`; empty if all required
    /// nodes are known.
    ///
    /// # Errors
    ///
    /// `StoreDamaged`, or an error from reading nodes.
    pub fn needs(&self, changes: &Changes) -> Result<ProofsNeeded> {
        self.read(|trie, nodes| trie.needs(changes, nodes))
    }

    /// The node writes since the last call, for `Batch::nodes`.
    ///
    /// # Errors
    ///
    /// `MissingNode`, `StoreDamaged`, or an error from reading nodes.
    pub fn take(&mut self) -> Result<NodeWrites> {
        let taken = self.edit(StateRoot::take_writes);
        self.hints.clear();
        taken
    }

    /// The nodes on the path to an account, its storage root, and the nodes on the paths to the
    /// slots.
    pub(crate) fn prove(
        &mut self,
        address: &Address,
        account: Option<&AccountState>,
        slots: &[U256],
        watch: &mut Watch,
    ) -> Result<(ProofNodes, B256, Vec<ProofNodes>)> {
        self.edit(|trie, nodes| trie.prove(address, account, slots, nodes, watch))
    }

    /// The account's leaf in the trie; `generation` is set in the result.
    pub(crate) fn account(
        &mut self,
        address: &Address,
        generation: u64,
    ) -> Result<Option<AccountState>> {
        self.edit(|trie, nodes| trie.account(address, generation, nodes))
    }

    /// The slot's value in the trie.
    pub(crate) fn slot(&mut self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        self.edit(|trie, nodes| trie.slot(address, generation, slot, nodes))
    }

    /// The error of reading an account and slots.
    pub(crate) fn missing(&self, failed: Error, address: &Address, slots: &[U256]) -> Error {
        match (failed, self.fetched_at) {
            (Error::MissingNode(_), Some(block)) => {
                paths::missing(block, Keys::from([(*address, slots.iter().copied().collect())]))
            }
            (failed, _) => failed,
        }
    }
}
