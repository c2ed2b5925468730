//! The trie of a state above a partial base, as far as its nodes are known, and proofs from it.
//!
//! The trie of a sealed block starts at its root, which the caller has from the header: a proof
//! only needs the path to its own key. The trie of a block in progress needs the paths to all keys
//! that the block changed. It starts at the last block whose nodes are stored if that is recent,
//! otherwise at the sealed block below. All changes since then are applied at once, like those of
//! one block.
//!
//! If nodes are missing, `MissingTrieNodes` names the keys whose proofs at that block contain them
//! (`trie::paths`). Unknown values are read from the leaves.

use alloy_primitives::{Address, B256, U256};

use super::branch_trie::BranchTrie;
use super::head_trie::{changes_of, root_of};
use super::nodes::StoredNodes;
use super::proof::Proof;
use super::state::State;
use super::view::View;
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::state::{Changes, StateReader};

/// The maximum number of blocks replayed above the stored nodes. With more, the trie starts at the
/// sealed block of the state.
const MOST_REPLAYED: u64 = 48;

impl BranchTrie {
    /// `root` is the root of the sealed block of the state, or of the one that it builds on.
    /// Without it, the trie must start at the stored nodes.
    pub(super) fn open_partial(
        state: &State,
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<Self> {
        let view = View { lease: state.lease().clone() };
        let (base, unsealed) = (state.base(), state.unsealed());
        let at_base = |root| Self::at_root(root, StoredNodes::at(&view, base), base);
        let mut trie = match root {
            Some(root) if unsealed.is_empty() => at_base(root),
            _ => match (Self::begun_at_nodes(&view, base, root, watch)?, root) {
                (Some(trie), _) => trie,
                (None, Some(root)) => at_base(root),
                (None, None) => return Err(Error::IncompleteState("a root")),
            },
        };
        let mut changes = Changes::default();
        for (before, delta) in unsealed {
            changes.merge(changes_of(&view, &before, delta, watch)?);
        }
        trie.apply_known(&changes, watch)?;
        Ok(trie)
    }

    /// The trie from the last stored nodes up to the sealed block below the state; `None` if they
    /// are not recent or do not lead to its root.
    fn begun_at_nodes(
        view: &View,
        base: u64,
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<Option<Self>> {
        let heads = view.heads();
        let Some(first) =
            heads.nodes.filter(|first| (*first..=first + MOST_REPLAYED).contains(&base))
        else {
            return Ok(None);
        };
        let stored = StoredNodes::at(view, first);
        let mut trie = Self::at_root(root_of(&stored, heads.anchor)?, stored, first);
        let mut changes = Changes::default();
        for block in first + 1..=base {
            let sealed = view.sealed(block)?.ok_or(Error::UnknownBlock(block))?;
            changes.merge(changes_of(view, &view.state(block - 1)?, sealed.delta, watch)?);
        }
        trie.apply_known(&changes, watch)?;
        let leads_there = match root {
            Some(root) => trie.root()? == root,
            None => true,
        };
        Ok(leads_there.then_some(trie))
    }
}

impl State {
    /// Proves above a partial base; `MissingTrieNodes` if nodes are unknown.
    pub(super) fn prove_partial(
        &self,
        address: &Address,
        slots: &[U256],
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<Proof> {
        let mut trie = BranchTrie::open_partial(self, root, watch)?;
        let proof = self.prove_in(&mut trie, address, slots, watch);
        proof.map_err(|failed| trie.missing(failed, address, slots))
    }

    fn prove_in(
        &self,
        trie: &mut BranchTrie,
        address: &Address,
        slots: &[U256],
        watch: &mut Watch,
    ) -> Result<Proof> {
        let account = match self.account(address) {
            // No block has touched it, so it has the generation of the base.
            Err(Error::StateMissing(_)) => {
                let anchor = self.lease().heads.anchor;
                trie.account(address, anchor.map_or(0, |anchor| anchor.generation))?
            }
            known => known?,
        };
        let (account_nodes, storage_root, ways) =
            trie.prove(address, account.as_ref(), slots, watch)?;
        let value = |slot| match &account {
            Some(account) => match self.storage(address, account.generation, slot) {
                Err(Error::StateMissing(_)) => trie.slot(address, account.generation, slot),
                known => known,
            },
            None => Ok(U256::ZERO),
        };
        let values: Vec<_> = slots.iter().map(value).collect::<Result<_>>()?;
        let slots = values.into_iter().zip(ways).collect();
        Ok(Proof { account, account_nodes, storage_root, slots })
    }
}
