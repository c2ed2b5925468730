//! Keys whose hashes begin with given digits, found by trying.
//!
//! Nodes of a trie are asked for by keys, and of a node of which only the place is known no key
//! is. Any key whose way leads there will do, whether it exists or not: one in sixteen to the
//! power of the depth has such a hash. So it is found for shallow places only, which those of
//! almost all storage are; deep ones are left to the proofs after a block.

use alloy_primitives::{Address, U256};
use alloy_trie::Nibbles;

use super::keccak::hash_all;
use super::leaf::{account_key, slot_key};

/// Places below this depth are not tried for: a million hashes at this one, 0.2 s.
const DEEPEST: usize = 5;
/// Keys that are hashed together.
const PORTION: u64 = 64;
/// Sixteen times as many as it takes in the mean, so that none is found once in ten million.
const PATIENCE: u64 = 16;

/// A slot whose way in the trie of a storage begins with these digits.
pub(super) fn slot(path: &Nibbles) -> Option<U256> {
    let text = |number: u64| U256::from(number).to_be_bytes::<32>();
    find(path, text).map(U256::from).filter(|slot| slot_key(slot).starts_with(path))
}

/// An account whose way in the trie of a state begins with these digits.
pub(super) fn address(path: &Nibbles) -> Option<Address> {
    let text = |number: u64| Address::left_padding_from(&number.to_be_bytes()).into_array();
    let found = find(path, text).map(text).map(Address::from);
    found.filter(|address| account_key(address).starts_with(path))
}

/// The first number whose text has a hash that begins with these digits.
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
