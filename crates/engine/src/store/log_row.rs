//! Where a store stands in the log that it writes or follows.
//!
//! The row is written by the commit that it is about, in the same transaction. A store that
//! makes a commit outside of the log is no part of the log any more, and loses its row.
//!
//! | row in `meta` | value                                       |
//! |---------------|---------------------------------------------|
//! | `log`         | epoch (8), link (32), stream sequence (8)   |

use alloy_primitives::B256;
use heed::{AnyTls, RoTxn, RwTxn};

use super::heads::Fields;
use super::lmdb;
use super::open::{Store, Tables};
use super::view::View;
use crate::error::{Error, Result};

const LOG: &[u8] = b"log";

/// What a log says about its last commit here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogRow {
    /// Of the writer that made it.
    pub epoch: u64,
    /// SHA-256 that stands for it and all commits before it.
    pub link: B256,
    /// Its number in the stream.
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
    /// `None` in a store that is no part of a log.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn log_row(&self) -> Result<Option<LogRow>> {
        self.lease.read(|txn| self.lease.tables.log_row(txn))
    }
}

impl Store {
    /// Replace the note beside the log: it is local, so no number is drawn.
    ///
    /// # Errors
    ///
    /// `StaleBatch` when the store is not at this commit, `StoreReadOnly`, `StoreFull`,
    /// `DiskFull`, or what the store failed with.
    pub fn put_note(&self, commit: u64, note: &[u8]) -> Result<()> {
        self.write(|txn| {
            let mut heads = self.tables.heads(txn)?;
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
