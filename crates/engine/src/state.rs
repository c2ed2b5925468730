//! State values, and the trait for reading them.
//!
//! An existing empty account differs from a destroyed account: the first is `Some` with zeros, the
//! second is `None`. Storage belongs to one *generation* of an account: the number (see
//! `store::Heads::commit`) at which the account was last created or its storage last wiped. A
//! re-created account has a new generation, so slots of the previous generation are not visible in
//! it and need not be deleted first.

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
    /// An existing account with zero nonce, zero balance and no code.
    pub const EMPTY: Self =
        Self { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY, generation: 0 };

    pub fn has_code(&self) -> bool {
        self.code_hash != KECCAK256_EMPTY
    }
}

/// Read-only access to the state of a block, partial block or overlay.
pub trait StateReader: Send {
    /// Returns `None` if the account does not exist.
    ///
    /// # Errors
    ///
    /// The state could not be read.
    fn account(&self, address: &Address) -> Result<Option<AccountState>>;

    /// The slot's value in the given generation of the account; zero if never set.
    ///
    /// # Errors
    ///
    /// The state could not be read.
    fn storage(&self, address: &Address, generation: u64, slot: &U256) -> Result<U256>;

    /// The code with this hash. Never called with the hash of empty code.
    ///
    /// # Errors
    ///
    /// The state could not be read.
    fn code(&self, hash: &B256) -> Result<Bytes>;

    /// The BLOCKHASH value for this number; zero if unknown. The EVM enforces the window of 256
    /// blocks.
    ///
    /// # Errors
    ///
    /// The state could not be read.
    fn block_hash(&self, number: u64) -> Result<B256>;

    /// True if code may be served from the process-wide code cache. False if the reads themselves
    /// are significant: in a witness, or while recording one.
    fn shares_codes(&self) -> bool {
        true
    }

    /// True if a read may fail with `StateMissing` because only part of the state is known.
    fn may_miss(&self) -> bool {
        false
    }
}

/// The state changes of a run, transaction or block relative to its initial state. Contains only
/// accounts that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub accounts: BTreeMap<Address, AccountChange>,
    /// New code by hash.
    pub codes: BTreeMap<B256, Bytes>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountChange {
    pub before: Option<AccountState>,
    /// `None` if the account was destroyed, or emptied under EIP-161.
    pub after: Option<AccountState>,
    /// New slot values in the generation of `after`; zero deletes a slot. Empty if `after` is
    /// `None`.
    pub slots: BTreeMap<U256, U256>,
}

impl AccountChange {
    /// The generation whose storage becomes unreachable by this change.
    pub fn retired(&self) -> Option<u64> {
        let before = self.before?.generation;
        match self.after {
            Some(after) if after.generation == before => None,
            _ => Some(before),
        }
    }
}

impl Changes {
    /// Merges later changes into these.
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
