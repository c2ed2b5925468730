//! Reads accounts and slots from tries with unknown nodes.
//!
//! The tries do not contain generations, so every account has generation 0. Loaded nodes are kept,
//! because adjacent keys share their upper nodes.

use std::cell::RefCell;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, map::AddressMap};

use crate::error::Result;
use crate::state::AccountState;
use crate::trie::leaf::{account_key, decode_account, decode_slot, slot_key};
use crate::trie::{NodeReader, Owner, Rows, Trie};

/// The generation of every account of a state without generations.
const ONLY_LIFE: u64 = 0;

pub(super) struct SparseState {
    nodes: Arc<dyn NodeReader + Send + Sync>,
    tries: RefCell<Tries>,
}

struct Tries {
    accounts: Trie,
    storage: AddressMap<Trie>,
}

impl SparseState {
    pub fn new(root: B256, nodes: Arc<dyn NodeReader + Send + Sync>) -> Self {
        let tries = Tries { accounts: Trie::open(root), storage: AddressMap::default() };
        Self { nodes, tries: RefCell::new(tries) }
    }

    pub fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        let found = self.tries.borrow_mut().account(address, &*self.nodes)?;
        Ok(found.map(|(account, _)| account))
    }

    pub fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256> {
        if generation != ONLY_LIFE {
            return Ok(U256::ZERO);
        }
        self.tries.borrow_mut().slot(address, slot, &*self.nodes)
    }
}

impl Tries {
    /// An account and its storage root.
    fn account(
        &mut self,
        address: &Address,
        nodes: &dyn NodeReader,
    ) -> Result<Option<(AccountState, B256)>> {
        let rows = Rows { owner: Owner::Accounts, nodes };
        let leaf = self.accounts.get(&account_key(address), &rows)?;
        leaf.map(|leaf| decode_account(leaf, ONLY_LIFE)).transpose()
    }

    fn slot(&mut self, address: &Address, slot: &U256, nodes: &dyn NodeReader) -> Result<U256> {
        if !self.storage.contains_key(address) {
            let Some((_, root)) = self.account(address, nodes)? else { return Ok(U256::ZERO) };
            self.storage.insert(*address, Trie::open(root));
        }
        let Some(trie) = self.storage.get_mut(address) else { return Ok(U256::ZERO) };
        let owner = Owner::Storage { address: *address, generation: ONLY_LIFE };
        let leaf = trie.get(&slot_key(slot), &Rows { owner, nodes })?;
        leaf.map_or(Ok(U256::ZERO), decode_slot)
    }
}
