//! Proofs of an account and its slots, at any state that is kept (EIP-1186).
//!
//! There are three ways, tried in this order:
//!
//! - Within the window of nodes the trie is read from them. What is not stored as nodes
//!   yet is replayed from its delta (`branch_trie`).
//! - Below it the trie of the oldest block with nodes is led back: what has changed since
//!   gets the value that it had. That costs as much as has changed.
//! - Where too much has changed, or no nodes are kept, every leaf of the state is hashed
//!   (`flat_proof`). That costs as much as there is.
//!
//! Above a partial base there is one way (`partial_trie`).
//!
//! Each stops at its deadline. In place, where others wait for the thread, only the first
//! is begun.

use alloy_primitives::{Address, B256, U256};

use super::branch_trie::BranchTrie;
use super::flat_proof;
use super::state::State;
use super::view::View;
use crate::error::{Error, Result};
use crate::evm::deadline::{Limits, Watch};
use crate::state::{AccountState, StateReader};
use crate::trie::proof::ProofNodes;

/// Accounts and slots that are led back at most: some 2 kB each in memory, and 30 µs.
pub(super) const MAX_UNWIND: usize = 20_000;

/// What a state says of an account and some of its slots, with the nodes that prove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub account: Option<AccountState>,
    /// From the root of the state down.
    pub account_nodes: ProofNodes,
    pub storage_root: B256,
    /// For each slot its value, and nodes from the storage root down.
    pub slots: Vec<(U256, ProofNodes)>,
}

impl State {
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `StoreDamaged`, or what reading the store failed
    /// with.
    pub fn prove(&self, address: &Address, slots: &[U256], limits: Limits) -> Result<Proof> {
        self.prove_by(address, slots, limits, MAX_UNWIND)
    }

    /// The same above a partial base, where `root` is that of the sealed block that the state
    /// is of, or stands on.
    ///
    /// # Errors
    ///
    /// `MissingTrieNodes`, `IncompleteState`, and as above.
    pub fn prove_under(
        &self,
        root: Option<B256>,
        address: &Address,
        slots: &[U256],
        limits: Limits,
    ) -> Result<Proof> {
        if self.check_whole("a proof").is_ok() {
            return self.prove(address, slots, limits);
        }
        self.prove_partial(address, slots, root, &mut Watch::new(limits))
    }

    pub(super) fn prove_by(
        &self,
        address: &Address,
        slots: &[U256],
        limits: Limits,
        unwound_trie: usize,
    ) -> Result<Proof> {
        let mut watch = Watch::new(limits);
        let account = self.account(address)?;
        let found = match open_trie(self, unwound_trie, &mut watch) {
            Ok(Some(mut trie)) => trie.prove(address, account.as_ref(), slots, &mut watch),
            Ok(None) => flat_proof::prove(self, address, slots, &mut watch),
            Err(failed) => Err(failed),
        };
        let (account_nodes, storage_root, slot_nodes) = found?;
        let value = |slot| match &account {
            Some(account) => self.storage(address, account.generation, slot),
            None => Ok(U256::ZERO),
        };
        let slots = slots.iter().zip(slot_nodes).map(|(slot, nodes)| Ok((value(slot)?, nodes)));
        Ok(Proof { account, account_nodes, storage_root, slots: slots.collect::<Result<_>>()? })
    }
}

/// The trie of a state, from stored nodes; none where they do not help.
fn open_trie(state: &State, unwound_trie: usize, watch: &mut Watch) -> Result<Option<BranchTrie>> {
    let view = View { lease: state.lease().clone() };
    let heads = view.heads();
    if heads.nodes.is_some() && state.base() >= heads.nodes_earliest {
        return BranchTrie::open_within(state, watch).map(Some);
    }
    if watch.in_place() {
        return Err(Error::DeadlineExceeded);
    }
    match heads.nodes {
        Some(_) => BranchTrie::unwound_trie(state, unwound_trie, watch),
        None => Ok(None),
    }
}
