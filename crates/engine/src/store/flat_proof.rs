//! Proofs without stored nodes: hashes every leaf of a state with bounded memory.
//!
//! A trie is built from leaves in the order of their hashed keys, but a state lists them in the
//! order of their plain keys. So the state is scanned in passes, each of which collects the leaves
//! with the lowest hashes above those of the previous pass. A state that can be hashed within the
//! deadline of a request takes one pass.

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles};

use super::state::State;
use crate::deadline::Watch;
use crate::error::Result;
use crate::state::{AccountState, StateReader};
use crate::trie::bulk_root::BulkRoot;
use crate::trie::leaf::{account_key, encode_account, encode_slot, slot_key};
use crate::trie::proof::{PathNodes, ProofNodes};

/// The number of leaves held per pass, up to twice as many while scanning: addresses or slot values
/// with their hashes, at most 64 bytes each.
const HELD: usize = 1 << 18;
/// Leaves read per call.
const PORTION: usize = 1024;
/// Estimated time of reading a leaf and hashing its key.
const LEAF_NS: u64 = 4_000;

/// The nodes on the path to the account, its storage root, and the nodes on the paths to its slots.
pub fn prove(
    state: &State,
    address: &Address,
    slots: &[U256],
    watch: &mut Watch,
) -> Result<(ProofNodes, B256, Vec<ProofNodes>)> {
    prove_holding(state, address, slots, watch, HELD)
}

pub(super) fn prove_holding(
    state: &State,
    address: &Address,
    slots: &[U256],
    watch: &mut Watch,
    held: usize,
) -> Result<(ProofNodes, B256, Vec<ProofNodes>)> {
    let slot_keys: Vec<_> = slots.iter().map(slot_key).collect();
    let mut to_account = PathNodes::to([account_key(address)]);
    let mut to_slots = PathNodes::to(slot_keys.iter().copied());
    let mut storage_root = EMPTY_ROOT_HASH;
    let mut trie = BulkRoot::new(|path: &Nibbles, node: &[u8]| {
        to_account.offer(path, node);
        Ok(())
    });
    in_order(
        held,
        watch,
        |watch, take| scan_accounts(state, watch, take),
        |watch, hash, each: Address| {
            let Some(account) = state.account(&each)? else { return Ok(()) };
            let wanted = if each == *address { Some(&mut to_slots) } else { None };
            let root = hash_storage(state, &each, &account, wanted, watch, held)?;
            if each == *address {
                storage_root = root;
            }
            trie.push(Nibbles::unpack(hash), &encode_account(&account, root))
        },
    )?;
    trie.finish()?;
    let slot_nodes = slot_keys.iter().map(|key| to_slots.nodes(key)).collect();
    Ok((to_account.nodes(&account_key(address)), storage_root, slot_nodes))
}

pub(super) type Take<'a, T> = dyn FnMut(B256, T) + 'a;

/// Passes all leaves to `give` in the order of their hashes; `scan` may list them in any order.
pub(super) fn in_order<T: Copy>(
    held: usize,
    watch: &mut Watch,
    scan: impl Fn(&mut Watch, &mut Take<'_, T>) -> Result<()>,
    mut give: impl FnMut(&mut Watch, B256, T) -> Result<()>,
) -> Result<()> {
    let mut given: Option<B256> = None;
    loop {
        let mut leaves: Vec<(B256, T)> = Vec::new();
        let mut left_out: Option<B256> = None;
        scan(watch, &mut |hash, leaf| {
            let due = given.is_none_or(|given| hash > given);
            if !due || left_out.is_some_and(|lowest| hash >= lowest) {
                return;
            }
            leaves.push((hash, leaf));
            if leaves.len() > 2 * held {
                leaves.select_nth_unstable_by_key(held, |(hash, _)| *hash);
                left_out = Some(leaves[held].0);
                leaves.truncate(held);
            }
        })?;
        leaves.sort_unstable_by_key(|(hash, _)| *hash);
        given = leaves.last().map(|(hash, _)| *hash);
        for (hash, leaf) in leaves {
            give(watch, hash, leaf)?;
        }
        if left_out.is_none() {
            return Ok(());
        }
    }
}

pub(super) fn scan_accounts(
    state: &State,
    watch: &mut Watch,
    take: &mut Take<'_, Address>,
) -> Result<()> {
    let mut after = None;
    loop {
        let accounts = state.accounts(after.as_ref(), PORTION)?;
        for (address, _) in &accounts {
            watch.step(LEAF_NS)?;
            take(keccak256(address), *address);
        }
        after = accounts.last().map(|(address, _)| *address);
        if accounts.len() < PORTION {
            return Ok(());
        }
    }
}

fn scan_slots(
    state: &State,
    address: &Address,
    generation: u64,
    watch: &mut Watch,
    take: &mut Take<'_, U256>,
) -> Result<()> {
    let mut after = None;
    loop {
        let slots = state.slots(address, generation, after.as_ref(), PORTION)?;
        for (slot, value) in &slots {
            watch.step(LEAF_NS)?;
            take(keccak256(slot.to_be_bytes::<32>()), *value);
        }
        after = slots.last().map(|(slot, _)| *slot);
        if slots.len() < PORTION {
            return Ok(());
        }
    }
}

pub(super) fn hash_storage(
    state: &State,
    address: &Address,
    account: &AccountState,
    mut wanted: Option<&mut PathNodes>,
    watch: &mut Watch,
    held: usize,
) -> Result<B256> {
    watch.step(LEAF_NS)?;
    let mut trie = BulkRoot::new(|path: &Nibbles, node: &[u8]| {
        if let Some(way) = &mut wanted {
            way.offer(path, node);
        }
        Ok(())
    });
    in_order(
        held,
        watch,
        |watch, take| scan_slots(state, address, account.generation, watch, take),
        |_, hash, value| match encode_slot(&value) {
            Some(leaf) => trie.push(Nibbles::unpack(hash), &leaf),
            None => Ok(()),
        },
    )?;
    trie.finish()
}
