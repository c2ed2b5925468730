//! Rows of Python's: looked at where they lie in the map, and written beside commits.

use super::open::Store;
use super::view::View;
use super::{check_row_key, lmdb};
use crate::error::Result;

impl View {
    /// What `read` makes of some rows, without a copy of them; those that are not there are
    /// `None`. Nothing else can be read from this view meanwhile.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long, what `read` gives, `StoreClosed`, `StoreDamaged`, `Store`.
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
    /// Writes and deletes rows of Python's that change no answer, in one durable transaction.
    /// No number is drawn, so that caches and batches stay valid.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long, `StoreReadOnly`, `StoreFull`,
    /// `DiskFull`, or what the store failed with.
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
