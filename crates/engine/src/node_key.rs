//! The key of a trie node in the store, without the block suffix that the store adds.
//!
//! `0x00` (account trie) or `0x01 ‖ address ‖ generation`, then the number of nibbles and the
//! packed nibbles, zero-padded if their number is odd. Because the length precedes the nibbles, no
//! path is a prefix of another and the nodes of one trie level are adjacent.

use std::fmt;

use alloy_primitives::Address;
use alloy_trie::Nibbles;

/// Keys of tries are 32-byte hashes, so no path is longer.
pub(crate) const MAX_NIBBLES: usize = 64;

const ACCOUNTS: u8 = 0x00;
const STORAGE: u8 = 0x01;
/// The `STORAGE` byte, an address and a generation.
const STORAGE_PREFIX: usize = 1 + 20 + 8;

/// The trie that a node belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    Accounts,
    /// The storage of one generation of an account. An account that is re-created after a deletion
    /// has a new generation.
    Storage {
        address: Address,
        generation: u64,
    },
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accounts => write!(f, "the account trie"),
            Self::Storage { address, generation } => {
                write!(f, "the storage trie of {address} (generation {generation})")
            }
        }
    }
}

/// A node that a trie refers to but that is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MissingNode {
    pub owner: Owner,
    pub path: Nibbles,
}

impl MissingNode {
    /// The path in hexadecimal, one digit per nibble.
    pub fn digits(&self) -> String {
        self.path.iter().filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
    }
}

impl fmt::Display for MissingNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path '{}' of {}", self.digits(), self.owner)
    }
}

/// The common key prefix of all nodes of this owner. No node of another owner has it.
pub fn owner_prefix(owner: &Owner) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(1 + 20 + 8 + 1 + 32);
    match owner {
        Owner::Accounts => prefix.push(ACCOUNTS),
        Owner::Storage { address, generation } => {
            prefix.push(STORAGE);
            prefix.extend_from_slice(address.as_slice());
            prefix.extend_from_slice(&generation.to_be_bytes());
        }
    }
    prefix
}

pub fn node_key(owner: &Owner, path: &Nibbles) -> Vec<u8> {
    let mut key = owner_prefix(owner);
    key.push(path.len() as u8); // At most 64.
    key.extend_from_slice(&path.pack());
    key
}

/// Decodes a key made by `node_key`. `None` if the key is malformed.
pub fn parse_node_key(key: &[u8]) -> Option<(Owner, Nibbles)> {
    if !is_node_key(key) {
        return None;
    }
    let (owner, path) = match key {
        [STORAGE, owner @ ..] => {
            let (address, rest) = owner.split_first_chunk::<20>()?;
            let (generation, path) = rest.split_first_chunk::<8>()?;
            let address = Address::from(address);
            (Owner::Storage { address, generation: u64::from_be_bytes(*generation) }, path)
        }
        [_, path @ ..] => (Owner::Accounts, path),
        [] => return None,
    };
    let (&nibbles, packed) = path.split_first()?;
    Some((owner, Nibbles::unpack(packed).slice(..usize::from(nibbles))))
}

/// True if `prefix` has the form of the `owner_prefix` of a storage trie.
pub fn is_storage_prefix(prefix: &[u8]) -> bool {
    prefix.len() == STORAGE_PREFIX && prefix[0] == STORAGE
}

/// True if `key` has the form of a `node_key`.
pub fn is_node_key(key: &[u8]) -> bool {
    let path = match key {
        [ACCOUNTS, path @ ..] => path,
        [STORAGE, ..] if key.len() > STORAGE_PREFIX => &key[STORAGE_PREFIX..],
        _ => return false,
    };
    path.split_first().is_some_and(|(&nibbles, packed)| {
        usize::from(nibbles) <= MAX_NIBBLES && packed.len() == usize::from(nibbles).div_ceil(2)
    })
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{address, hex};

    use super::*;

    #[test]
    fn keys_are_laid_out_to_the_byte() {
        let storage = Owner::Storage {
            address: address!("0x4200000000000000000000000000000000000016"),
            generation: 0x0102,
        };
        let odd = Nibbles::from_nibbles([0xa, 0xb, 0xc]);
        assert_eq!(node_key(&Owner::Accounts, &Nibbles::new()), hex!("0000"));
        assert_eq!(node_key(&Owner::Accounts, &odd), hex!("0003abc0"));
        assert_eq!(
            node_key(&storage, &odd),
            hex!("01 4200000000000000000000000000000000000016 0000000000000102 03 abc0")
        );
        assert!(node_key(&storage, &odd).starts_with(&owner_prefix(&storage)));
    }

    #[test]
    fn no_other_bytes_are_keys() {
        let owner = Owner::Storage { address: Address::ZERO, generation: 3 };
        let longest = Nibbles::unpack([7; 32]);
        for owner in [Owner::Accounts, owner] {
            for path in [Nibbles::new(), Nibbles::from_nibbles([1, 2, 3]), longest] {
                let key = node_key(&owner, &path);
                assert!(is_node_key(&key));
                assert_eq!(parse_node_key(&key), Some((owner, path)));
                assert_eq!(parse_node_key(&key[1..]), None);
                assert!(!is_node_key(&key[..key.len() - 1]));
                assert!(!is_node_key(&[&key[..], &[0]].concat()));
            }
        }
        let prefix = owner_prefix(&owner);
        assert!(is_storage_prefix(&prefix) && !is_node_key(&prefix));
        assert!(!is_storage_prefix(&prefix[1..]) && !is_storage_prefix(&[]));
        assert!(!is_storage_prefix(&owner_prefix(&Owner::Accounts)));
        assert!(!is_node_key(&[&[0x00, 65][..], &[0; 33]].concat()));
        assert!(!is_node_key(&[0x02, 0x00]));
    }

    #[test]
    fn a_padded_path_is_not_the_longer_path() {
        let odd = node_key(&Owner::Accounts, &Nibbles::from_nibbles([0xa]));
        let even = node_key(&Owner::Accounts, &Nibbles::from_nibbles([0xa, 0x0]));
        assert_ne!(odd, even);
        assert!(!even.starts_with(&odd));
    }
}
