//! The keys and values of the leaves of the state tries.

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_rlp::Decodable;
use alloy_trie::{Nibbles, TrieAccount};

use crate::{
    error::{Error, Result},
    state::AccountState,
    trie::keccak::hash_all,
};

pub fn account_key(address: &Address) -> Nibbles {
    Nibbles::unpack(keccak256(address))
}

pub fn slot_key(slot: &U256) -> Nibbles {
    Nibbles::unpack(keccak256(slot.to_be_bytes::<32>()))
}

/// The keys of several accounts, in order.
pub fn account_keys<'a>(addresses: impl Iterator<Item = &'a Address>) -> Vec<Nibbles> {
    let addresses: Vec<_> = addresses.collect();
    hash_all(&addresses).into_iter().map(Nibbles::unpack).collect()
}

/// The keys of several slots, in order.
pub fn slot_keys<'a>(slots: impl Iterator<Item = &'a U256>) -> Vec<Nibbles> {
    let slots: Vec<_> = slots.map(U256::to_be_bytes::<32>).collect();
    hash_all(&slots).into_iter().map(Nibbles::unpack).collect()
}

/// `rlp([nonce, balance, storage_root, code_hash])`.
pub fn encode_account(account: &AccountState, storage_root: B256) -> Vec<u8> {
    let AccountState { nonce, balance, code_hash, generation: _ } = *account;
    alloy_rlp::encode(TrieAccount::new(nonce, balance, storage_root, code_hash))
}

/// Decodes an account and its storage root. The leaf does not contain the generation.
pub fn decode_account(leaf: &[u8], generation: u64) -> Result<(AccountState, B256)> {
    let TrieAccount { nonce, balance, storage_root, code_hash, .. } = decode("account", leaf)?;
    Ok((AccountState { nonce, balance, code_hash, generation }, storage_root))
}

pub fn storage_root_of(leaf: &[u8]) -> Result<B256> {
    Ok(decode::<TrieAccount>("account", leaf)?.storage_root)
}

pub fn decode_slot(leaf: &[u8]) -> Result<U256> {
    decode("slot", leaf)
}

fn decode<T: Decodable>(what: &str, leaf: &[u8]) -> Result<T> {
    let mut rest = leaf;
    match T::decode(&mut rest) {
        Ok(value) if rest.is_empty() => Ok(value),
        Ok(_) => Err(Error::StoreDamaged(format!("{what} leaf: bytes after it"))),
        Err(why) => Err(Error::StoreDamaged(format!("{what} leaf: {why}"))),
    }
}

/// The value of a slot's leaf, `None` for zero: such a slot has no leaf.
pub fn encode_slot(value: &U256) -> Option<Vec<u8>> {
    (!value.is_zero()).then(|| alloy_rlp::encode(value))
}
