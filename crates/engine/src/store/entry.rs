//! State entries as bytes, in deltas and in the flat table.
//!
//! An entry is a key and a value. In the flat table the complement of the block number follows the
//! key, so that one forward seek finds the newest entry at or below a block. Keys are prefix-free:
//! no key is a prefix of another. The seek relies on this.
//!
//! | entry   | key                                   | value                          |
//! |---------|---------------------------------------|--------------------------------|
//! | account | `a` address                           | empty: destroyed; else account |
//! | index   | `i` length key                        | defined by Python              |
//! | retired | `r` address generation                | empty                          |
//! | slot    | `s` address generation slot           | empty: cleared; else the value |
//!
//! Numbers in keys are big-endian, so that byte order is numeric order.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};

use crate::error::{Error, Result};
use crate::state::{AccountState, Changes};

pub const ACCOUNT: u8 = b'a';
pub const INDEX: u8 = b'i';
pub const RETIRED: u8 = b'r';
pub const SLOT: u8 = b's';

/// LMDB's longest key is 511 bytes, so this leaves ample space for prefixes and suffixes.
pub const MAX_INDEX_KEY: usize = 128;
/// An index value has to fit into one chunk of a delta together with its key.
pub const MAX_INDEX_VALUE: usize = 4096;

/// A suffix that sorts a key after all its versions, which have suffixes of 8 bytes.
pub const JUST_ABOVE: [u8; 9] = [0xff; 9];

/// Entries in key order.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn account_key(address: &Address) -> [u8; 21] {
    let mut key = [ACCOUNT; 21];
    key[1..].copy_from_slice(address.as_slice());
    key
}

pub fn slot_key(address: &Address, generation: u64, slot: &U256) -> [u8; 61] {
    let mut key = [SLOT; 61];
    key[1..21].copy_from_slice(address.as_slice());
    key[21..29].copy_from_slice(&generation.to_be_bytes());
    key[29..].copy_from_slice(&slot.to_be_bytes::<32>());
    key
}

pub fn parse_slot_key(key: &[u8]) -> Result<(Address, u64, U256)> {
    let key: &[u8; 61] = key
        .try_into()
        .ok()
        .filter(|key: &&[u8; 61]| key[0] == SLOT)
        .ok_or_else(|| Error::StoreDamaged("a slot has another key".into()))?;
    let mut generation = [0; 8];
    generation.copy_from_slice(&key[21..29]);
    let slot = U256::from_be_slice(&key[29..]);
    Ok((Address::from_slice(&key[1..21]), u64::from_be_bytes(generation), slot))
}

/// Fails unless the key has the layout of one of the four kinds. Code that parses keys relies on
/// this check.
pub fn check_key(key: &[u8]) -> Result<()> {
    let sound = match key {
        [ACCOUNT, address @ ..] => address.len() == 20,
        [INDEX, length, index @ ..] => {
            index.len() == usize::from(*length) && (1..=MAX_INDEX_KEY).contains(&index.len())
        }
        [RETIRED, life @ ..] => life.len() == SLOTS_PREFIX - 1,
        [SLOT, slot @ ..] => slot.len() == 60,
        _ => false,
    };
    if sound { Ok(()) } else { Err(Error::StoreDamaged("an entry has no known key".into())) }
}

const SLOTS_PREFIX: usize = 29;

/// The common prefix of all slots of one generation of an account.
pub fn slots_prefix(address: &Address, generation: u64) -> [u8; SLOTS_PREFIX] {
    let mut key = [SLOT; SLOTS_PREFIX];
    key[1..21].copy_from_slice(address.as_slice());
    key[21..].copy_from_slice(&generation.to_be_bytes());
    key
}

/// True if a key without an entry is unknown on a partial base with this anchor generation. Slots
/// of later generations are fully known.
pub fn may_be_unknown(key: &[u8], generation: u64) -> bool {
    match key[0] {
        ACCOUNT => true,
        SLOT => key[21..SLOTS_PREFIX] == generation.to_be_bytes(),
        _ => false,
    }
}

/// The prefix of the slots that a `retired` entry makes unreachable.
pub fn retired_slots_prefix(retired_key: &[u8]) -> Vec<u8> {
    let mut prefix = retired_key.to_vec();
    prefix[0] = SLOT;
    prefix
}

pub fn index_key(key: &[u8]) -> Result<Vec<u8>> {
    if key.is_empty() || key.len() > MAX_INDEX_KEY {
        let length = key.len();
        return Err(Error::invalid(format!(
            "an index key has 1 to {MAX_INDEX_KEY} bytes, not {length}"
        )));
    }
    let mut framed = Vec::with_capacity(2 + key.len());
    framed.push(INDEX);
    framed.push(key.len() as u8);
    framed.extend_from_slice(key);
    Ok(framed)
}

/// The key of the flat table for `key` at `block`.
pub fn versioned(key: &[u8], block: u64) -> Key {
    Key::join(key, &(!block).to_be_bytes())
}

/// Removes the block from a key of the flat table and checks the rest.
pub fn unversioned(versioned: &[u8]) -> Result<&[u8]> {
    let (key, _block) = versioned
        .split_last_chunk::<8>()
        .ok_or_else(|| Error::StoreDamaged("a flat entry has no block".into()))?;
    check_key(key)?;
    Ok(key)
}

/// A table key on the stack: every read makes one.
pub struct Key {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Key {
    /// The longest is that of an index entry, with kind and length, after a number of 8 bytes and
    /// followed by `JUST_ABOVE`.
    pub const CAPACITY: usize = 8 + 2 + MAX_INDEX_KEY + JUST_ABOVE.len();

    /// Callers ensure that both parts fit into the capacity.
    pub fn join(first: &[u8], second: &[u8]) -> Self {
        let mut bytes = [0; Self::CAPACITY];
        let length = first.len() + second.len();
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..length].copy_from_slice(second);
        Self { bytes, length }
    }
}

impl std::ops::Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

pub fn encode_account(account: &AccountState) -> Vec<u8> {
    let mut value = Vec::with_capacity(64);
    value.push(u8::from(account.has_code()));
    if account.has_code() {
        value.extend_from_slice(account.code_hash.as_slice());
    }
    push_varint(&mut value, account.nonce);
    push_varint(&mut value, account.generation);
    value.extend_from_slice(&account.balance.to_be_bytes_trimmed_vec());
    value
}

/// `None` for an empty value: the account was destroyed.
pub fn decode_account(value: &[u8]) -> Result<Option<AccountState>> {
    let Some((&flags, mut rest)) = value.split_first() else { return Ok(None) };
    let mut code_hash = KECCAK256_EMPTY;
    if flags > 1 {
        return Err(damaged_account());
    }
    if flags == 1 {
        let (hash, after) = rest.split_at_checked(32).ok_or_else(damaged_account)?;
        code_hash = B256::from_slice(hash);
        rest = after;
    }
    let nonce = take_varint(&mut rest).ok_or_else(damaged_account)?;
    let generation = take_varint(&mut rest).ok_or_else(damaged_account)?;
    let balance = U256::try_from_be_slice(rest).ok_or_else(damaged_account)?;
    Ok(Some(AccountState { nonce, balance, code_hash, generation }))
}

pub fn encode_slot(value: &U256) -> Vec<u8> {
    value.to_be_bytes_trimmed_vec()
}

pub fn decode_slot(value: &[u8]) -> Result<U256> {
    U256::try_from_be_slice(value)
        .filter(|_| value.first() != Some(&0))
        .ok_or_else(|| Error::StoreDamaged("a slot has no value of up to 32 bytes".into()))
}

/// The entries of `changes` and of their index rows. An account with only slot changes has no
/// account entry.
pub fn entries_of(changes: &Changes, index: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Entries> {
    let mut entries = Entries::new();
    for (address, change) in &changes.accounts {
        if change.before != change.after {
            let account = change.after.as_ref().map(encode_account).unwrap_or_default();
            entries.insert(account_key(address).to_vec(), account);
        }
        if let Some(generation) = change.retired() {
            let mut key = slots_prefix(address, generation);
            key[0] = RETIRED;
            entries.insert(key.to_vec(), Vec::new());
        }
        let Some(after) = change.after else { continue };
        for (slot, value) in &change.slots {
            entries.insert(slot_key(address, after.generation, slot).to_vec(), encode_slot(value));
        }
    }
    for (key, value) in index {
        if value.len() > MAX_INDEX_VALUE {
            let length = value.len();
            return Err(Error::invalid(format!(
                "an index value has at most {MAX_INDEX_VALUE} bytes, not {length}"
            )));
        }
        entries.insert(index_key(key)?, value.clone());
    }
    Ok(entries)
}

/// The prefixes of all slot keys that `entries` retire.
pub fn retired_prefixes(entries: &Entries) -> BTreeSet<Vec<u8>> {
    let retired = entries.keys().filter(|key| key[0] == RETIRED);
    retired.map(|key| retired_slots_prefix(key)).collect()
}

/// True if a slot's key begins with one of `prefixes`, from `retired_prefixes`.
pub fn is_retired(prefixes: &BTreeSet<Vec<u8>>, key: &[u8]) -> bool {
    !prefixes.is_empty() && key[0] == SLOT && prefixes.contains(&key[..SLOTS_PREFIX])
}

/// `later` on top of `earlier`: a simple reference for `delta::write_merged`.
#[cfg(test)]
pub fn merge(mut earlier: Entries, later: Entries) -> Entries {
    let retired = retired_prefixes(&later);
    earlier.retain(|key, _| !retired.iter().any(|prefix| key.starts_with(prefix)));
    earlier.extend(later);
    earlier
}

fn damaged_account() -> Error {
    Error::StoreDamaged("an account entry is not one".into())
}

/// Little-endian base 128, as in Protocol Buffers.
fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account() -> impl Strategy<Value = AccountState> {
        let code = prop_oneof![Just(KECCAK256_EMPTY), any::<[u8; 32]>().prop_map(B256::from)];
        let balance = any::<[u64; 4]>().prop_map(U256::from_limbs);
        (any::<u64>(), balance, code, any::<u64>()).prop_map(
            |(nonce, balance, code_hash, generation)| AccountState {
                nonce,
                balance,
                code_hash,
                generation,
            },
        )
    }

    proptest! {
        #[test]
        fn accounts_come_back_as_they_were(account in account()) {
            let value = encode_account(&account);
            prop_assert_eq!(decode_account(&value), Ok(Some(account)));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode_account(&value);
            let _ = decode_slot(&value);
        }
    }

    #[test]
    fn keys_are_of_four_kinds_and_of_their_lengths() {
        let address = Address::repeat_byte(7);
        let slot = slot_key(&address, 3, &U256::from(4));
        let mut retired = slots_prefix(&address, 3);
        retired[0] = RETIRED;
        let index = index_key(b"key").unwrap();
        let account = account_key(&address);
        for key in [&account[..], &index, &retired, &slot] {
            assert_eq!(check_key(key), Ok(()));
            for other in [&key[..key.len() - 1], &[key, &[0]].concat(), &[b'x'; 21], &[]] {
                assert!(matches!(check_key(other), Err(Error::StoreDamaged(_))), "{other:?}");
            }
        }
        assert!(parse_slot_key(&slot).is_ok());
        assert!(parse_slot_key(&[b'x'; 61]).is_err());
    }

    #[test]
    fn a_version_is_of_a_key_or_damage() {
        let key = account_key(&Address::repeat_byte(7));
        assert_eq!(unversioned(&versioned(&key, 9)), Ok(&key[..]));
        for other in [&b"a"[..], &key, &versioned(b"a", 9)] {
            assert!(matches!(unversioned(other), Err(Error::StoreDamaged(_))), "{other:?}");
        }
    }

    #[test]
    fn values_that_nobody_writes_are_damage() {
        let account = encode_account(&AccountState { nonce: 1, ..AccountState::EMPTY });
        assert!(matches!(decode_account(&account), Ok(Some(_))));
        let flagged = [&[2], &account[1..]].concat();
        assert!(matches!(decode_account(&flagged), Err(Error::StoreDamaged(_))));
        for slot in [&[0, 1][..], &[1; 33]] {
            assert!(matches!(decode_slot(slot), Err(Error::StoreDamaged(_))));
        }
    }

    #[test]
    fn an_account_of_which_only_slots_changed_has_no_entry() {
        let address = Address::repeat_byte(7);
        let same = Some(AccountState { nonce: 1, ..AccountState::EMPTY });
        let slots = BTreeMap::from([(U256::from(1), U256::from(2))]);
        let change = crate::state::AccountChange { before: same, after: same, slots };
        let mut changes = Changes::default();
        changes.accounts.insert(address, change.clone());
        let keys = |changes: &Changes| -> Vec<Vec<u8>> {
            entries_of(changes, &BTreeMap::new()).unwrap().into_keys().collect()
        };
        let slot = slot_key(&address, 0, &U256::from(1)).to_vec();
        let alone = keys(&changes);
        assert_eq!(alone, std::slice::from_ref(&slot));
        let paid = AccountState { balance: U256::from(3), ..change.after.unwrap() };
        changes.accounts.get_mut(&address).unwrap().after = Some(paid);
        let both = keys(&changes);
        assert_eq!(both, [account_key(&address).to_vec(), slot]);
    }

    #[test]
    fn an_empty_account_is_not_a_destroyed_one() {
        let value = encode_account(&AccountState::EMPTY);
        assert_eq!(decode_account(&value), Ok(Some(AccountState::EMPTY)));
        assert_eq!(decode_account(&[]), Ok(None));
    }
}
