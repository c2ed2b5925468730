//! The values that state is made of, and the trait by which it is read.
//!
//! An account that exists and is empty is not a destroyed account: the first is
//! `Some` with zeros, the second `None`. Storage belongs to one life of an
//! account, its *generation*: the number (see `store::Heads::commit`) under which
//! it last came to exist or had its storage wiped. A re-created account has a new
//! generation, so the slots of its former life cannot be seen from the new one and
//! nobody has to delete them first.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};

use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountState {
    pub nonce: u64,
    pub balance: U256,
    pub code_hash: B256,
    pub generation: u64,
}

impl AccountState {
    /// An existing account with nothing in it.
    pub const EMPTY: Self =
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, generation: 0 };

    pub fn has_code(&self) -> bool {
        self.code_hash != KECCAK256_EMPTY
    }
}

/// State as of one block, partial block or overlay. Reading changes nothing.
pub trait StateReader: Send {
    /// `None` when the account does not exist.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn account(&self, address: &Address) -> Result<Option<AccountState>>;

    /// The slot's value in the given life of the account; zero when never set.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256>;

    /// The code with this hash, which is never the hash of empty code.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn code(&self, hash: &B256) -> Result<Bytes>;

    /// What BLOCKHASH gives for this number: zero when unknown. The window of 256
    /// blocks is the EVM's business.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn block_hash(&self, number: u64) -> Result<B256>;

    /// Whether code may come from what the process remembers of other states. It may not
    /// where what is read matters beside its value: in a witness, or to make one.
    fn shares_codes(&self) -> bool {
        true
    }

    /// Whether a read may fail with `StateMissing`: only a part of the state is known.
    fn may_miss(&self) -> bool {
        false
    }
}

/// What a run, a transaction or a whole block did to state, relative to the state
/// it started from. Only accounts that really differ are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub accounts: BTreeMap<Address, AccountChange>,
    /// New code by its hash.
    pub codes: BTreeMap<B256, Bytes>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountChange {
    pub before: Option<AccountState>,
    /// `None` when the account was destroyed (or emptied, which is the same from
    /// EIP-161 on).
    pub after: Option<AccountState>,
    /// New slot values under `after`'s generation; zero clears. Empty when `after`
    /// is `None`.
    pub slots: BTreeMap<U256, U256>,
}

impl AccountChange {
    /// The generation whose storage can no longer be reached after this change.
    pub fn retired(&self) -> Option<u64> {
        let before = self.before?.generation;
        match self.after {
            Some(after) if after.generation == before => None,
            _ => Some(before),
        }
    }
}

impl Changes {
    /// Take in what happened afterwards.
    pub fn merge(&mut self, later: Self) {
        self.codes.extend(later.codes);
        for (address, change) in later.accounts {
            let Some(earlier) = self.accounts.get_mut(&address) else {
                self.accounts.insert(address, change);
                continue;
            };
            let same_life = match (earlier.after, change.after) {
                (Some(before), Some(after)) => before.generation == after.generation,
                _ => false,
            };
            if !same_life {
                earlier.slots.clear();
            }
            earlier.after = change.after;
            earlier.slots.extend(change.slots);
        }
    }
}
