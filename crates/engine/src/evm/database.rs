//! The database of an EVM: the overlay of the current run and its watch.
//!
//! Both are set before a run and removed after it (`machine`), so no run sees data read for another
//! run.
//!
//! Keys that the state does not know are collected in `missing`, and the run continues with a
//! default: an account without code, a zero slot, empty code. The run then has no valid outcome;
//! the caller must check `missing`.

use std::mem;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use revm::{bytecode::Bytecode, database_interface::DBErrorMarker, state::AccountInfo};

use crate::{
    deadline::{Limits, Watch},
    error::{Error, Result},
    evm::{hashed::HashedPairs, overlay::Overlay, transfers::LogIndices, work},
    missing_keys::{MOST_KEYS, Missed},
    state::StateReader,
};

/// The number of accounts to remember: most storage reads belong to a recently read account.
const RECENT: usize = 8;

impl DBErrorMarker for Error {}

#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) overlay: Overlay,
    pub(crate) watch: Watch,
    /// Generations of recently read accounts, so that a storage read need not read the account
    /// again. They are used only for accounts without an overlay entry, whose state does not
    /// change.
    recent: [Option<Recent>; RECENT],
    next: usize,
    /// Keys that were requested and are unknown.
    pub(crate) missing: Missed,
    /// Hash preimages that may explain missing slots. Set only above a partial base state.
    pub(crate) hashed: Option<HashedPairs>,
    /// The indices of the run's logs.
    pub(crate) log_indices: LogIndices,
}

#[derive(Debug, Clone, Copy)]
struct Recent {
    address: Address,
    generation: u64,
}

/// The balance of an unknown account: high enough that the run continues and reveals further
/// missing keys.
const UNKNOWN_BALANCE: U256 = U256::from_limbs([0, 1 << 32, 0, 0]);

impl Database {
    pub(crate) fn new(overlay: Overlay, watch: Watch) -> Self {
        let hashed = overlay.may_miss().then(HashedPairs::default);
        Self { overlay, watch, hashed, ..Self::default() }
    }

    /// Prepares an idle database, whose overlay was set, for a run.
    pub(crate) fn begin(&mut self, limits: Limits, next_log: u64) {
        self.watch = Watch::new(limits);
        self.recent = [None; RECENT];
        self.hashed = self.overlay.may_miss().then(HashedPairs::default);
        self.log_indices = LogIndices::starting_at(next_log);
    }

    /// Removes all that belongs to a run except the overlay.
    pub(crate) fn end(&mut self) -> (Watch, Missed, Option<HashedPairs>, LogIndices) {
        let (missing, log_indices) =
            (mem::take(&mut self.missing), mem::take(&mut self.log_indices));
        (mem::take(&mut self.watch), missing, self.hashed.take(), log_indices)
    }

    /// Counts a completed lookup of this duration. Fails if the run must stop.
    fn looked_up(&mut self, nanoseconds: u64) -> Result<()> {
        if self.watch.work(nanoseconds) { Err(self.stopped()) } else { Ok(()) }
    }

    /// Counts a lookup whose result stays in memory until the run ends.
    fn loaded(&mut self) -> Result<()> {
        if self.watch.charge_entry(work::LOOKUP) { Err(self.stopped()) } else { Ok(()) }
    }

    fn stopped(&self) -> Error {
        self.watch.error().unwrap_or(Error::DeadlineExceeded)
    }

    fn generation(&self, address: &Address) -> Option<u64> {
        let mut recent = self.recent.iter().flatten();
        recent.find(|known| known.address == *address).map(|known| known.generation)
    }

    /// A recently read account that has this code.
    fn owner_of(&self, hash: B256) -> Option<Address> {
        let mut recent = self.recent.iter().flatten().map(|known| known.address);
        recent.find(|address| {
            let account = self.overlay.account_or_default(address);
            account.is_ok_and(|account| account.is_some_and(|it| it.code_hash == hash))
        })
    }

    /// Returns `None` if the value is missing, and records its keys. Fails after too many misses.
    fn or_missing<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(Error::StateMissing(keys)) => {
                let missing = self.missing.keys_mut();
                missing.merge(*keys);
                match missing.len() >= MOST_KEYS {
                    true => Err(missing.clone().into()),
                    false => Ok(None),
                }
            }
            Err(other) => Err(other),
        }
    }
}

impl revm::Database for Database {
    type Error = Error;

    /// The generation passes through revm as the account's id, for `Overlay::commit`.
    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>> {
        self.loaded()?;
        let read = self.overlay.account_or_default(&address);
        let Some(found) = self.or_missing(read)? else { return Ok(Some(unknown_account())) };
        let Some(account) = found else { return Ok(None) };
        self.recent[self.next % RECENT] = Some(Recent { address, generation: account.generation });
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
        let read = self.overlay.code_by_hash(hash);
        let Some(code) = self.or_missing(read)? else {
            let owner = self.owner_of(hash);
            self.missing.keys_mut().codes.insert(hash, owner);
            // With empty code the frame succeeds immediately and its caller continues.
            return Ok(Bytecode::default());
        };
        self.looked_up(work::code(code.len()))?;
        Ok(code)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256> {
        self.loaded()?;
        let read = match self.generation(&address) {
            Some(generation) => self.overlay.storage_of_life(&address, generation, &slot),
            None => self.overlay.storage_or_default(&address, &slot),
        };
        let found = self.or_missing(read)?;
        if found.is_none() {
            // The account itself may be missing. Record the slot too, to fetch both at once.
            self.missing.keys_mut().insert_slot(address, slot);
        }
        Ok(found.unwrap_or_default())
    }

    fn block_hash(&mut self, number: u64) -> Result<B256> {
        self.looked_up(work::LOOKUP)?;
        let read = self.overlay.block_hash(number);
        Ok(self.or_missing(read)?.unwrap_or_default())
    }
}

fn unknown_account() -> AccountInfo {
    AccountInfo {
        balance: UNKNOWN_BALANCE,
        nonce: 0,
        code_hash: KECCAK256_EMPTY,
        account_id: Some(0),
        code: None,
    }
}
