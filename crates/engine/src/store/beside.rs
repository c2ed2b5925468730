//! Data that are written beside commits, and rows read in place.
//!
//! Each write is one durable transaction that allocates no commit number, so caches and batches
//! stay valid. Python-owned rows (`put_rows`) are those that no response depends on. Hashes of
//! blocks before the first block of the store, for BLOCKHASH, are in the table of codes: `b` ‖
//! number (8) → hash (32); keys of codes have 32 bytes. Accounts in key order (`load`) are appended
//! to an empty store: ten million take seconds, where individual inserts take minutes. The first
//! block is then added with `Batch::append` as usual.

use alloy_primitives::{Address, B256};
use heed::{AnyTls, PutFlags, RoTxn};

use super::heads::Fields;
use super::open::Store;
use super::tables::block_key;
use super::tables::{Table, Tables};
use super::view::View;
use super::{check_row_key, lmdb};
use crate::error::{Error, Result};
use crate::state::AccountState;
use crate::store::entry;

impl View {
    /// Reads the table of Python-owned rows. `read` must not read from this view itself.
    pub(crate) fn read_rows<T>(
        &self,
        read: impl FnOnce(Table, &RoTxn<AnyTls>) -> Result<T>,
    ) -> Result<T> {
        self.lease.read(|txn| read(self.lease.tables.rows, txn))
    }

    /// Passes rows to `read` without copying them; a missing row is `None`. `read` must not read
    /// from this view itself.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a key is empty or too long, the errors of `read`, `StoreClosed`,
    /// `StoreDamaged`, `Store`.
    pub fn with_rows<const N: usize, T>(
        &self,
        keys: [&[u8]; N],
        read: impl FnOnce([Option<&[u8]>; N]) -> Result<T>,
    ) -> Result<T> {
        keys.iter().try_for_each(|key| check_row_key(key))?;
        self.lease.read(|txn| {
            let mut rows = [None; N];
            for (row, key) in rows.iter_mut().zip(keys) {
                *row = self.lease.tables.rows.get(txn, key).map_err(lmdb)?;
            }
            read(rows)
        })
    }
}

impl Store {
    /// Writes and deletes Python-owned rows that no answer depends on.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a key is empty or too long, `StoreReadOnly`, `StoreFull`, `DiskFull`,
    /// or another store error.
    pub fn put_rows(&self, put: &[(&[u8], &[u8])], deleted: &[&[u8]]) -> Result<()> {
        put.iter().try_for_each(|(key, _)| check_row_key(key))?;
        deleted.iter().try_for_each(|key| check_row_key(key))?;
        self.write(|txn| {
            for key in deleted {
                self.tables.rows.delete(txn, key).map_err(lmdb)?;
            }
            for (key, row) in put {
                self.tables.rows.put(txn, key, row).map_err(lmdb)?;
            }
            Ok(())
        })
    }

    /// Stores hashes of blocks before the first block.
    ///
    /// # Errors
    ///
    /// `RefusedCommit` for a block that is not before the first one, `StoreReadOnly`, or any other
    /// store error.
    pub fn put_ancestor_hashes(&self, hashes: &[(u64, B256)]) -> Result<()> {
        self.write(|txn| {
            let first = self.tables.sealed.first(txn).map_err(lmdb)?;
            let first = first.map_or(Ok(u64::MAX), |(key, _)| Fields(key).number())?;
            for (number, hash) in hashes {
                if *number >= first {
                    let why = format!("block {number} is not below the first one, {first}");
                    return Err(Error::RefusedCommit(why));
                }
                self.tables.codes.put(txn, &block_key(*number), hash.as_slice()).map_err(lmdb)?;
            }
            Ok(())
        })
    }

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

impl Tables {
    pub(super) fn hash_below(&self, txn: &RoTxn<AnyTls>, number: u64) -> Result<Option<B256>> {
        let row = self.codes.get(txn, &block_key(number)).map_err(lmdb)?;
        let hash = |row| B256::try_from(row);
        row.map(hash).transpose().map_err(|_| {
            Error::StoreDamaged(format!("the hash of block {number} has not 32 bytes"))
        })
    }
}
