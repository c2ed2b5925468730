//! The trie of a state above a partial base, as far as its nodes are known, and proofs of it.
//!
//! That of a sealed block begins at its root, which the caller has from its header: a proof
//! needs the path to its own key and nothing else. That of a block in progress needs the paths to
//! all that it changed. It begins at the last block whose nodes are stored, if that is one of
//! the last, and else at the sealed block below. What changed since is applied at once, as if it
//! were one block.
//!
//! Where nodes are missing, `MissingTrieNodes` names the keys whose proofs at that block have them
//! (`trie::paths`). Values that are not known come from the leaves.

use alloy_primitives::{Address, B256, U256};

use super::branch_trie::BranchTrie;
use super::head_trie::{changes_of, root_of};
use super::nodes::StoredNodes;
use super::proof::Proof;
use super::state::State;
use super::view::View;
use crate::error::{Error, Result};
use crate::evm::deadline::Watch;
use crate::state::{Changes, StateReader};
use crate::trie::{Keys, paths};

/// Blocks above the stored nodes that are replayed. With more the trie begins at the state's.
const MOST_REPLAYED: u64 = 16;

impl BranchTrie {
    /// `root` is that of the sealed block that the state is of, or stands on. Without it the
    /// stored nodes have to lead there.
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
        trie.replay_at_once(&changes, watch)?;
        Ok(trie)
    }

    /// From the last stored nodes to the sealed block below the state; none where they do not
    /// lead to its root.
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
        trie.replay_at_once(&changes, watch)?;
        let leads_there = match root {
            Some(root) => trie.root()? == root,
            None => true,
        };
        Ok(leads_there.then_some(trie))
    }
}

impl State {
    /// A proof above a partial base: `MissingTrieNodes`.
    pub(super) fn prove_partial(
        &self,
        address: &Address,
        slots: &[U256],
        root: Option<B256>,
        watch: &mut Watch,
    ) -> Result<Proof> {
        let mut trie = BranchTrie::open_partial(self, root, watch)?;
        let block = trie.begun_at.unwrap_or_default();
        self.prove_in(&mut trie, address, slots, watch).map_err(|failed| match failed {
            Error::MissingNode(_) => {
                paths::missing(block, Keys::from([(*address, slots.iter().copied().collect())]))
            }
            _ => failed,
        })
    }

    fn prove_in(
        &self,
        trie: &mut BranchTrie,
        address: &Address,
        slots: &[U256],
        watch: &mut Watch,
    ) -> Result<Proof> {
        let account = match self.account(address) {
            // No block has touched it, so the generation of the base is its own.
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
