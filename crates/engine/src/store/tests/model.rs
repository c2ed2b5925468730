//! A plain model of state: a full copy for every block and partial.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};

use crate::error::Error;
use crate::state::{AccountChange, AccountState, Changes, StateReader};
use crate::store::{BranchTrie, State};

pub const ADDRESSES: u8 = 5;
pub const SLOTS: u64 = 3;

pub fn address(which: u8) -> Address {
    Address::from_slice(&keccak256([which % ADDRESSES])[..20])
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Everything {
    pub accounts: BTreeMap<Address, (AccountState, BTreeMap<U256, U256>)>,
    pub index: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Debug)]
pub struct Touch {
    pub who: u8,
    pub what: What,
    pub slot: u64,
    pub value: u8,
}

#[derive(Clone, Copy, Debug)]
pub enum What {
    Balance,
    Slot,
    Clear,
    Destroy,
    Recreate,
    Empty,
}

impl Everything {
    pub fn root(&self) -> B256 {
        state_root_unhashed(self.accounts.iter().map(|(address, (account, slots))| {
            let AccountState { nonce, balance, code_hash, .. } = *account;
            (*address, TrieAccount::new(nonce, balance, storage_root(slots), code_hash))
        }))
    }

    /// Applies touches one by one, each as a transaction with its own number, and returns the
    /// merged changes.
    pub fn change(&mut self, touches: &[Touch], mut draw: impl FnMut() -> u64) -> Changes {
        let mut all = Changes::default();
        for touch in touches {
            let number = draw();
            let address = address(touch.who);
            let before = self.accounts.get(&address).cloned();
            let after = touch.apply(before.clone(), number);
            let slots = changed_slots(before.as_ref(), after.as_ref());
            match &after {
                Some(account) => self.accounts.insert(address, account.clone()),
                None => self.accounts.remove(&address),
            };
            let change =
                AccountChange { before: before.map(|it| it.0), after: after.map(|it| it.0), slots };
            if change.before != change.after || !change.slots.is_empty() {
                let one = Changes { accounts: [(address, change)].into(), ..Changes::default() };
                all.merge(one);
            }
        }
        all
    }
}

pub fn storage_root(slots: &BTreeMap<U256, U256>) -> B256 {
    storage_root_unhashed(slots.iter().map(|(slot, value)| (B256::from(*slot), *value)))
}

pub type Whole = (AccountState, BTreeMap<U256, U256>);

impl Touch {
    fn apply(&self, before: Option<Whole>, number: u64) -> Option<Whole> {
        let fresh =
            || (AccountState { generation: number, ..AccountState::EMPTY }, BTreeMap::new());
        let (slot, value) = (U256::from(self.slot), U256::from(self.value) + U256::from(1));
        match self.what {
            What::Destroy => None,
            What::Empty => {
                let (account, slots) = before.unwrap_or_else(fresh);
                let generation = account.generation;
                Some((AccountState { generation, ..AccountState::EMPTY }, slots))
            }
            What::Recreate => {
                let (mut account, mut slots) = fresh();
                account.nonce = 1;
                slots.insert(slot, value);
                Some((account, slots))
            }
            What::Balance => {
                let (mut account, slots) = before.unwrap_or_else(fresh);
                account.balance += value;
                account.nonce += 1;
                Some((account, slots))
            }
            What::Slot | What::Clear => {
                let (mut account, mut slots) = before.unwrap_or_else(fresh);
                account.nonce += 1;
                match self.what {
                    What::Slot => slots.insert(slot, value),
                    _ => slots.remove(&slot),
                };
                Some((account, slots))
            }
        }
    }
}

pub fn changed_slots(before: Option<&Whole>, after: Option<&Whole>) -> BTreeMap<U256, U256> {
    let Some((account, slots)) = after else { return BTreeMap::new() };
    let old = before.filter(|it| it.0.generation == account.generation);
    let old = old.map(|it| it.1.clone()).unwrap_or_default();
    let keys = slots.keys().chain(old.keys());
    let value = |of: &BTreeMap<U256, U256>, key: &U256| of.get(key).copied().unwrap_or_default();
    keys.filter(|key| value(slots, key) != value(&old, key))
        .map(|key| (*key, value(slots, key)))
        .collect()
}

pub fn row_of(hash: B256) -> BTreeMap<Vec<u8>, Vec<u8>> {
    BTreeMap::from([(hash.to_vec(), vec![hash[31]])])
}

pub fn compare(found: &State, expected: &Everything) {
    for which in 0..ADDRESSES {
        let address = address(which);
        let account = found.account(&address).unwrap();
        let whole = expected.accounts.get(&address);
        assert_eq!(account, whole.map(|it| it.0), "{address}");
        let Some((account, slots)) = whole else { continue };
        for slot in (0..SLOTS).map(U256::from) {
            let value = found.storage(&address, account.generation, &slot).unwrap();
            assert_eq!(value, slots.get(&slot).copied().unwrap_or_default());
        }
        let listed = found.slots(&address, account.generation, None, 100).unwrap();
        assert_eq!(listed, slots.clone().into_iter().collect::<Vec<_>>());
    }
    let listed = found.accounts(None, 100).unwrap();
    let all = expected.accounts.iter().map(|(address, whole)| (*address, whole.0));
    assert_eq!(listed, all.collect::<Vec<_>>());
    for (key, value) in &expected.index {
        assert_eq!(found.index(key).unwrap().as_ref(), Some(value));
    }
}

/// The trie of any state has the root of the plain state, unless its nodes are pruned; then it can
/// be rebuilt from the state.
pub fn check_branch(found: &State, state: &Everything, may_be_gone: bool) {
    match BranchTrie::open(found) {
        Ok(mut trie) => assert_eq!(trie.root().unwrap(), state.root()),
        Err(Error::PrunedState { .. }) => assert!(may_be_gone),
        Err(other) => panic!("{other}"),
    }
    assert_eq!(BranchTrie::rebuild(found).unwrap().root().unwrap(), state.root());
}
