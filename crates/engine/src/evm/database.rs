//! The database inside an EVM: the overlay of the run in progress and its watch.
//!
//! Both are put in before a run and taken out after it (`evm`), so nothing read for
//! one run can be seen by another.

use alloy_primitives::{Address, B256, U256};
use revm::{bytecode::Bytecode, database_interface::DBErrorMarker, state::AccountInfo};

use crate::{
    error::{Error, Result},
    evm::{deadline::Watch, overlay::Overlay, work},
};

/// A storage read mostly belongs to one of the accounts read last.
const RECENT: usize = 8;

impl DBErrorMarker for Error {}

#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) overlay: Overlay,
    pub(crate) watch: Watch,
    /// Generations of the accounts read last, to spare storage reads a second look at
    /// the account. They are those of the state underneath, which does not change.
    recent: [Option<(Address, u64)>; RECENT],
    next: usize,
}

impl Database {
    pub(crate) fn new(overlay: Overlay, watch: Watch) -> Self {
        Self { overlay, watch, ..Self::default() }
    }

    /// Something was looked up, which took so long.
    fn looked_up(&mut self, nanoseconds: u64) -> Result<()> {
        if self.watch.work(nanoseconds) { Err(self.stopped()) } else { Ok(()) }
    }

    /// The same for what stays in memory until the run ends.
    fn loaded(&mut self) -> Result<()> {
        if self.watch.touch(work::LOOKUP) { Err(self.stopped()) } else { Ok(()) }
    }

    fn stopped(&self) -> Error {
        self.watch.error().unwrap_or(Error::DeadlineExceeded)
    }

    fn generation(&self, address: &Address) -> Option<u64> {
        self.recent.iter().flatten().find(|(known, _)| known == address).map(|known| known.1)
    }
}

impl revm::Database for Database {
    type Error = Error;

    /// The generation travels through revm as the account's id, for `Overlay::commit`.
    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>> {
        self.loaded()?;
        let Some(account) = self.overlay.account(&address)? else { return Ok(None) };
        self.recent[self.next % RECENT] = Some((address, account.generation));
        self.next = self.next.wrapping_add(1);
        Ok(Some(AccountInfo {
            balance: account.balance,
            nonce: account.nonce,
            code_hash: account.code_hash,
            account_id: Some(account.generation as usize),
            code: None,
        }))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode> {
        let code = self.overlay.code_by_hash(hash)?;
        self.looked_up(work::code(code.len()))?;
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256> {
        self.loaded()?;
        match self.generation(&address) {
            Some(generation) => self.overlay.storage_of_life(&address, generation, &slot),
            None => self.overlay.storage(&address, &slot),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256> {
        self.looked_up(work::LOOKUP)?;
        self.overlay.block_hash(number)
    }
}
