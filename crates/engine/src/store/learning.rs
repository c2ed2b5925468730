//! State learned about an anchor, stored below all changes of later blocks.
//!
//! An account or a slot becomes a flat entry of the anchor's block, also if it does not exist or is
//! zero, so it is known for every state above. No commit number is allocated. A key that already
//! has an entry is not changed. Data that is valid at any block is stored in the table of codes by
//! its hash: codes, and trie nodes from proofs (`learned_nodes`). Hashes of blocks below the anchor
//! are also stored there, until the anchor is replaced.
//!
//! | row in `codes`        | value                     |
//! |-----------------------|---------------------------|
//! | code hash (32)        | code                      |
//! | `b` block (8)         | its hash (32)             |

use std::sync::{Arc, PoisonError};

use alloy_primitives::B256;
use heed::RwTxn;

use super::heads::{Anchor, Heads};
use super::learned_nodes::{self, KeptNodes};
use super::lmdb;
use super::open::Store;
use super::tables::Tables;
use super::tables::{BLOCK, block_key};
use crate::error::Result;
use crate::fetched_state::{FetchedState, Row};
use crate::state::AccountState;
use crate::store::entry;

/// The kind of a row in the table of codes, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRow {
    /// A code or a node, whose value has this hash.
    Hashed(B256),
    Block,
    /// The state of the halves of learned nodes.
    KeptNodes,
}

pub(super) fn code_row(key: &[u8]) -> Option<CodeRow> {
    if let Some(hash) = learned_nodes::hash_in(key) {
        return Some(CodeRow::Hashed(hash));
    }
    match key {
        kept if learned_nodes::is_kept_row(kept) => Some(CodeRow::KeptNodes),
        [BLOCK, number @ ..] if number.len() == 8 => Some(CodeRow::Block),
        hash if hash.len() == 32 => Some(CodeRow::Hashed(B256::from_slice(hash))),
        _ => None,
    }
}

impl Store {
    /// Sets the fallback of views for unknown keys. It is used if the base is partial and of the
    /// same epoch.
    pub fn set_fallback_state(&self, learned: Option<Arc<FetchedState>>) {
        *self.fallback_state.lock().unwrap_or_else(PoisonError::into_inner) = learned;
    }

    pub(super) fn learned(&self) -> Option<Arc<FetchedState>> {
        self.fallback_state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores what was learned and is not stored yet; returns the number of new rows. The only
    /// change is that unknown keys become known, so no commit number is allocated.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, `StoreFull`, `DiskFull`, or another store error.
    pub fn learn(&self, learned: &FetchedState) -> Result<usize> {
        let view = self.view()?;
        let epoch = view.heads().anchor.map(|anchor| anchor.epoch);
        view.close();
        if epoch != Some(learned.epoch) || learned.unstored() == 0 {
            return Ok(0);
        }
        // Blocks concurrent commits, which could replace the anchor.
        let layers = self.layers()?;
        let (rows, inserted) = learned.rows();
        let stored = self.write(|txn| {
            let heads = self.tables.heads(txn)?;
            self.tables.put_learned(txn, &heads, learned.epoch, &rows)
        })?;
        drop(layers);
        if stored.is_some() {
            learned.stored(inserted);
        }
        Ok(stored.unwrap_or_default())
    }
}

impl Tables {
    /// Stores rows of an epoch and returns the number of new ones; `None` if the base has another
    /// epoch.
    pub(super) fn put_learned(
        &self,
        txn: &mut RwTxn,
        heads: &Heads,
        epoch: u64,
        rows: &[Row],
    ) -> Result<Option<usize>> {
        let Some(anchor) = heads.anchor.filter(|anchor| anchor.epoch == epoch) else {
            return Ok(None);
        };
        let mut stored = 0;
        let before = self.kept_nodes(txn)?;
        let mut kept = before;
        for row in rows {
            stored += usize::from(self.put_learned_row(txn, &anchor, &mut kept, row)?);
        }
        if kept != before {
            self.put_kept_nodes(txn, kept)?;
        }
        Ok(Some(stored))
    }

    fn put_learned_row(
        &self,
        txn: &mut RwTxn,
        anchor: &Anchor,
        kept: &mut KeptNodes,
        row: &Row,
    ) -> Result<bool> {
        match row {
            Row::Account(address, account) => {
                let account = account
                    .map(|it| AccountState { generation: anchor.generation, ..it })
                    .as_ref()
                    .map(entry::encode_account);
                let key = entry::account_key(address);
                self.put_below(txn, anchor, &key, &account.unwrap_or_default())
            }
            Row::Slot(address, slot, value) => {
                let key = entry::slot_key(address, anchor.generation, slot);
                self.put_below(txn, anchor, &key, &entry::encode_slot(value))
            }
            Row::Code(hash, code) => self.put_new(txn, hash.as_slice(), code),
            Row::Node(hash, node) => self.put_learned_node(txn, kept, hash, node),
            Row::Block(number, hash) => self.put_new(txn, &block_key(*number), hash.as_slice()),
        }
    }

    /// Puts an entry of the anchor, unless the key has an entry of any block: a key that a block
    /// changed was known before, so a value learned now is from a later block.
    fn put_below(
        &self,
        txn: &mut RwTxn,
        anchor: &Anchor,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let newest = entry::versioned(key, u64::MAX);
        let found = self.flat.get_greater_than_or_equal_to(txn, &newest).map_err(lmdb)?;
        if found.is_some_and(|(found, _)| found.len() == newest.len() && found.starts_with(key)) {
            return Ok(false);
        }
        self.flat.put(txn, &entry::versioned(key, anchor.number), value).map_err(lmdb)?;
        Ok(true)
    }

    fn put_new(&self, txn: &mut RwTxn, key: &[u8], value: &[u8]) -> Result<bool> {
        let is_new = self.codes.get(txn, key).map_err(lmdb)?.is_none();
        if is_new {
            self.codes.put(txn, key, value).map_err(lmdb)?;
        }
        Ok(is_new)
    }

    /// Deletes hashes below the old anchor, which may be of another chain than the next anchor.
    pub(super) fn forget_learned_blocks(&self, txn: &mut RwTxn) -> Result<()> {
        let mut keys = Vec::new();
        for row in self.codes.prefix_iter(txn, &[BLOCK]).map_err(lmdb)? {
            let (key, _) = row.map_err(lmdb)?;
            if code_row(key) == Some(CodeRow::Block) {
                keys.push(key.to_vec());
            }
        }
        for key in keys {
            self.codes.delete(txn, &key).map_err(lmdb)?;
        }
        Ok(())
    }
}
