//! One snapshot: a read transaction and the heads row as of it.
//!
//! A view sees one commit whole, for as long as it is open, whatever is committed
//! meanwhile. It keeps old pages from being reused, so it lives for one request.
//! Closing is explicit; a state taken from a closed view answers `StoreClosed`.
//!
//! LMDB allows one thread at a time in a transaction. The lock around it costs some
//! ten nanoseconds a read and makes a view safe to hand to another thread.

use std::sync::{Arc, Mutex};

use heed::{AnyTls, RoTxn, WithoutTls};

use super::heads::Heads;
use super::open::{Store, Tables};
use super::record::{Partial, SealedBlock};
use super::state::State;
use super::{check_row_key, lmdb};
use crate::error::{Error, Result};

#[derive(Clone)]
pub struct View {
    pub(super) snapshot: Arc<Snapshot>,
}

pub(super) struct Snapshot {
    txn: Mutex<Option<RoTxn<'static, WithoutTls>>>,
    pub tables: Tables,
    pub heads: Arc<Heads>,
}

impl Snapshot {
    pub fn read<T>(&self, read: impl FnOnce(&RoTxn<'_, AnyTls>) -> Result<T>) -> Result<T> {
        let guard = self.txn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        read(guard.as_ref().ok_or(Error::StoreClosed)?)
    }
}

impl Store {
    pub fn view(&self) -> Result<View> {
        let txn = self.env.clone().static_read_txn().map_err(lmdb)?;
        let heads = self.last_heads.of(txn.id(), || self.tables.heads(&txn))?;
        let snapshot = Snapshot { txn: Mutex::new(Some(txn)), tables: self.tables, heads };
        Ok(View { snapshot: Arc::new(snapshot) })
    }
}

impl View {
    /// The same for all views of one transaction.
    pub fn heads(&self) -> &Arc<Heads> {
        &self.snapshot.heads
    }

    pub fn close(&self) {
        *self.snapshot.txn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
    }

    pub fn sealed(&self, block: u64) -> Result<Option<SealedBlock>> {
        self.snapshot.read(|txn| self.snapshot.tables.sealed_block(txn, block))
    }

    pub fn partial(&self, number: u64) -> Result<Option<Partial>> {
        self.snapshot.read(|txn| self.snapshot.tables.partial(txn, number))
    }

    /// The state after a sealed block.
    pub fn state(&self, block: u64) -> Result<State> {
        State::of_block(&self.snapshot, block)
    }

    /// The state after a partial block.
    pub fn state_of_partial(&self, number: u64) -> Result<State> {
        State::of_partial(&self.snapshot, number)
    }

    /// A row of Python's.
    pub fn row(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        check_row_key(key)?;
        self.snapshot.read(|txn| {
            let row = self.snapshot.tables.rows.get(txn, key).map_err(lmdb)?;
            Ok(row.map(<[u8]>::to_vec))
        })
    }

    /// Up to `limit` rows of Python's whose keys begin with `prefix`, in order.
    pub fn rows(&self, prefix: &[u8], limit: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        check_row_key(prefix)?;
        self.snapshot.read(|txn| {
            let rows = self.snapshot.tables.rows.prefix_iter(txn, prefix).map_err(lmdb)?;
            rows.take(limit)
                .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(lmdb))
                .collect()
        })
    }
}

impl Tables {
    pub fn sealed_block(&self, txn: &RoTxn<AnyTls>, block: u64) -> Result<Option<SealedBlock>> {
        let row = self.sealed.get(txn, &block.to_be_bytes()).map_err(lmdb)?;
        row.map(SealedBlock::decode).transpose()
    }

    pub fn partial(&self, txn: &RoTxn<AnyTls>, number: u64) -> Result<Option<Partial>> {
        let row = self.partials.get(txn, &number.to_be_bytes()).map_err(lmdb)?;
        row.map(Partial::decode).transpose()
    }
}
