//! Compares witnesses, complete and incomplete, with plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_trie::{
    Nibbles, TrieAccount,
    nodes::{ExtensionNodeRef, RlpNode},
    root::{state_root_unhashed, storage_root_unhashed},
};
use proptest::{collection::btree_map, prelude::*};

use super::*;
use crate::codec::header::{Fields, Header};
use crate::error::Error;
use crate::state::{AccountChange, AccountState, Changes};
use crate::trie::leaf::{account_key, encode_account, encode_slot, slot_key};
use crate::trie::{NodeReader, Owner, Rows, Trie, tests::Table};

type Slots = BTreeMap<U256, U256>;
type Model = BTreeMap<Address, (u64, Slots)>;

fn account(nonce: u64) -> AccountState {
    AccountState { nonce, ..AccountState::EMPTY }
}

/// All nodes of the state.
fn nodes_of(model: &Model) -> Vec<Bytes> {
    rows_of(model).0.into_values().map(Bytes::from).collect()
}

fn rows_of(model: &Model) -> Table {
    let mut table = Table::default();
    let mut leaves = BTreeMap::new();
    for (address, (nonce, slots)) in model {
        let owner = Owner::Storage { address: *address, generation: 0 };
        let slots =
            slots.iter().filter_map(|(slot, value)| Some((slot_key(slot), encode_slot(value)?)));
        let root = table.build(&owner, &slots.collect());
        leaves.insert(account_key(address), encode_account(&account(*nonce), root));
    }
    table.build(&Owner::Accounts, &leaves);
    table
}

/// The proof nodes of some accounts and of some of their slots.
fn prove(model: &Model, keys: impl IntoIterator<Item = (Address, Vec<U256>)>) -> Vec<Bytes> {
    let table = rows_of(model);
    let rows = |owner| Rows { owner, nodes: &table };
    let mut proven = Vec::new();
    for (address, slots) in keys {
        let mut accounts = Trie::open(root_of(model));
        proven.extend(accounts.prove(&account_key(&address), &rows(Owner::Accounts)).unwrap());
        let Some((_, known)) = model.get(&address) else { continue };
        let set = known.iter().filter(|(_, value)| !value.is_zero());
        let root = storage_root_unhashed(set.map(|(slot, value)| (B256::from(*slot), *value)));
        let owner = Owner::Storage { address, generation: 0 };
        for slot in slots {
            let mut trie = Trie::open(root);
            proven.extend(trie.prove(&slot_key(&slot), &rows(owner)).unwrap());
        }
    }
    proven.into_iter().map(Bytes::from).collect()
}

fn root_of(model: &Model) -> B256 {
    let leaf = |(address, (nonce, slots)): (&Address, &(u64, Slots))| {
        let set = slots.iter().filter(|(_, value)| !value.is_zero());
        let root = storage_root_unhashed(set.map(|(slot, value)| (B256::from(*slot), *value)));
        let AccountState { balance, code_hash, .. } = AccountState::EMPTY;
        (*address, TrieAccount::new(*nonce, balance, root, code_hash))
    };
    state_root_unhashed(model.iter().map(leaf))
}

fn witness_of(model: &Model, texts: Vec<Bytes>) -> Witness {
    let fields = Fields { state_root: root_of(model), number: 7, ..Fields::default() };
    Witness::new(&Header::new(fields).unwrap(), texts)
}

/// The changes from one state to another; remaining accounts keep their generation.
fn changes(from: &Model, to: &Model) -> Changes {
    let mut changes = Changes::default();
    for (address, (nonce, slots)) in to {
        let before = from.get(address).map(|(nonce, _)| account(*nonce));
        let generation = u64::from(before.is_none());
        let after = Some(AccountState { generation, ..account(*nonce) });
        let nothing = Slots::new();
        let former = from.get(address).map_or(&nothing, |(_, slots)| slots);
        let set = slots.iter().filter(|(slot, value)| former.get(*slot) != Some(*value));
        let cleared = former.keys().filter(|slot| !slots.contains_key(*slot));
        let slots = set.map(|(slot, value)| (*slot, *value));
        let slots = slots.chain(cleared.map(|slot| (*slot, U256::ZERO))).collect();
        changes.accounts.insert(*address, AccountChange { before, after, slots });
    }
    for (address, (nonce, _)) in from.iter().filter(|(address, _)| !to.contains_key(*address)) {
        let before = Some(account(*nonce));
        changes.accounts.insert(*address, AccountChange { before, ..Default::default() });
    }
    changes
}

fn states() -> impl Strategy<Value = Model> {
    let small = |most: u64| (0..most).prop_map(U256::from);
    let slots = btree_map(small(24), (1u64..4).prop_map(U256::from), 0..12);
    let address = (0u8..24).prop_map(Address::with_last_byte);
    btree_map(address, (0u64..3, slots), 0..16)
}

fn run(witness: &Witness, changes: &Changes) -> crate::error::Result<B256> {
    let mut trie = witness.trie();
    trie.apply(changes)?;
    trie.root()
}

proptest! {
    #[test]
    fn a_whole_witness_reads_and_hashes_as_the_state(from in states(), to in states()) {
        let witness = witness_of(&from, nodes_of(&from));
        let state = witness.state();
        for number in 0..24 {
            let address = Address::with_last_byte(number);
            let known = from.get(&address);
            let expected = known.map(|(nonce, _)| account(*nonce));
            prop_assert_eq!(state.account(&address), Ok(expected));
            for slot in (0..24).map(U256::from) {
                let value = known.and_then(|(_, slots)| slots.get(&slot)).copied();
                prop_assert_eq!(state.storage(&address, 0, &slot), Ok(value.unwrap_or_default()));
                prop_assert_eq!(state.storage(&address, 1, &slot), Ok(U256::ZERO));
            }
        }
        prop_assert_eq!(run(&witness, &changes(&from, &to)), Ok(root_of(&to)));
    }

    #[test]
    fn a_node_that_is_not_there_is_named_and_nothing_is_guessed(
        from in states(), to in states(), chosen in any::<prop::sample::Index>(),
    ) {
        let mut texts = nodes_of(&from);
        prop_assume!(!texts.is_empty());
        let gone = keccak256(texts.remove(chosen.index(texts.len())));
        let found = run(&witness_of(&from, texts), &changes(&from, &to));
        match found {
            Ok(root) => prop_assert_eq!(root, root_of(&to)),
            Err(Error::MissingNode(_)) => {}
            Err(other) => prop_assert!(false, "without {gone} it fails with {other}"),
        }
    }
}

proptest! {
    /// Only the paths of changed keys are known, because these keys were read before.
    #[test]
    fn proofs_before_and_after_a_block_are_enough(from in states(), to in states()) {
        let changes = changes(&from, &to);
        let touched = || changes.accounts.iter().map(|(address, change)| {
            (*address, change.slots.keys().copied().collect())
        });
        let mut nothing = witness_of(&from, Vec::new()).trie();
        let needed = nothing.needs(&changes).unwrap();
        prop_assert_eq!(needed.before.is_empty(), from.is_empty() || changes.accounts.is_empty());
        nothing.fill(&prove(&from, touched()), None);
        prop_assert_eq!(nothing.needs(&changes).unwrap().before.len(), 0);

        let mut trie = witness_of(&from, prove(&from, touched())).trie();
        let needed = trie.needs(&changes).unwrap();
        prop_assert_eq!(needed.before.len(), 0);
        if !needed.is_empty() {
            let mut lacking = witness_of(&from, prove(&from, touched())).trie();
            let failed = lacking.apply(&changes).and_then(|()| lacking.root());
            prop_assert!(matches!(failed, Err(Error::MissingNode(_))));
        }
        let after = needed.after.into_iter();
        let after = after.map(|(address, slots)| (address, slots.into_iter().collect()));
        trie.fill(&prove(&to, after), Some(root_of(&to)));
        prop_assert!(trie.needs(&changes).unwrap().is_empty());
        trie.apply(&changes).unwrap();
        prop_assert_eq!(trie.root(), Ok(root_of(&to)));
    }
}

/// A slot with an unknown sibling is cleared. The sibling is a leaf, or a branch of two.
#[test]
fn an_extension_that_no_root_leads_to_tells_nothing() {
    let digit = |slot: u64| slot_key(&U256::from(slot)).get(0).unwrap();
    let stays = (1..).find(|slot| digit(*slot) != digit(0)).unwrap();
    let twin = (stays + 1..).find(|slot| digit(*slot) == digit(stays)).unwrap();
    let slots = |set: &[u64]| set.iter().map(|slot| (U256::from(*slot), U256::MAX)).collect();
    let state = |set: &[u64]| Model::from([(Address::ZERO, (1, slots(set)))]);
    for beside in [vec![stays], vec![stays, twin]] {
        let (from, to) = (state(&[&[0], &beside[..]].concat()), state(&beside));
        let changes = changes(&from, &to);
        let run = |nodes: &[Bytes], after| {
            let mut trie =
                witness_of(&from, prove(&from, [(Address::ZERO, vec![U256::ZERO])])).trie();
            trie.fill(nodes, after);
            trie.apply(&changes).and_then(|()| trie.root())
        };
        // The trie has a branch at its root, which contains the hash of the child.
        let table = rows_of(&from);
        let owner = Owner::Storage { address: Address::ZERO, generation: 0 };
        let path = Nibbles::from_nibbles([digit(stays)]);
        let child = keccak256(table.node(&owner, &path).unwrap().unwrap());
        let forged = alloy_rlp::encode(ExtensionNodeRef::new(&path, &RlpNode::word_rlp(&child)));
        for after in [None, Some(root_of(&to))] {
            let found = run(&[forged.clone().into()], after);
            assert!(matches!(found, Err(Error::MissingNode(_))), "{found:?}");
        }
        let proof = prove(&to, [(Address::ZERO, vec![U256::ZERO])]);
        assert_eq!(run(&proof, Some(root_of(&to))), Ok(root_of(&to)));
    }
}

/// One of two children of a branch is replaced by a new one. The other child is unknown.
#[test]
fn a_slot_that_replaces_another_needs_no_sibling() {
    // Slots whose hashes all differ in their first nibble.
    let digit = |slot: u64| slot_key(&U256::from(slot)).get(0);
    let (gone, stays) = (0, (1..).find(|slot| digit(*slot) != digit(0)).unwrap());
    let comes = (stays + 1..).find(|slot| digit(*slot) != digit(0) && digit(*slot) != digit(stays));
    let slots = |set: &[u64]| set.iter().map(|slot| (U256::from(*slot), U256::MAX)).collect();
    let state = |set: &[u64]| Model::from([(Address::ZERO, (1, slots(set)))]);
    let (from, to) = (state(&[gone, stays]), state(&[stays, comes.unwrap()]));
    let mut leaf = Vec::new();
    let key = slot_key(&U256::from(stays)).slice(1..);
    let value = encode_slot(&U256::MAX).unwrap();
    alloy_rlp::Encodable::encode(&alloy_trie::nodes::LeafNodeRef::new(&key, &value), &mut leaf);
    let texts: Vec<_> = nodes_of(&from).into_iter().filter(|text| **text != leaf[..]).collect();
    assert_eq!(texts.len(), nodes_of(&from).len() - 1);
    let witness = witness_of(&from, texts);
    assert_eq!(run(&witness, &changes(&from, &to)), Ok(root_of(&to)));

    let alone = state(&[stays]);
    let Err(Error::MissingNode(missing)) = run(&witness, &changes(&from, &alone)) else { panic!() };
    assert_eq!(missing.owner, Owner::Storage { address: Address::ZERO, generation: 0 });
    assert_eq!(missing.path.len(), 1);
}

fn chain(length: u64) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    for number in 0..length {
        let parent_hash = headers.last().map(Header::hash).unwrap_or_default();
        let fields = Fields { number, parent_hash, ..Fields::default() };
        headers.push(Header::new(fields).unwrap());
    }
    headers
}

#[test]
fn hashes_of_blocks_follow_from_headers() {
    let headers = chain(6);
    let texts = |from: usize| headers[from..5].iter().map(Header::encode).collect();
    let state = Witness::new(&headers[5], texts(2)).state();
    for number in [1, 3, 5] {
        assert_eq!(state.block_hash(number), Ok(headers[number as usize].hash()));
    }
    assert_eq!(state.block_hash(6), Ok(B256::ZERO));
    assert_eq!(state.block_hash(0), Err(Error::MissingHeader(0)));
    let broken = Witness::new(&headers[5], vec![headers[3].encode(), headers[2].encode()]).state();
    assert_eq!(broken.block_hash(4), Ok(headers[4].hash()));
    assert_eq!(broken.block_hash(2), Err(Error::MissingHeader(2)));
}

#[test]
fn code_comes_from_the_witness_alone() {
    let code = Bytes::from_static(&[0x60, 0x00]);
    let (with, without) = (vec![code.clone()], Vec::new());
    let header = &chain(1)[0];
    let hash = keccak256(&code);
    assert_eq!(Witness::new(header, with).state().code(&hash), Ok(code));
    let lacking = Witness::new(header, without).state();
    assert_eq!(lacking.code(&hash), Err(Error::MissingCode(hash)));
    assert!(!lacking.shares_codes());
}
