//! Checks state entries in the flat table and in deltas, and codes.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use alloy_primitives::{Address, keccak256};
use heed::{AnyTls, RoTxn};

use super::Check;
use crate::error::{Error, Result};
use crate::state::{AccountState, StateReader};
use crate::store::delta;
use crate::store::entry::{self, ACCOUNT, INDEX, MAX_INDEX_VALUE, RETIRED, SLOT};
use crate::store::heads::Fields;
use crate::store::learned_nodes::KeptNodes;
use crate::store::learning::{CodeRow, code_row};
use crate::store::lmdb;

impl Check {
    /// Checks each row of the `codes` table; codes and nodes must have the hash they are stored
    /// under.
    pub(super) fn codes(&self) -> Result<()> {
        let codes = self.view.lease.tables.codes;
        self.view.lease.read(|txn| {
            self.progress.begin(codes.len(txn).map_err(lmdb)?);
            for row in codes.iter(txn).map_err(lmdb)? {
                let (key, code) = row.map_err(lmdb)?;
                self.progress.advance()?;
                let hash = keccak256(code);
                match code_row(key) {
                    Some(CodeRow::Hashed(of)) if of != hash => {
                        self.progress.report("codes", key, format!("the code has the hash {hash}"));
                    }
                    Some(CodeRow::Block) if code.len() != hash.len() => {
                        self.progress.report("codes", key, "the hash of a block is not one");
                    }
                    Some(CodeRow::KeptNodes) => {
                        self.reported("codes", key, KeptNodes::decode(code).map(drop))?;
                    }
                    None => self.progress.report("codes", key, "the key is none of this table"),
                    Some(_) => {}
                }
            }
            Ok(())
        })
    }

    /// Checks that each row of the flat table is a valid versioned entry whose code exists.
    pub(super) fn entries(&self) -> Result<()> {
        let flat = self.view.lease.tables.flat;
        let mut versions: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut accounts, mut last) = (0, Vec::new());
        self.view.lease.read(|txn| {
            self.progress.begin(flat.len(txn).map_err(lmdb)?);
            for row in flat.iter(txn).map_err(lmdb)? {
                let (row_key, value) = row.map_err(lmdb)?;
                self.progress.advance()?;
                let read = entry::unversioned(row_key).and_then(|key| {
                    self.entry(txn, key, value)?;
                    Ok(Some(key))
                });
                let Some(key) = self.reported("flat", row_key, read)? else { continue };
                let block = !Fields(&row_key[key.len()..]).number()?;
                *versions.entry(block).or_default() += 1;
                if key[0] == ACCOUNT && last != key {
                    accounts += 1;
                    last = key.to_vec();
                }
            }
            Ok(())
        })?;
        self.accounts.store(accounts, Ordering::Relaxed);
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = versions;
        Ok(())
    }

    /// Fails unless a commit of this store can have written the entry.
    fn entry(&self, txn: &RoTxn<AnyTls>, key: &[u8], value: &[u8]) -> Result<()> {
        let damaged = |why: &str| Err(Error::StoreDamaged(why.into()));
        let commit = self.view.heads().commit;
        match key[0] {
            ACCOUNT => {
                let Some(account) = entry::decode_account(value)? else { return Ok(()) };
                if account.generation > commit {
                    return damaged("an account has a generation of a later commit");
                }
                let codes = self.view.lease.tables.codes;
                let hash = account.code_hash;
                // Codes may be unknown on a partial base.
                let is_whole = self.view.heads().anchor.is_none();
                if account.has_code()
                    && is_whole
                    && codes.get(txn, hash.as_slice()).map_err(lmdb)?.is_none()
                {
                    return Err(Error::MissingCode(hash));
                }
                Ok(())
            }
            SLOT => {
                let (_, generation, _) = entry::parse_slot_key(key)?;
                if generation > commit {
                    return damaged("a slot has a generation of a later commit");
                }
                entry::decode_slot(value).map(drop)
            }
            INDEX if value.len() > MAX_INDEX_VALUE => damaged("an index row is too long"),
            RETIRED if !value.is_empty() => damaged("a retired generation has a value"),
            _ => Ok(()),
        }
    }

    /// Checks that the retained delta of each block matches the flat table at its height, and that
    /// the delta of each partial can be read.
    pub(super) fn changes(&self) -> Result<()> {
        let heads = self.view.heads();
        let Some(latest) = self.latest() else { return Ok(()) };
        let partials = self.partial_numbers()?;
        self.progress.begin(latest - heads.earliest + partials.len() as u64);
        for block in heads.earliest + 1..=latest {
            self.progress.advance()?;
            let key = block.to_be_bytes();
            let Some(sealed) = self.reported("sealed", &key, self.view.sealed(block))? else {
                self.progress.report("sealed", &key, format!("block {block} is missing"));
                continue;
            };
            let done = self.changes_of_block(block, sealed.delta);
            self.reported("deltas", &sealed.delta.to_be_bytes(), done)?;
        }
        for number in partials {
            self.progress.advance()?;
            let read = self.delta(number).map(drop);
            self.reported("deltas", &number.to_be_bytes(), read)?;
        }
        Ok(())
    }

    fn partial_numbers(&self) -> Result<Vec<u64>> {
        let partials = self.view.lease.tables.partials;
        self.view.lease.read(|txn| {
            let keys = partials.iter(txn).map_err(lmdb)?;
            let number =
                |row: heed::Result<(&[u8], &[u8])>| Ok(Fields(row.map_err(lmdb)?.0).number().ok());
            keys.filter_map(|row| number(row).transpose()).collect()
        })
    }

    /// The entries of a delta, all checked.
    fn delta(&self, number: u64) -> Result<entry::Entries> {
        let deltas = self.view.lease.tables.deltas;
        self.view.lease.read(|txn| {
            let entries = delta::read(deltas, txn, number)?;
            for (key, value) in &entries {
                let of = |why: Error| Error::StoreDamaged(format!("{}: {why}", show(key)));
                self.entry(txn, key, value).map_err(of)?;
            }
            Ok(entries)
        })
    }

    fn changes_of_block(&self, block: u64, number: u64) -> Result<()> {
        let entries = self.delta(number)?;
        let report = |why: String| self.progress.report("deltas", &number.to_be_bytes(), why);
        if block <= self.view.heads().folded {
            self.compare_with_flat(block, number, &entries)?;
        }
        let (before, after) = (self.view.state(block - 1)?, self.view.state(block)?);
        for key in entries.keys() {
            if key[0] == RETIRED {
                let address = Address::from_slice(&key[1..21]);
                let lives = after.account(&address)?.map(|account| account.generation);
                if lives == Some(Fields(&key[21..]).number()?) {
                    report(format!("block {block} retires the storage that {address} has"));
                }
            }
            if key[0] == ACCOUNT {
                let address = Address::from_slice(&key[1..]);
                let generation = |account: AccountState| account.generation;
                let (then, now) = (before.account(&address)?, after.account(&address)?);
                if let Some(then) = then.map(generation)
                    && now.map(generation) != Some(then)
                    && !entries.contains_key(&retired_key(&address, then))
                {
                    report(format!(
                        "block {block} does not retire the former storage of {address}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn compare_with_flat(&self, block: u64, number: u64, entries: &entry::Entries) -> Result<()> {
        let flat = self.view.lease.tables.flat;
        let mut folded = 0;
        self.view.lease.read(|txn| {
            for (key, value) in entries.iter().filter(|(key, _)| key[0] != RETIRED) {
                let row_key = entry::versioned(key, block);
                match flat.get(txn, &row_key).map_err(lmdb)? {
                    None => {
                        let why = format!("block {block} changed {}, and has no row", show(key));
                        self.progress.report("flat", &row_key, why);
                    }
                    Some(found) => {
                        folded += 1;
                        if found != value.as_slice() {
                            let why = format!(
                                "{} at block {block} is not what delta {number} says",
                                show(key)
                            );
                            self.progress.report("flat", &row_key, why);
                        }
                    }
                }
            }
            Ok(())
        })?;
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = versions.get(&block).copied().unwrap_or_default();
        if found != folded {
            let why = format!(
                "block {block} has {found} rows in the flat table, {folded} of them in its delta"
            );
            self.progress.report("deltas", &number.to_be_bytes(), why);
        }
        Ok(())
    }
}

fn retired_key(address: &Address, generation: u64) -> Vec<u8> {
    let mut key = entry::slots_prefix(address, generation).to_vec();
    key[0] = RETIRED;
    key
}

/// Describes an entry for a report.
fn show(key: &[u8]) -> String {
    match (key.first(), entry::parse_slot_key(key)) {
        (_, Ok((address, _, slot))) => format!("slot {slot:#x} of {address}"),
        (Some(&ACCOUNT), _) if key.len() == 21 => {
            format!("account {}", Address::from_slice(&key[1..]))
        }
        (Some(&INDEX), _) => "an index row".into(),
        _ => "an entry".into(),
    }
}
