//! Proofs at every retained state, by every method: alloy verifies them against the root of the
//! plain state.

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_trie::proof::verify_proof;
use alloy_trie::{EMPTY_ROOT_HASH, TrieAccount};

use super::model::{ADDRESSES, Everything, SLOTS, address, storage_root};
use crate::deadline::{Limits, Watch};
use crate::error::Error;
use crate::store::{Proof, State, flat_proof};
use crate::trie::leaf::{account_key, slot_key};

/// One more slot than any account has.
fn slots() -> Vec<U256> {
    (0..=SLOTS).map(U256::from).collect()
}

pub fn check(found: &State, state: &Everything) {
    for which in 0..ADDRESSES {
        check_account(found, state, &address(which));
    }
    check_account(found, state, &Address::repeat_byte(7));
}

fn check_account(found: &State, state: &Everything, address: &Address) {
    let proof = found.prove(address, &slots(), Limits::default()).unwrap();
    verify(&proof, state, address);
    // With an unwind limit of zero, and with passes of one leaf.
    let flat = found.prove_by(address, &slots(), Limits::default(), 0).unwrap();
    assert_eq!(flat, proof);
    let in_passes =
        flat_proof::prove_holding(found, address, &slots(), &mut Watch::default(), 1).unwrap();
    let slot_nodes = proof.slots.iter().map(|(_, nodes)| nodes.clone()).collect();
    assert_eq!(in_passes, (proof.account_nodes, proof.storage_root, slot_nodes));
}

fn verify(proof: &Proof, state: &Everything, address: &Address) {
    let whole = state.accounts.get(address);
    assert_eq!(proof.account, whole.map(|(account, _)| *account));
    let root = whole.map_or(EMPTY_ROOT_HASH, |(_, slots)| storage_root(slots));
    assert_eq!(proof.storage_root, root);
    let leaf = whole.map(|(account, _)| {
        let leaf = TrieAccount::new(account.nonce, account.balance, root, account.code_hash);
        alloy_rlp::encode(leaf)
    });
    verify_nodes(state.root(), account_key(address), leaf, &proof.account_nodes);
    for (slot, (value, nodes)) in slots().iter().zip(&proof.slots) {
        let held = whole.and_then(|(_, slots)| slots.get(slot)).copied();
        assert_eq!(*value, held.unwrap_or_default());
        verify_nodes(root, slot_key(slot), held.map(alloy_rlp::encode), nodes);
    }
}

fn verify_nodes(root: B256, key: alloy_trie::Nibbles, leaf: Option<Vec<u8>>, nodes: &[Vec<u8>]) {
    let nodes: Vec<Bytes> = nodes.iter().cloned().map(Bytes::from).collect();
    verify_proof(root, key, leaf, &nodes).unwrap();
}

#[test]
fn a_proof_stops_at_its_deadline() {
    use super::history::History;
    use super::model::{Touch, What};
    use crate::store::Retention;

    let mut history = History::new(Retention { states: None, partials: 1, nodes: 1 });
    for value in 0..8 {
        history.append(&[Touch { who: 0, what: What::Slot, slot: 1, value }], false);
        history.check_root();
        while history.maintain(50) > 0 {}
    }
    let view = history.store().view().unwrap();
    let over = Limits { deadline: Some(std::time::Instant::now()), ..Limits::default() };
    let in_place =
        Limits { step: Some(std::time::Duration::from_micros(100)), ..Limits::default() };
    let old = view.state(2).unwrap();
    let late = old.prove(&address(0), &slots(), over);
    assert_eq!(late, Err(Error::DeadlineExceeded));
    // In place, an old state is not proven; a recent one is.
    assert_eq!(old.prove(&address(0), &[], in_place.clone()), Err(Error::DeadlineExceeded));
    assert!(view.state(8).unwrap().prove(&address(0), &[], in_place).is_ok());
}
