//! Proofs of an account and its slots, at any retained state (EIP-1186).
//!
//! There are three methods, tried in this order:
//!
//! - Within the window of stored nodes, the trie is read from them. Blocks whose nodes are not
//!   stored yet are replayed from their deltas (`branch_trie`).
//! - Below the window, the trie of the oldest block with nodes is unwound: keys that have changed
//!   since get their old values. The cost grows with the number of changes.
//! - If too much has changed, or no nodes are stored, every leaf of the state is hashed
//!   (`flat_proof`). The cost grows with the size of the state.
//!
//! Above a partial base there is one method (`partial_trie`).
//!
//! Each method stops at its deadline. In place, on a thread that must not block, only the first
//! method is tried.

use alloy_primitives::{Address, B256, U256};

use super::branch_trie::{BranchTrie, MAX_UNWIND};
use super::flat_proof;
use super::state::State;
use super::view::View;
use crate::deadline::{Limits, Watch};
use crate::error::{Error, Result};
use crate::state::{AccountState, StateReader};
use crate::trie::proof::ProofNodes;

/// The values of an account and some of its slots, with the nodes that prove them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub account: Option<AccountState>,
    /// From the state root down.
    pub account_nodes: ProofNodes,
    pub storage_root: B256,
    /// The value of each slot, with the nodes from the storage root down.
    pub slots: Vec<(U256, ProofNodes)>,
}

impl State {
    /// # Errors
    ///
    /// `DeadlineExceeded`, `MissingNode`, `StoreDamaged`, or a store read error.
    pub fn prove(&self, address: &Address, slots: &[U256], limits: Limits) -> Result<Proof> {
        self.prove_by(address, slots, limits, MAX_UNWIND)
    }

    /// Proves a state whose base may be partial. `root` is the root of the sealed block of the
    /// state, or of the one that it builds on.
    ///
    /// # Errors
    ///
    /// `MissingTrieNodes`, `IncompleteState`, and the errors of `prove`.
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

/// The trie of a state from stored nodes; `None` if they cannot be used.
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
