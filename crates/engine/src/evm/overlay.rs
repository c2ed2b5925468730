//! Changes on top of a fixed state: overrides, a simulation, a block in progress.
//!
//! Reads return the underlying state with all changes applied. `take` returns the changes since the
//! last `take` and assigns generations to accounts created or wiped since; reads still include all
//! changes. An empty overlay allocates no memory, so each call can have its own.
//!
//! `entry` holds the changes of one account. Once wiped (`Entry::wipe`), the underlying storage of
//! an account stays hidden, regardless of later commits. Overrides write entries directly and are
//! not subject to the removal of empty accounts, which applies to transactions.

mod accounts;
mod entry;

use std::{fmt, mem};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256, map::B256Map};
use revm::{bytecode::Bytecode, state::EvmState};

use crate::{
    error::{Error, Result},
    evm::code_cache,
    missing_keys::{Missed, MissingKeys},
    state::{AccountState, Changes, StateReader},
};
use accounts::Accounts;
use entry::Entry;

/// The state override of one account. Absent fields are left unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Override {
    pub balance: Option<U256>,
    pub nonce: Option<u64>,
    pub code: Option<Bytes>,
    /// Replaces all storage.
    pub state: Option<Vec<(U256, U256)>>,
    /// Replaces individual slots.
    pub state_diff: Option<Vec<(U256, U256)>>,
}

#[derive(Default)]
pub struct Overlay {
    reader: Option<Box<dyn StateReader>>,
    accounts: Accounts,
    /// Accounts that may have changed since the last `take`, without duplicates.
    changed: Vec<Address>,
    codes: B256Map<Bytecode>,
    block_hashes: Vec<(u64, B256)>,
    /// Keys of accounts overridden while unknown, and keys missed by committed runs. If not empty,
    /// `account`, `storage`, `code` and `take` fail.
    missing: Missed,
}

impl Overlay {
    pub fn new(reader: Box<dyn StateReader>) -> Self {
        Self { reader: Some(reader), ..Self::default() }
    }

    /// A copy of all changes, for `restore`.
    pub(crate) fn checkpoint(&self) -> Self {
        Self {
            reader: None,
            accounts: self.accounts.clone(),
            changed: self.changed.clone(),
            codes: self.codes.clone(),
            block_hashes: self.block_hashes.clone(),
            missing: self.missing.clone(),
        }
    }

    /// Takes back all changes since a checkpoint.
    pub(crate) fn restore(&mut self, checkpoint: Self) {
        let reader = self.reader.take();
        *self = Self { reader, ..checkpoint };
    }

    /// Returns `None` if the account does not exist. The generation of an account that was created
    /// or wiped is not valid until the next `take`.
    ///
    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        self.check_known()?;
        self.account_or_default(address)
    }

    /// `account` for a run, which checks for missing keys when it ends.
    pub(crate) fn account_or_default(&self, address: &Address) -> Result<Option<AccountState>> {
        match self.entry(address) {
            Some(entry) => Ok(entry.account()),
            None => self.reader()?.account(address),
        }
    }

    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn storage(&self, address: &Address, slot: &U256) -> Result<U256> {
        self.check_known()?;
        self.storage_or_default(address, slot)
    }

    /// `storage` for a run, which checks for missing keys when it ends.
    pub(crate) fn storage_or_default(&self, address: &Address, slot: &U256) -> Result<U256> {
        let generation = match self.entry(address) {
            Some(entry) => match entry.slot(slot) {
                entry::Slot::Known(value) => return Ok(value),
                entry::Slot::Underneath(generation) => generation,
            },
            None => match self.reader()?.account(address)? {
                Some(account) => account.generation,
                None => return Ok(U256::ZERO),
            },
        };
        self.reader()?.storage(address, generation, slot)
    }

    /// `storage_or_default` for a caller that has already read the account's generation.
    pub(crate) fn storage_of_life(
        &self,
        address: &Address,
        generation: u64,
        slot: &U256,
    ) -> Result<U256> {
        match self.entry(address) {
            Some(_) => self.storage_or_default(address, slot),
            None => self.reader()?.storage(address, generation, slot),
        }
    }

    /// Returns empty bytes if the account has no code or does not exist.
    ///
    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn code(&self, address: &Address) -> Result<Bytes> {
        match self.account(address)? {
            Some(account) => Ok(self.code_by_hash(account.code_hash)?.original_bytes()),
            None => Ok(Bytes::new()),
        }
    }

    pub(crate) fn code_by_hash(&self, hash: B256) -> Result<Bytecode> {
        if hash == KECCAK256_EMPTY {
            return Ok(Bytecode::default());
        }
        if let Some(code) = self.codes.get(&hash) {
            return Ok(code.clone());
        }
        let reader = self.reader()?;
        if !reader.shares_codes() {
            return reader.code(&hash).map(code_cache::analyse);
        }
        code_cache::analysed(hash, || reader.code(&hash))
    }

    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn block_hash(&self, number: u64) -> Result<B256> {
        match self.block_hashes.iter().rev().find(|(at, _)| *at == number) {
            Some((_, hash)) => Ok(*hash),
            None => self.reader()?.block_hash(number),
        }
    }

    /// Sets the BLOCKHASH value of a block that exists only in this overlay.
    pub fn set_block_hash(&mut self, number: u64, hash: B256) {
        self.block_hashes.push((number, hash));
    }

    /// Applies an override. Unless the override has no fields, the account exists afterwards, even
    /// if it is empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if both `state` and `state_diff` are set, or the underlying state could
    /// not be read: `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn apply(&mut self, address: Address, new: &Override) -> Result<()> {
        if new.state.is_some() && new.state_diff.is_some() {
            return Err(Error::invalid(format!(
                "account {address} has both 'state' and 'stateDiff'"
            )));
        }
        if *new == Override::default() {
            return Ok(());
        }
        let code = new.code.as_ref().map(|code| (keccak256(code), code.clone()));
        // Missing keys of all overridden accounts are collected and reported with those of the run.
        let entry = self.entry_mut(address, Unknown::Collected)?;
        let mut account = entry.account().unwrap_or(AccountState::EMPTY);
        account.balance = new.balance.unwrap_or(account.balance);
        account.nonce = new.nonce.unwrap_or(account.nonce);
        if let Some((hash, _)) = &code {
            account.code_hash = *hash;
        }
        entry.set_account(account);
        if new.state.is_some() {
            entry.wipe();
        }
        entry.reserve_slots(new.state.iter().chain(&new.state_diff).map(Vec::len).sum());
        for (slot, value) in new.state.iter().chain(&new.state_diff).flatten() {
            entry.set_slot(*slot, *value, None);
        }
        if let Some((hash, code)) = code.filter(|(hash, _)| *hash != KECCAK256_EMPTY) {
            self.codes.entry(hash).or_insert_with(|| code_cache::analyse(code));
        }
        Ok(())
    }

    /// Adds to a balance outside of a transaction: a withdrawal or a block reward.
    ///
    /// A zero amount still touches the account: an existing empty account is removed, as EIP-161
    /// and the withdrawal specification require. Block rewards, which predate EIP-161, are never
    /// zero.
    ///
    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn credit(&mut self, address: Address, amount: U256) -> Result<()> {
        let entry = self.entry_mut(address, Unknown::Fails)?;
        match entry.account() {
            Some(account) if amount.is_zero() && entry::is_empty(&account) => entry.destroy(),
            _ if amount.is_zero() => {}
            account => {
                let mut account = account.unwrap_or(AccountState::EMPTY);
                account.balance = account.balance.saturating_add(amount);
                entry.set_account(account);
            }
        }
        Ok(())
    }

    /// Commits the effects of a finished run.
    ///
    /// revm provides all required data, including the account as it was loaded, so this cannot fail
    /// midway. For blocks before Spurious Dragon, revm has already adapted the state to the rule
    /// for empty accounts used here.
    pub(crate) fn commit(&mut self, state: EvmState) {
        for (address, account) in state {
            if !account.is_touched() {
                continue;
            }
            let entry = self.accounts.entry(address).or_insert_with(|| {
                let existed = !account.is_loaded_as_not_existing();
                Box::new(Entry::new(existed.then(|| entry::loaded(&account.original_info))))
            });
            if entry.mark_changed() {
                self.changed.push(address);
            }
            if account.is_selfdestructed() || (account.is_empty() && !account.is_created()) {
                entry.destroy();
                continue;
            }
            if account.is_created() {
                entry.wipe();
            }
            let before = entry.account().map_or(KECCAK256_EMPTY, |account| account.code_hash);
            entry.set_account(entry::loaded(&account.info));
            for (slot, value) in account.changed_storage_slots() {
                entry.set_slot(*slot, value.present_value, Some(value.original_value));
            }
            if let Some(code) = account.info.code
                && account.info.code_hash != before
                && !code.is_empty()
            {
                self.codes.insert(account.info.code_hash, code);
            }
        }
    }

    /// Returns the changes since the last `take`. `number` becomes the generation of all accounts
    /// created or wiped since. Accounts and slots with their previous value are omitted.
    ///
    /// Several takes may use the same number, such as those after the transactions of one block.
    /// The underlying state must not contain that number.
    ///
    /// # Errors
    ///
    /// `StateMissing`, or the underlying state could not be read: `StoreClosed`, `StoreDamaged`,
    /// `Store`.
    pub fn take(&mut self, number: u64) -> Result<Changes> {
        self.check_known()?;
        let mut changes = Changes::default();
        for address in &self.changed {
            let Some(entry) = self.accounts.get(address) else { continue };
            let underneath = |generation, slot: &U256| {
                self.reader.as_ref().ok_or_else(no_state)?.storage(address, generation, slot)
            };
            let Some(change) = entry.change(number, underneath)? else { continue };
            let code_before = change.before.map_or(KECCAK256_EMPTY, |account| account.code_hash);
            if let Some(after) = change.after
                && after.code_hash != code_before
                && let Some(code) = self.codes.get(&after.code_hash)
            {
                changes.codes.insert(after.code_hash, code.original_bytes());
            }
            changes.accounts.insert(*address, change);
        }
        for address in mem::take(&mut self.changed) {
            let change = changes.accounts.get(&address);
            if let Some(entry) = self.accounts.get_mut(&address) {
                entry.taken(change, number);
            }
        }
        Ok(changes)
    }

    /// Unknown keys on which the contents of this overlay depend.
    pub(crate) fn missing(&self) -> &Missed {
        &self.missing
    }

    /// Commits a run that missed keys, so that later runs can continue on its effects.
    pub(crate) fn commit_unknown(&mut self, state: EvmState, missing: MissingKeys) {
        self.commit(state);
        self.missing.keys_mut().merge(missing);
    }

    fn check_known(&self) -> Result<()> {
        self.missing.check()
    }

    fn reader(&self) -> Result<&dyn StateReader> {
        self.reader.as_deref().ok_or_else(no_state)
    }

    fn entry(&self, address: &Address) -> Option<&Entry> {
        // Most calls run on an empty overlay; avoid hashing the address.
        if self.accounts.is_empty() { None } else { self.accounts.get(address).map(Box::as_ref) }
    }

    fn entry_mut(&mut self, address: Address, unknown: Unknown) -> Result<&mut Entry> {
        if !self.accounts.contains_key(&address) {
            let account = match (self.reader()?.account(&address), unknown) {
                (Err(Error::StateMissing(keys)), Unknown::Collected) => {
                    self.missing.keys_mut().merge(*keys);
                    None
                }
                (read, _) => read?,
            };
            self.accounts.insert(address, Box::new(Entry::new(account)));
        }
        let entry = self.accounts.entry(address).or_default();
        if entry.mark_changed() {
            self.changed.push(address);
        }
        Ok(entry)
    }
}

/// The behaviour when an unknown account is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Fails,
    Collected,
}

/// Reads the state with all changes. The generation argument is ignored: storage is always that of
/// the account's current generation.
impl StateReader for Overlay {
    fn account(&self, address: &Address) -> Result<Option<AccountState>> {
        Overlay::account(self, address)
    }

    fn storage(&self, address: &Address, _generation: u64, slot: &U256) -> Result<U256> {
        Overlay::storage(self, address, slot)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        Ok(self.code_by_hash(*hash)?.original_bytes())
    }

    fn block_hash(&self, number: u64) -> Result<B256> {
        Overlay::block_hash(self, number)
    }

    fn shares_codes(&self) -> bool {
        self.reader.as_ref().is_none_or(|reader| reader.shares_codes())
    }

    fn may_miss(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.may_miss())
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("accounts", &*self.accounts).finish_non_exhaustive()
    }
}

fn no_state() -> Error {
    Error::Execution("an overlay without a state was read".into())
}

#[cfg(test)]
mod tests;
