//! Valid proofs, proofs damaged in every way, and the retention of values.

use std::collections::BTreeMap;

use alloy_trie::Nibbles;
use proptest::{collection::btree_map, prelude::*, sample::Index};

use super::*;
use crate::error::Error;
use crate::trie::leaf::{encode_account, encode_slot};
use crate::trie::tests::Table;
use crate::trie::{Owner, Rows, Trie};

fn address(which: u8) -> Address {
    Address::from_slice(&keccak256([which])[..20])
}

/// A trie with these leaves, which provides the nodes on the path of a key.
#[derive(Debug)]
struct Proven {
    table: Table,
    owner: Owner,
    root: B256,
}

impl Proven {
    fn new(owner: Owner, leaves: &BTreeMap<Nibbles, Vec<u8>>) -> Self {
        let mut table = Table::default();
        let root = table.build(&owner, leaves);
        Self { table, owner, root }
    }

    fn nodes(&self, key: &Nibbles) -> Vec<Bytes> {
        let rows = Rows { owner: self.owner, nodes: &self.table };
        let nodes = Trie::open(self.root).prove(key, &rows).unwrap();
        nodes.into_iter().map(Bytes::from).collect()
    }
}

#[derive(Debug)]
struct World {
    accounts: Proven,
    storage: Proven,
    states: BTreeMap<u8, AccountState>,
    slots: BTreeMap<u64, u64>,
}

/// All accounts have the same storage.
fn world(nonces: &BTreeMap<u8, u64>, slots: &BTreeMap<u64, u64>) -> World {
    let leaf = |(slot, value): (&u64, &u64)| {
        let leaf = encode_slot(&U256::from(*value))?;
        Some((slot_key(&U256::from(*slot)), leaf))
    };
    let owner = Owner::Storage { address: Address::ZERO, generation: 0 };
    let storage = Proven::new(owner, &slots.iter().filter_map(leaf).collect());
    let state = |nonce: &u64| AccountState { nonce: *nonce, ..AccountState::EMPTY };
    let states: BTreeMap<_, _> =
        nonces.iter().map(|(which, nonce)| (*which, state(nonce))).collect();
    let leaves = states.iter().map(|(which, account)| {
        (account_key(&address(*which)), encode_account(account, storage.root))
    });
    let accounts = Proven::new(Owner::Accounts, &leaves.collect());
    World { accounts, storage, states, slots: slots.clone() }
}

fn worlds() -> impl Strategy<Value = World> {
    (btree_map(any::<u8>(), 1..9u64, 0..40), btree_map(0..40u64, 0..3u64, 0..40))
        .prop_map(|(nonces, slots)| world(&nonces, &slots))
}

proptest! {
    #[test]
    fn a_proof_gives_what_the_trie_holds_and_no_other_key(
        world in worlds(),
        who in any::<u8>(),
        other in any::<u8>(),
        wanted in proptest::collection::vec(0..44u64, 0..4),
    ) {
        let root = world.accounts.root;
        let nodes = world.accounts.nodes(&account_key(&address(who)));
        let exists = world.states.contains_key(&who);
        let slot_nodes = |slot: &u64| match exists {
            true => world.storage.nodes(&slot_key(&U256::from(*slot))),
            false => Vec::new(),
        };
        let slots: Vec<SlotNodes> =
            wanted.iter().map(|slot| (U256::from(*slot), slot_nodes(slot))).collect();
        let learned = FetchedState::new(1, 1 << 20);
        let (account, values) = learned.prove(root, address(who), &nodes, &slots).unwrap();
        let expected = world.states.get(&who).copied();
        prop_assert_eq!(account, expected);
        prop_assert_eq!(learned.account(&address(who)), Some(expected));
        for (slot, value) in wanted.iter().zip(values) {
            let held = world.slots.get(slot).filter(|_| exists).copied().unwrap_or_default();
            prop_assert_eq!(value, U256::from(held));
            prop_assert_eq!(learned.slot(&address(who), &U256::from(*slot)), Some(value));
        }
        for node in &nodes {
            prop_assert_eq!(learned.node(&keccak256(node)), Some(node.clone()));
        }
        // The proof of one key is valid for another only if both are absent by the same nodes.
        let shown = FetchedState::new(1, 1 << 20).prove(root, address(other), &nodes, &[]);
        let own = world.accounts.nodes(&account_key(&address(other)));
        prop_assert_eq!(shown.is_ok(), own == nodes);
        if let Ok((account, _)) = shown {
            prop_assert_eq!(account, world.states.get(&other).copied());
        }
    }

    #[test]
    fn other_slots_follow_from_the_nodes_of_a_proof_and_are_learned_when_they_are_read(
        world in worlds(),
        who in any::<Index>(),
        proven in proptest::collection::vec(0..44u64, 1..4),
        keeps in any::<bool>(),
    ) {
        prop_assume!(!world.states.is_empty());
        let who = address(*world.states.keys().nth(who.index(world.states.len())).unwrap());
        let learned = FetchedState::new(1, 1 << 20);
        let learned = if keeps { learned } else { learned.without_nodes() };
        let nodes = world.accounts.nodes(&account_key(&who));
        let prove = |slots: &mut dyn Iterator<Item = u64>| {
            let slots: Vec<SlotNodes> = slots
                .map(|slot| U256::from(slot))
                .map(|slot| (slot, world.storage.nodes(&slot_key(&slot))))
                .collect();
            learned.prove(world.accounts.root, who, &nodes, &slots).unwrap();
        };
        prove(&mut proven.iter().copied());
        let held = |slot: u64| U256::from(world.slots.get(&slot).copied().unwrap_or_default());
        for slot in 0..60 {
            let before = learned.unstored();
            let Some(value) = learned.slot(&who, &U256::from(slot)) else { continue };
            prop_assert_eq!(value, held(slot));
            let is_new = usize::from(!proven.contains(&slot));
            prop_assert_eq!(learned.unstored(), before + is_new, "what was read is stored");
            prop_assert_eq!(learned.slot(&who, &U256::from(slot)), Some(value));
            prop_assert_eq!(learned.unstored(), before + is_new, "once");
        }
        prove(&mut world.slots.keys().copied());
        for slot in 0..60 {
            let value = learned.slot(&who, &U256::from(slot));
            prop_assert_eq!(value, Some(held(slot)), "every leaf was shown");
        }
    }

    #[test]
    fn what_was_damaged_is_refused_and_nothing_of_it_taken(
        world in worlds(),
        which in any::<Index>(),
        slot in 0..40u64,
        node in any::<Index>(),
        byte in any::<Index>(),
        bit in 0..8u8,
        kind in 0..5u8,
    ) {
        prop_assume!(!world.states.is_empty());
        let who = *world.states.keys().nth(which.index(world.states.len())).unwrap();
        let nodes = world.accounts.nodes(&account_key(&address(who)));
        let slot = U256::from(slot);
        let slot_nodes = world.storage.nodes(&slot_key(&slot));
        let mut lists = [nodes, slot_nodes];
        let damaged = usize::from(!lists[1].is_empty() && bit % 2 == 1);
        let list = &mut lists[damaged];
        let at = node.index(list.len());
        match kind {
            0 => {
                let mut bytes = list[at].to_vec();
                let place = byte.index(bytes.len());
                bytes[place] ^= 1 << bit;
                list[at] = bytes.into();
            }
            1 => { list.remove(at); }
            2 => list.push(list[at].clone()),
            3 => list[at] = list[at].slice(..list[at].len() - 1),
            _ => list[at] = Bytes::from(vec![0; 4096]),
        }
        let learned = FetchedState::new(1, 1 << 20);
        let [nodes, slot_nodes] = &lists;
        let proven =
            learned.prove(world.accounts.root, address(who), nodes, &[(slot, slot_nodes.clone())]);
        // Only an embedded node at the end may be listed separately.
        prop_assert!(matches!(proven, Err(Error::BadProof(_))), "{kind}: {proven:?}");
        prop_assert_eq!(learned.account(&address(who)), None);
        prop_assert_eq!(learned.slot(&address(who), &slot), None);
        prop_assert_eq!(learned.unstored(), 0);
    }
}

#[test]
fn an_empty_trie_proves_by_no_node_or_by_its_one() {
    for nodes in [vec![], vec![Bytes::from_static(&[0x80])]] {
        let learned = FetchedState::new(1, 1 << 20);
        let proven =
            learned.prove(EMPTY_ROOT_HASH, address(1), &nodes, &[(U256::ZERO, nodes.clone())]);
        assert_eq!(proven, Ok((None, vec![U256::ZERO])));
    }
}

#[test]
fn the_first_value_stays() {
    let learned = FetchedState::new(1, 1 << 20);
    let account = |nonce| Some(AccountState { nonce, ..AccountState::EMPTY });
    let slot = U256::from(7);
    assert_eq!((learned.account(&address(1)), learned.slot(&address(1), &slot)), (None, None));
    for nonce in [1, 2] {
        learned.put_account(address(1), account(nonce), None);
        learned.put_slots(address(1), [(slot, U256::from(nonce))]);
        learned.put_block(nonce, B256::with_last_byte(1));
        learned.put_block(1, B256::with_last_byte(nonce as u8));
    }
    assert_eq!(learned.account(&address(1)), Some(account(1)));
    assert_eq!(learned.slot(&address(1), &slot), Some(U256::from(1)));
    assert_eq!(learned.block(1), Some(B256::with_last_byte(1)));
    assert_eq!(learned.slot(&address(1), &U256::ZERO), None, "other slots are not known");
    learned.put_account(address(1), account(1), Some(EMPTY_ROOT_HASH));
    let waiting = learned.unstored();
    assert_eq!(learned.slot(&address(1), &U256::ZERO), Some(U256::ZERO), "it has none");
    assert_eq!(learned.unstored(), waiting + 1, "and a block may change that");
    let kept = learned.unstored();
    learned.put_account(address(1), account(3), Some(B256::ZERO));
    assert_eq!(learned.account(&address(1)), Some(account(1)), "a later root changes no account");
    assert_eq!(learned.slot(&address(1), &U256::from(3)), None, "its nodes are not known");
    assert_eq!(learned.slot(&address(1), &U256::ZERO), Some(U256::ZERO), "what was read is kept");
    assert_eq!(learned.unstored(), kept);
    learned.put_account(address(2), None, None);
    assert_eq!(learned.slot(&address(2), &slot), Some(U256::ZERO));
}

#[test]
fn another_epoch_knows_the_storage_that_is_the_same() {
    let world = world(&BTreeMap::from([(1, 1)]), &(0..9).map(|slot| (slot, slot + 1)).collect());
    let before = FetchedState::new(1, 1 << 20).without_nodes();
    let slots = (0..9).map(U256::from).map(|slot| (slot, world.storage.nodes(&slot_key(&slot))));
    let nodes = world.accounts.nodes(&account_key(&address(1)));
    let proven = before.prove(world.accounts.root, address(1), &nodes, &slots.collect::<Vec<_>>());
    let (account, _) = proven.unwrap();

    let after = FetchedState::new(2, 1 << 20).without_nodes();
    after.remember_nodes_of(&before);
    assert_eq!(after.unstored(), 0, "nodes are not stored");
    assert_eq!(after.slot(&address(1), &U256::ZERO), None, "its root may be another now");
    after.put_account(address(1), account, Some(world.storage.root));
    for slot in 0..12 {
        let held = if slot < 9 { slot + 1 } else { 0 };
        assert_eq!(after.slot(&address(1), &U256::from(slot)), Some(U256::from(held)));
    }
}

#[test]
fn it_is_bounded_and_keeps_what_is_to_be_stored() {
    let fill = |learned: &FetchedState, from: u64| {
        for number in from..from + 1000 {
            learned.put_code(Bytes::from(number.to_be_bytes().repeat(20)));
        }
    };
    let limit = 256 << 10;
    let forgets = FetchedState::new(1, limit);
    fill(&forgets, 0);
    assert!(forgets.bytes() <= limit + 1024, "{}", forgets.bytes());
    assert!(forgets.unstored() < 1000);

    let keeps = FetchedState::new(1, limit);
    assert_eq!(keeps.rows().0, []);
    fill(&keeps, 0);
    let (rows, came) = keeps.rows();
    assert_eq!((rows.len(), came), (1000, 1000), "nothing goes before it is stored");
    fill(&keeps, 1000);
    keeps.stored(came);
    keeps.stored(came);
    assert_eq!(keeps.unstored(), 1000, "only what was given out counts as stored");
    let (rows, came) = keeps.rows();
    assert_eq!((rows.len(), came), (1000, 2000));
    keeps.stored(came);
    keeps.put_block(1, B256::ZERO);
    assert_eq!(keeps.unstored(), 1);
    fill(&keeps, 2000);
    keeps.stored(keeps.rows().1);
    fill(&keeps, 3000);
    keeps.stored(keeps.rows().1);
    assert!(keeps.bytes() <= 4 * limit + (1 << 19), "{}", keeps.bytes());

    let stuck = FetchedState::new(1, limit);
    assert_eq!(stuck.rows().0, []);
    (0..20).for_each(|times| fill(&stuck, 1000 * times));
    assert!(stuck.bytes() <= (MOST_WAITING + 1) * limit, "{}", stuck.bytes());
    assert_eq!(stuck.block(7), None);
    stuck.put_block(7, B256::ZERO);
    assert_eq!(stuck.block(7), None, "nothing is learned that cannot be stored");
    stuck.stored(stuck.rows().1);
    stuck.put_block(7, B256::ZERO);
    assert_eq!(stuck.block(7), Some(B256::ZERO));
}
