//! Import of a whole state into an empty store, from a dump with its accounts in any order.
//!
//! Accounts and slots are written to sorted runs on disk, twice: in the order of the flat table and
//! in the order of the tries. Merging the latter gives the root and all trie nodes, which are
//! sorted in turn. Only if the root is correct are the tables filled, by appending. Memory is
//! bounded by `ImportOptions::memory`, regardless of the size of the dump or of one account in it.
//!
//! The tables are filled in several commits, so the store must be discarded if the import fails.
//! Its first block is added with `Batch::append`, followed by `Store::adopt_nodes`.

mod progress;
mod reader;
mod root;
mod runs;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::Read;

use alloy_primitives::{B256, keccak256};
use heed::PutFlags;

pub use self::progress::{ImportOptions, ImportStats, Progress};
use self::reader::{DumpReader, DumpedAccount};
use self::root::{LeafSorter, root_of};
use self::runs::{Merged, Sorter};
use self::slots::HeldSlots;
use super::lmdb;
use super::open::Store;
use super::tables::Table;
use crate::error::{Error, Result};
use crate::state::AccountState;
use crate::store::entry;

/// Rows and bytes appended by one commit.
const PORTION_ROWS: usize = 100_000;
const PORTION_BYTES: usize = 16 << 20;
/// The size of the codes written by one commit.
const CODE_BYTES: usize = 16 << 20;
/// The generation of every account of a dump. Later generations are commit numbers.
const GENERATION: u64 = 0;

impl Store {
    /// Fills the tables of an empty store with the state of a dump of `length` bytes.
    ///
    /// # Errors
    ///
    /// `BadState` if the dump is malformed or has another root than `plan` names, `RefusedCommit`
    /// if the store has blocks, `DeadlineExceeded` if it was stopped, `StoreReadOnly`, `StoreFull`,
    /// `DiskFull`, or an I/O error.
    pub fn import_state(
        &self,
        dump: impl Read,
        length: u64,
        plan: &ImportOptions,
        progress: &Progress,
    ) -> Result<ImportStats> {
        if self.view()?.heads().latest.is_some() {
            return Err(Error::RefusedCommit("the store has blocks already".into()));
        }
        progress.begin(0, length);
        let mut reading = Reading::new(self, plan);
        reading.read(&mut DumpReader::new(dump), progress)?;
        let Reading { imported, flat, leaves, .. } = reading;

        progress.begin(1, leaves.len());
        let nodes = root_of(leaves, plan, progress)?;
        progress.begin(2, flat.len());
        self.append_all(self.tables.flat, flat.finish()?, progress)?;
        progress.begin(3, nodes.len());
        self.append_all(self.tables.nodes, nodes.finish()?, progress)?;
        Ok(imported)
    }

    /// Declares that the imported nodes are those of the latest block, which must be the first.
    ///
    /// # Errors
    ///
    /// `RefusedCommit` if the store is not at this block, `StoreReadOnly`, or another store error.
    pub fn adopt_nodes(&self, block: u64) -> Result<()> {
        self.write(|txn| {
            let mut heads = self.tables.heads(txn)?;
            let latest = heads.latest.map(|latest| latest.number);
            if latest != Some(block) || heads.nodes.is_some() {
                return Err(Error::RefusedCommit(format!("block {block} is not the first")));
            }
            (heads.nodes, heads.nodes_earliest) = (Some(block), block);
            self.tables.put_heads(txn, &heads)
        })
    }

    fn append_all(&self, table: Table, mut merged: Merged, progress: &Progress) -> Result<()> {
        let mut done = 0;
        loop {
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while rows.len() < PORTION_ROWS && bytes < PORTION_BYTES {
                let Some((key, value)) = merged.next()? else { break };
                bytes += key.len() + value.len();
                rows.push((key, value));
            }
            if rows.is_empty() {
                return Ok(());
            }
            self.write(|txn| {
                let append = |(key, value): &(Vec<u8>, Vec<u8>)| {
                    table.put_with_flags(txn, PutFlags::APPEND, key, value).map_err(lmdb)
                };
                rows.iter().try_for_each(append)
            })?;
            done += rows.len() as u64;
            progress.reach(done)?;
        }
    }
}

/// The first stage: converts lines to records.
struct Reading<'a> {
    store: &'a Store,
    plan: &'a ImportOptions,
    imported: ImportStats,
    flat: Sorter,
    leaves: LeafSorter,
    codes: HashMap<B256, Vec<u8>>,
    code_bytes: usize,
}

impl<'a> Reading<'a> {
    fn new(store: &'a Store, plan: &'a ImportOptions) -> Self {
        Self {
            store,
            plan,
            imported: ImportStats::default(),
            flat: Sorter::new(&plan.folder, "flat", plan.memory / 3),
            leaves: LeafSorter::new(&plan.folder, plan.memory / 3),
            codes: HashMap::new(),
            code_bytes: 0,
        }
    }

    fn read(&mut self, dump: &mut DumpReader<impl Read>, progress: &Progress) -> Result<()> {
        let stated = dump.root()?;
        if stated != self.plan.root {
            let why = format!("the dump has the root {stated}, the header {}", self.plan.root);
            return Err(Error::BadState { line: dump.line(), why });
        }
        let mut slots = HeldSlots::new(&self.plan.folder);
        while let Some(account) = dump.account(&mut slots)? {
            self.take(account, &mut slots)?;
            progress.reach(dump.position())?;
        }
        self.put_codes()
    }

    fn take(&mut self, dumped: DumpedAccount, slots: &mut HeldSlots) -> Result<()> {
        let DumpedAccount { line, address, nonce, balance, code, storage_root } = dumped;
        let code_hash = keccak256(&code);
        if !code.is_empty() {
            self.code_bytes += code.len();
            self.codes.insert(code_hash, code);
            if self.code_bytes >= CODE_BYTES {
                self.put_codes()?;
            }
        }
        let account = AccountState { nonce, balance, code_hash, generation: GENERATION };
        let row = entry::encode_account(&account);
        self.imported.accounts += 1;
        let block = self.plan.block;
        self.flat.push(&entry::versioned(&entry::account_key(&address), block), &row)?;
        let mut owner = self.leaves.account(line, &address, &row, storage_root)?;
        slots.drain(|slot, value| {
            if value.is_zero() {
                return Ok(());
            }
            self.imported.slots += 1;
            let value = entry::encode_slot(&value);
            let key = entry::slot_key(&address, GENERATION, &slot);
            self.flat.push(&entry::versioned(&key, block), &value)?;
            owner.slot(&slot, &value)
        })
    }

    fn put_codes(&mut self) -> Result<()> {
        let table = self.store.tables.codes;
        self.store.write(|txn| {
            for (hash, code) in &self.codes {
                if table.get(txn, hash.as_slice()).map_err(lmdb)?.is_none() {
                    table.put(txn, hash.as_slice(), code).map_err(lmdb)?;
                }
            }
            Ok(())
        })?;
        (self.codes, self.code_bytes) = (HashMap::new(), 0);
        Ok(())
    }
}
