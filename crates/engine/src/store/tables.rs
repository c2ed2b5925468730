//! The tables of a store, and the heads row.

use std::fs::File;
use std::path::Path;

use heed::types::Bytes;
use heed::{AnyTls, Database, Env, RoTxn, RwTxn, WithoutTls};

use super::disk;
use super::heads::Heads;
use super::lmdb;
use crate::error::{Error, Result};

pub(crate) type Table = Database<Bytes, Bytes>;

/// Begins the key of a block's hash in the table of codes; keys of codes have 32 bytes.
pub(super) const BLOCK: u8 = b'b';

pub(super) fn block_key(number: u64) -> [u8; 9] {
    let mut key = [BLOCK; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

pub(super) const HEADS: &[u8] = b"heads";
/// Stored instead of the heads row in the table where older stores have it.
const HEADS_AT_THE_ROOT: u8 = 2;

/// LMDB's longest key. Empty keys are invalid.
const MAX_ROW_KEY: usize = 511;

pub(crate) fn check_row_key(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=MAX_ROW_KEY => Ok(()),
        length => {
            Err(Error::invalid(format!("a row key has 1 to {MAX_ROW_KEY} bytes, not {length}")))
        }
    }
}

#[derive(Clone, Copy)]
pub struct Tables {
    /// The heads row and the cursors of sliced work. This is LMDB's main database, which lists the
    /// other tables and is rewritten by every commit, so each commit writes one page less.
    pub meta: Table,
    /// The `meta` table of stores created by older versions, which keep their rows there.
    former_meta: Table,
    /// Flat state: entry key ‖ ~block → value.
    pub flat: Table,
    /// Deltas in chunks: number ‖ first entry key → chunk.
    pub deltas: Table,
    /// Code by hash; learned rows (`learning`); hashes of blocks before the first one
    /// (`beside`).
    pub codes: Table,
    /// Sealed blocks by number.
    pub sealed: Table,
    /// Partial blocks by partial number.
    pub partials: Table,
    /// Trie nodes: node key ‖ ~block → RLP, empty for a deleted node.
    pub nodes: Table,
    /// Keys of the trie nodes that a block wrote: block ‖ chunk → keys.
    pub node_changes: Table,
    /// Scheduled deletions: sequence number → `record::Garbage`.
    pub trash: Table,
    /// Python-owned rows.
    pub rows: Table,
}

impl Tables {
    pub(super) const NAMES: [&'static str; 10] = [
        "meta",
        "flat",
        "deltas",
        "codes",
        "sealed",
        "partials",
        "nodes",
        "node_changes",
        "trash",
        "rows",
    ];

    pub(super) fn each(
        mut open: impl FnMut(Option<&'static str>) -> Result<Table>,
    ) -> Result<Self> {
        let meta = open(None)?;
        let mut open = |name| open(Some(name));
        let [former_meta, flat, deltas, codes, sealed, partials, nodes, node_changes, trash, rows] =
            Self::NAMES;
        Ok(Self {
            meta,
            former_meta: open(former_meta)?,
            flat: open(flat)?,
            deltas: open(deltas)?,
            codes: open(codes)?,
            sealed: open(sealed)?,
            partials: open(partials)?,
            nodes: open(nodes)?,
            node_changes: open(node_changes)?,
            trash: open(trash)?,
            rows: open(rows)?,
        })
    }

    pub(super) fn all(&self) -> [Table; 10] {
        let Self {
            meta,
            flat,
            deltas,
            codes,
            sealed,
            partials,
            nodes,
            node_changes,
            trash,
            rows,
            ..
        } = *self;
        [meta, flat, deltas, codes, sealed, partials, nodes, node_changes, trash, rows]
    }

    /// Sets `meta` to the table that holds the heads row.
    pub(super) fn with_heads_row_of(self, txn: &RoTxn<AnyTls>) -> Result<Self> {
        match self.former_meta.get(txn, HEADS).map_err(lmdb)? {
            Some([HEADS_AT_THE_ROOT]) => Ok(self),
            _ => Ok(Self { meta: self.former_meta, ..self }),
        }
    }

    fn heads_row<'t>(&self, txn: &'t RoTxn<AnyTls>) -> Result<Option<&'t [u8]>> {
        self.meta.get(txn, HEADS).map_err(lmdb)
    }

    pub fn heads(&self, txn: &RoTxn<AnyTls>) -> Result<Heads> {
        let missing = || Error::StoreDamaged("it has no heads row".into());
        Heads::decode(self.heads_row(txn)?.ok_or_else(missing)?)
    }

    pub fn put_heads(&self, txn: &mut RwTxn, heads: &Heads) -> Result<()> {
        self.meta.put(txn, HEADS, &heads.encode()).map_err(lmdb)
    }
}

/// Opens the tables and creates missing ones, with the heads row of an empty store.
pub(super) fn make_tables(env: &Env<WithoutTls>, path: &Path) -> Result<Tables> {
    let mut txn = env.write_txn().map_err(lmdb)?;
    let tables = Tables::each(|name| env.create_database(&mut txn, name).map_err(lmdb))?;
    if tables.heads_row(&txn)?.is_none() && tables.former_meta.is_empty(&txn).map_err(lmdb)? {
        // A version that reads the heads from this table rejects the store by this format.
        tables.former_meta.put(&mut txn, HEADS, &[HEADS_AT_THE_ROOT]).map_err(lmdb)?;
        let heads = Heads::new(random_id()?);
        tables.meta.put(&mut txn, HEADS, &heads.encode()).map_err(lmdb)?;
    }
    let tables = tables.with_heads_row_of(&txn)?;
    tables.heads(&txn)?;
    txn.commit().map_err(|error| disk::explain(error, path))?;
    Ok(tables)
}

fn random_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    let read = File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut id));
    read.map_err(|error| Error::Store(format!("no random bytes: {error}")))?;
    Ok(id)
}
