//! The database inside an EVM: the overlay of the run in progress and its watch.
//!
//! Both are put in before a run and taken out after it (`evm`), so nothing read for
//! one run can be seen by another.
//!
//! Keys that the state does not know are collected (`missing`), and the run continues with a
//! default: an account without code, a zero slot, code that stops at once. The run then has no
//! outcome; the caller must check `missing`.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use revm::{bytecode::Bytecode, database_interface::DBErrorMarker, state::AccountInfo};

use crate::{
    error::{Error, Result},
    evm::{deadline::Watch, hashed::HashedPairs, overlay::Overlay, work},
    missing_keys::{MOST_KEYS, Missed},
    state::StateReader,
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
    recent: [Option<Recent>; RECENT],
    next: usize,
    /// What was wanted and is not known.
    pub(crate) missing: Missed,
    /// Above a partial base, what may explain missing slots.
    pub(crate) hashed: Option<HashedPairs>,
}

#[derive(Debug, Clone, Copy)]
struct Recent {
    address: Address,
    generation: u64,
}

/// Of an account that is not known: enough to go on with, so that a run shows more of what it
/// wants.
const UNKNOWN_BALANCE: U256 = U256::from_limbs([0, 1 << 32, 0, 0]);

impl Database {
    pub(crate) fn new(overlay: Overlay, watch: Watch) -> Self {
        let hashed = overlay.may_miss().then(HashedPairs::default);
        Self { overlay, watch, hashed, ..Self::default() }
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
        let mut recent = self.recent.iter().flatten();
        recent.find(|known| known.address == *address).map(|known| known.generation)
    }

    /// One of the accounts read last that has this code.
    fn owner_of(&self, hash: B256) -> Option<Address> {
        let mut recent = self.recent.iter().flatten().map(|known| known.address);
        recent.find(|address| {
            let account = self.overlay.account_or_default(address);
            account.is_ok_and(|account| account.is_some_and(|it| it.code_hash == hash))
        })
    }

    /// What was read, or nothing where it is not known; with too many misses the run ends.
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

    /// The generation travels through revm as the account's id, for `Overlay::commit`.
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
            // Empty code makes this frame stop successfully, so its caller continues.
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
            // The account may be what is missing: the slot comes in the same round.
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
