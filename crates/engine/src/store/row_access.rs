//! Python-owned rows: read in place from the map, and written outside of commits.

use heed::{AnyTls, RoTxn};

use super::open::{Store, Table};
use super::view::View;
use super::{check_row_key, lmdb};
use crate::error::Result;

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
    /// Writes and deletes Python-owned rows that no answer depends on, in one durable transaction.
    /// No commit number is allocated, so caches and batches stay valid.
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
}
