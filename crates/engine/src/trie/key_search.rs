//! Finds keys whose hashes start with given nibbles, by brute force.
//!
//! Trie nodes are requested by key, but for a missing sibling only the path is known. Any key below
//! that path is suitable, whether it exists or not: one key in 16^depth has such a hash. The search
//! is limited to shallow paths, which covers nearly all storage tries. Deeper ones need the proofs
//! of absence after the block.

use alloy_primitives::{Address, U256};
use alloy_trie::Nibbles;

use super::keccak::hash_all;
use super::leaf::{account_key, slot_key};

/// Deeper paths are not searched. At this depth the search takes about a million hashes, 0.2 s.
const DEEPEST: usize = 5;
/// The number of keys hashed per batch.
const PORTION: u64 = 64;
/// The limit as a multiple of the expected number of attempts; the search fails once in ten
/// million.
const PATIENCE: u64 = 16;

/// A slot whose hashed key starts with these nibbles.
pub(super) fn slot(path: &Nibbles) -> Option<U256> {
    let text = |number: u64| U256::from(number).to_be_bytes::<32>();
    find(path, text).map(U256::from).filter(|slot| slot_key(slot).starts_with(path))
}

/// An address whose hashed key starts with these nibbles.
pub(super) fn address(path: &Nibbles) -> Option<Address> {
    let text = |number: u64| Address::left_padding_from(&number.to_be_bytes()).into_array();
    let found = find(path, text).map(text).map(Address::from);
    found.filter(|address| account_key(address).starts_with(path))
}

/// The first number whose `text` has a hash that starts with these nibbles.
fn find<const N: usize>(path: &Nibbles, text: impl Fn(u64) -> [u8; N]) -> Option<u64> {
    if path.len() > DEEPEST {
        return None;
    }
    let tries = PATIENCE << (4 * path.len());
    (0..tries.div_ceil(PORTION)).find_map(|portion| {
        let first = portion * PORTION;
        let texts: Vec<_> = (first..first + PORTION).map(&text).collect();
        let hashes = hash_all(&texts);
        let at = hashes.iter().position(|hash| Nibbles::unpack(hash).starts_with(path))?;
        Some(first + at as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_what_is_found_leads_there() {
        for depth in 0..=3 {
            let path = Nibbles::unpack([0x7a, 0xf0]).slice(..depth);
            assert!(slot_key(&slot(&path).unwrap()).starts_with(&path));
            assert!(account_key(&address(&path).unwrap()).starts_with(&path));
        }
    }

    #[test]
    fn deep_places_are_not_tried_for() {
        assert_eq!(slot(&Nibbles::unpack([1; 3])), None);
        assert_eq!(address(&Nibbles::unpack([1; 32])), None);
    }
}
