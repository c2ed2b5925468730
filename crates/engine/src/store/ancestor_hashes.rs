//! Hashes of blocks before the first block of the store, for BLOCKHASH.
//!
//! They are stored in the `codes` table: `b` ‖ number (8) → hash (32). Keys of codes have 32 bytes.

use alloy_primitives::B256;
use heed::{AnyTls, RoTxn};

use super::learning::block_key;
use super::lmdb;
use super::open::{Store, Tables};
use crate::error::{Error, Result};

impl Tables {
    pub(super) fn hash_below(&self, txn: &RoTxn<AnyTls>, number: u64) -> Result<Option<B256>> {
        let row = self.codes.get(txn, &block_key(number)).map_err(lmdb)?;
        let hash = |row| B256::try_from(row);
        row.map(hash).transpose().map_err(|_| {
            Error::StoreDamaged(format!("the hash of block {number} has not 32 bytes"))
        })
    }
}

impl Store {
    /// Stores hashes of blocks before the first block. Draws no commit number.
    ///
    /// # Errors
    ///
    /// `RefusedCommit` for a block that is not before the first one, `StoreReadOnly`, or any other
    /// store error.
    pub fn put_ancestor_hashes(&self, hashes: &[(u64, B256)]) -> Result<()> {
        self.write(|txn| {
            let first = self.tables.sealed.first(txn).map_err(lmdb)?;
            let first =
                first.map_or(Ok(u64::MAX), |(key, _)| super::heads::Fields(key).number())?;
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
}
