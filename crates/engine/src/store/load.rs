//! Bulk loading of sorted state, as from a snapshot, into an empty store.
//!
//! Appending in key order fills pages sequentially without searching: ten million accounts take
//! seconds, where individual inserts take minutes. The first block is then added with
//! `Batch::append` as usual.

use alloy_primitives::Address;
use heed::PutFlags;

use super::lmdb;
use super::open::Store;
use crate::error::{Error, Result};
use crate::state::AccountState;
use crate::store::entry;

impl Store {
    /// Adds accounts as of block 0. Addresses must ascend within a call and from call to call. Each
    /// call is one commit.
    ///
    /// # Errors
    ///
    /// `RefusedCommit` if the store has blocks, `InvalidArgument` if addresses do not ascend,
    /// `StoreReadOnly`, `StoreFull`, `DiskFull`, or another store error.
    pub fn load(&self, accounts: &[(Address, AccountState)]) -> Result<()> {
        let flat = self.tables.flat;
        self.write(|txn| {
            if self.tables.heads(txn)?.latest.is_some() {
                return Err(Error::RefusedCommit("the store has blocks already".into()));
            }
            for (address, account) in accounts {
                let key = entry::versioned(&entry::account_key(address), 0);
                let value = entry::encode_account(account);
                flat.put_with_flags(txn, PutFlags::APPEND, &key, &value).map_err(|error| {
                    match error {
                        heed::Error::Mdb(heed::MdbError::KeyExist) => {
                            Error::invalid(format!("{address} is not above the one before"))
                        }
                        other => lmdb(other),
                    }
                })?;
            }
            Ok(())
        })
    }
}
