//! The position of a store in the log that it writes or follows.
//!
//! The row is written in the same transaction as the commit that it describes. A store that makes a
//! commit outside of the log is no longer part of the log and loses its row.
//!
//! | row in `meta` | value                                       |
//! |---------------|---------------------------------------------|
//! | `log`         | epoch (8), link (32), stream sequence (8)   |

use alloy_primitives::B256;
use heed::{AnyTls, RoTxn, RwTxn};

use super::heads::Fields;
use super::lmdb;
use super::open::Store;
use super::tables::Tables;
use super::view::View;
use crate::error::{Error, Result};

const LOG: &[u8] = b"log";

/// The last commit of a log in this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogRow {
    /// The epoch of the writer that made the commit.
    pub epoch: u64,
    /// SHA-256 that identifies this commit and all commits before it.
    pub link: B256,
    /// Its sequence number in the stream.
    pub sequence: u64,
}

impl LogRow {
    pub fn encode(&self) -> Vec<u8> {
        let (epoch, sequence) = (self.epoch.to_be_bytes(), self.sequence.to_be_bytes());
        [&epoch[..], self.link.as_slice(), &sequence].concat()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self> {
        let mut fields = Fields(row);
        let epoch = fields.number()?;
        let row = Self { epoch, link: fields.hash()?, sequence: fields.number()? };
        fields.end()?;
        Ok(row)
    }
}

impl View {
    /// `None` if the store is not part of a log.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn log_row(&self) -> Result<Option<LogRow>> {
        self.lease.read(|txn| self.lease.tables.log_row(txn))
    }
}

impl Store {
    /// Replaces the note without a log entry. The note is local, so no commit number is allocated.
    ///
    /// # Errors
    ///
    /// `StaleBatch` if the store is not at this commit, `StoreReadOnly`, `StoreFull`, `DiskFull`,
    /// or another store error.
    pub fn put_note(&self, commit: u64, note: &[u8]) -> Result<()> {
        self.write(|txn| {
            let mut heads = self.with_note(self.tables.heads(txn)?);
            if heads.commit != commit {
                return Err(Error::StaleBatch { made_at: commit, now: heads.commit });
            }
            note.clone_into(&mut heads.note);
            self.tables.put_heads(txn, &heads)
        })
    }
}

impl Tables {
    pub(super) fn log_row(&self, txn: &RoTxn<AnyTls>) -> Result<Option<LogRow>> {
        self.meta.get(txn, LOG).map_err(lmdb)?.map(LogRow::decode).transpose()
    }

    pub(super) fn put_log_row(&self, txn: &mut RwTxn, row: Option<&LogRow>) -> Result<()> {
        match row {
            Some(row) => self.meta.put(txn, LOG, &row.encode()).map_err(lmdb),
            None => self.meta.delete(txn, LOG).map(drop).map_err(lmdb),
        }
    }
}
