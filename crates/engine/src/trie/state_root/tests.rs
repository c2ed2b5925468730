//! Compares the incremental state root with a plain map of accounts and slots.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{KECCAK256_EMPTY, U256, address, keccak256};
use alloy_trie::{
    TrieAccount,
    root::{state_root_unhashed, storage_root_unhashed},
};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
};

use super::*;
use crate::trie::{LayeredNodes, node_key, owner_prefix, tests::Table};

type Slots = BTreeMap<U256, U256>;

/// All accounts with all their slots.
#[derive(Debug, Clone, Default)]
struct Plain(BTreeMap<Address, (AccountState, Slots)>);

impl Plain {
    fn storage_root(&self, address: &Address) -> B256 {
        let slots = self.0.get(address).into_iter().flat_map(|(_, slots)| slots);
        storage_root_unhashed(slots.map(|(slot, value)| (B256::from(*slot), *value)))
    }

    fn root(&self) -> B256 {
        state_root_unhashed(self.0.iter().map(|(address, (account, _))| {
            let AccountState { nonce, balance, code_hash, .. } = *account;
            let storage_root = self.storage_root(address);
            (*address, TrieAccount::new(nonce, balance, storage_root, code_hash))
        }))
    }

    /// All rows of all tries, built in bulk.
    fn table(&self) -> Table {
        let mut table = Table::default();
        let mut accounts = BTreeMap::new();
        for (address, (account, slots)) in &self.0 {
            let owner = Owner::Storage { address: *address, generation: account.generation };
            let leaf = |(slot, value)| (slot_key(slot), encode_slot(value).unwrap());
            let root = table.build(&owner, &slots.iter().map(leaf).collect());
            accounts.insert(account_key(address), encode_account(account, root));
        }
        table.build(&Owner::Accounts, &accounts);
        table
    }

    /// Applies the edit and returns the change.
    fn edit(&mut self, address: Address, edit: &Edit, number: u64) -> AccountChange {
        let before = self.0.get(&address).map(|(account, _)| *account);
        match edit {
            Edit::Destroy => {
                self.0.remove(&address);
                AccountChange { before, ..AccountChange::default() }
            }
            Edit::Touch { balance, slots } => self.change(address, *balance, slots, number),
            Edit::Recreate { balance, slots } => {
                self.0.remove(&address);
                let change = self.change(address, *balance, slots, number);
                AccountChange { before, ..change }
            }
        }
    }

    fn change(
        &mut self,
        address: Address,
        balance: u64,
        slots: &BTreeMap<u64, u64>,
        number: u64,
    ) -> AccountChange {
        let before = self.0.get(&address).map(|(account, _)| *account);
        let new = AccountState { generation: number, ..AccountState::EMPTY };
        let (account, stored) = self.0.entry(address).or_insert((new, Slots::new()));
        account.balance = U256::from(balance);
        account.nonce += 1;
        let slots = slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value)));
        let change = AccountChange { before, after: Some(*account), slots: slots.collect() };
        stored.extend(&change.slots);
        stored.retain(|_, value| !value.is_zero());
        change
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Destroy,
    Touch { balance: u64, slots: BTreeMap<u64, u64> },
    Recreate { balance: u64, slots: BTreeMap<u64, u64> },
}

fn edit() -> impl Strategy<Value = Edit> {
    let slots = || btree_map(0u64..12, prop_oneof![Just(0), 1u64..4, Just(u64::MAX)], 0..6);
    let balance = || 0u64..1_000;
    prop_oneof![
        1 => Just(Edit::Destroy),
        4 => (balance(), slots()).prop_map(|(balance, slots)| Edit::Touch { balance, slots }),
        1 => (balance(), slots()).prop_map(|(balance, slots)| Edit::Recreate { balance, slots }),
    ]
}

#[derive(Debug, Clone)]
enum After {
    Nothing,
    Root,
    /// Take the writes as a new layer.
    Layer,
    /// Like `Layer`, and reopen the trie on top.
    Reopen,
    /// Write all layers to the table.
    Fold,
}

fn after() -> impl Strategy<Value = After> {
    prop_oneof![
        Just(After::Nothing),
        Just(After::Root),
        Just(After::Layer),
        Just(After::Reopen),
        Just(After::Fold),
    ]
}

fn account(index: u8) -> Address {
    Address::repeat_byte(index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_root_is_that_of_the_plain_state(
        rounds in vec((btree_map(0u8..24, edit(), 1..10), after(), 0u8..25), 1..16),
    ) {
        let mut plain = Plain::default();
        let mut table = Table::default();
        let mut layers: Vec<Arc<NodeWrites>> = Vec::new();
        let mut state = StateRoot::open(EMPTY_ROOT_HASH);
        for (number, (edits, after, asked)) in (1..).zip(rounds) {
            let mut changes = Changes::default();
            for (index, edit) in edits {
                let change = plain.edit(account(index), &edit, number);
                changes.accounts.insert(account(index), change);
            }
            {
                let nodes = LayeredNodes { layers: layers.clone(), base: table.clone() };
                state.apply(&changes, &nodes).unwrap();
                let asked = account(asked);
                let storage_root = state.storage_root(&asked, &nodes).unwrap();
                prop_assert_eq!(storage_root, plain.storage_root(&asked));
                match after {
                    After::Nothing => continue,
                    After::Root => {
                        prop_assert_eq!(state.root(&nodes).unwrap(), plain.root());
                        continue;
                    }
                    _ => layers.push(Arc::new(state.take_writes(&nodes).unwrap())),
                }
            }
            match after {
                After::Fold => {
                    layers.drain(..).for_each(|layer| table.write(&layer));
                    prop_assert_eq!(&table, &plain.table());
                }
                After::Reopen => state = StateRoot::open(plain.root()),
                _ => {}
            }
            let nodes = LayeredNodes { layers: layers.clone(), base: table.clone() };
            prop_assert_eq!(state.root(&nodes).unwrap(), plain.root());
            prop_assert!(state.take_writes(&nodes).unwrap() == NodeWrites::default());
        }
    }
}

const CONTRACT: Address = address!("0x4200000000000000000000000000000000000016");

fn contract(generation: u64) -> AccountState {
    AccountState { nonce: 1, generation, code_hash: keccak256([1]), ..AccountState::EMPTY }
}

fn changes(
    before: Option<AccountState>,
    after: Option<AccountState>,
    slots: &[(u64, u64)],
) -> Changes {
    let slots = slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect();
    let change = AccountChange { before, after, slots };
    Changes { accounts: BTreeMap::from([(CONTRACT, change)]), ..Changes::default() }
}

/// A stored state of a contract with three slots.
fn stored() -> (StateRoot, Table) {
    let mut table = Table::default();
    let mut state = StateRoot::open(EMPTY_ROOT_HASH);
    let creation = changes(None, Some(contract(1)), &[(1, 10), (2, 20), (3, 30)]);
    state.apply(&creation, &table).unwrap();
    table.write(&state.take_writes(&Table::default()).unwrap());
    let root = state.root(&table).unwrap();
    (StateRoot::open(root), table)
}

#[test]
fn a_balance_change_keeps_the_storage_root_without_reading_storage() {
    let (mut state, mut table) = stored();
    let storage_root = state.storage_root(&CONTRACT, &table).unwrap();
    assert_ne!(storage_root, EMPTY_ROOT_HASH);
    let storage = owner_prefix(&Owner::Storage { address: CONTRACT, generation: 1 });
    table.0.retain(|key, _| !key.starts_with(&storage));

    let richer = AccountState { balance: U256::from(7), ..contract(1) };
    state.apply(&changes(Some(contract(1)), Some(richer), &[]), &table).unwrap();
    let expected = TrieAccount::new(1, U256::from(7), storage_root, keccak256([1]));
    assert_eq!(state.root(&table), Ok(state_root_unhashed([(CONTRACT, expected)])));
    assert_eq!(state.storage_root(&CONTRACT, &table), Ok(storage_root));
}

#[test]
fn a_destroyed_account_retires_its_storage() {
    let (mut state, mut table) = stored();
    state.apply(&changes(Some(contract(1)), None, &[]), &table).unwrap();
    assert_eq!(state.storage_root(&CONTRACT, &table), Ok(EMPTY_ROOT_HASH));
    let writes = state.take_writes(&table).unwrap();
    assert_eq!(writes.retired, [Owner::Storage { address: CONTRACT, generation: 1 }]);
    table.write(&writes);
    assert_eq!(table, Table::default());
}

#[test]
fn a_life_that_ends_and_begins_again_under_one_number_is_not_retired() {
    let table = Table::default();
    let mut state = StateRoot::open(EMPTY_ROOT_HASH);
    state.apply(&changes(None, Some(contract(5)), &[(1, 1)]), &table).unwrap();
    state.root(&table).unwrap();
    state.apply(&changes(Some(contract(5)), None, &[]), &table).unwrap();
    state.apply(&changes(None, Some(contract(5)), &[(2, 2)]), &table).unwrap();
    let writes = state.take_writes(&table).unwrap();
    assert_eq!(writes.retired, []);
    let storage = storage_root_unhashed([(B256::from(U256::from(2)), U256::from(2))]);
    assert_eq!(state.storage_root(&CONTRACT, &table), Ok(storage));
    assert_eq!(writes.nodes.len(), 2); // The leaf of the slot and that of the account.
}

#[test]
fn an_existing_empty_account_is_in_the_root() {
    let mut state = StateRoot::open(EMPTY_ROOT_HASH);
    let table = Table::default();
    state.apply(&changes(None, Some(AccountState::EMPTY), &[]), &table).unwrap();
    let expected = TrieAccount::new(0, U256::ZERO, EMPTY_ROOT_HASH, KECCAK256_EMPTY);
    assert_eq!(state.root(&table), Ok(state_root_unhashed([(CONTRACT, expected)])));
}

#[test]
fn what_does_not_fit_the_stored_state_is_an_error() {
    let slot = changes(Some(contract(1)), Some(contract(1)), &[(1, 0)]);

    let (mut state, _) = stored();
    let failed = state.apply(&slot, &Table::default());
    assert!(matches!(failed, Err(Error::MissingNode(_))), "{failed:?}");

    let (mut state, mut table) = stored();
    let owner = Owner::Storage { address: CONTRACT, generation: 1 };
    table.0.remove(&node_key(&owner, &Nibbles::new()));
    let Err(Error::MissingNode(missing)) = state.apply(&slot, &table) else { panic!() };
    assert_eq!((missing.owner, missing.digits()), (owner, String::new()));

    let (mut state, table) = stored();
    state.apply(&slot, &table).unwrap();
    let other = changes(Some(contract(2)), Some(contract(2)), &[(1, 0)]);
    let failed = state.apply(&other, &table);
    assert!(matches!(failed, Err(Error::InvalidArgument(_))), "{failed:?}");

    let mut state = StateRoot::open(EMPTY_ROOT_HASH);
    state.apply(&changes(Some(contract(1)), Some(contract(1)), &[]), &table).unwrap();
    let failed = state.root(&table);
    assert!(matches!(failed, Err(Error::StoreDamaged(_))), "{failed:?}");
}
