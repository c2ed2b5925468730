//! The changes of one block so far, as sorted entries in rows of 16 kB.
//!
//! A delta is written once, under a number that never repeats, and read by binary
//! search where it lies in the map. Each row is a *chunk* that begins with an index
//! of its own; its key is `number ‖ first entry key`, so LMDB's own search finds
//! the chunk and nothing has to list them. Rows of this size need no long runs of
//! free pages, and rewriting a delta whole costs a few contiguous pages instead of
//! one scattered page per entry.
//!
//! What the entries mean is `entry`'s business.

use std::ops::Bound;

use heed::types::Bytes;
use heed::{AnyTls, Database, RoTxn, RwTxn};

use crate::entry::Entries;
use crate::error::{Error, Result};
use crate::store::lmdb;

pub type Table = Database<Bytes, Bytes>;

/// Four pages less LMDB's page header.
const CHUNK_BYTES: usize = 4 * 4096 - 16;

fn row_key(number: u64, entry_key: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(8 + entry_key.len());
    key.extend_from_slice(&number.to_be_bytes());
    key.extend_from_slice(entry_key);
    key
}

/// Write `entries` as the delta `number`.
pub fn write(table: Table, txn: &mut RwTxn, number: u64, entries: &Entries) -> Result<()> {
    let mut chunk = ChunkBuilder::default();
    let mut first: &[u8] = &[];
    for (key, value) in entries {
        if !chunk.fits(key, value) {
            let full = std::mem::take(&mut chunk).finish();
            table.put(txn, &row_key(number, first), &full).map_err(lmdb)?;
        }
        if chunk.offsets.is_empty() {
            first = key;
        }
        chunk.push(key, value);
    }
    if !chunk.offsets.is_empty() {
        table.put(txn, &row_key(number, first), &chunk.finish()).map_err(lmdb)?;
    }
    Ok(())
}

/// The value of one entry in the delta `number`, where it lies in the map.
pub fn get<'t>(
    table: Table,
    txn: &'t RoTxn<AnyTls>,
    number: u64,
    key: &[u8],
) -> Result<Option<&'t [u8]>> {
    let wanted = row_key(number, key);
    let Some((row, chunk)) = table.get_lower_than_or_equal_to(txn, &wanted).map_err(lmdb)? else {
        return Ok(None);
    };
    if row[..8] != wanted[..8] {
        return Ok(None);
    }
    Chunk::open(chunk)?.find(key)
}

/// Up to `limit` entries of the delta `number` with keys at or after `from`, in
/// order. Fewer than `limit` means that there are no more.
pub fn scan(
    table: Table,
    txn: &RoTxn<AnyTls>,
    number: u64,
    from: &[u8],
    limit: usize,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    let wanted = row_key(number, from);
    let start = match table.get_lower_than_or_equal_to(txn, &wanted).map_err(lmdb)? {
        Some((row, _)) if row[..8] == wanted[..8] => row.to_vec(),
        _ => wanted,
    };
    let rows = (Bound::Included(start.as_slice()), Bound::Unbounded);
    for row in table.range(txn, &rows).map_err(lmdb)? {
        let (key, chunk) = row.map_err(lmdb)?;
        if key[..8] != number.to_be_bytes() {
            break;
        }
        let chunk = Chunk::open(chunk)?;
        for position in 0..chunk.count {
            let (key, value) = chunk.entry(position)?;
            if key < from {
                continue;
            }
            if found.len() == limit {
                return Ok(found);
            }
            found.push((key.to_vec(), value.to_vec()));
        }
    }
    Ok(found)
}

/// All entries of the delta `number`.
pub fn read(table: Table, txn: &RoTxn<AnyTls>, number: u64) -> Result<Entries> {
    Ok(scan(table, txn, number, &[], usize::MAX)?.into_iter().collect())
}

/// Delete up to `limit` rows of the delta `number`; true when none is left.
pub fn delete(table: Table, txn: &mut RwTxn, number: u64, limit: usize) -> Result<bool> {
    let prefix = number.to_be_bytes();
    let mut rows = Vec::new();
    for row in table.prefix_iter(txn, &prefix).map_err(lmdb)?.take(limit) {
        rows.push(row.map_err(lmdb)?.0.to_vec());
    }
    let all = rows.len() < limit;
    for row in rows {
        table.delete(txn, &row).map_err(lmdb)?;
    }
    Ok(all)
}

/// Layout: count, offsets of the entries from the end of the offsets (all u16,
/// little-endian), then per entry the key's length, the key and the value.
#[derive(Default)]
struct ChunkBuilder {
    offsets: Vec<u16>,
    entries: Vec<u8>,
}

impl ChunkBuilder {
    fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        let frame = 2 + 2 * (self.offsets.len() + 1);
        frame + self.entries.len() + 1 + key.len() + value.len() <= CHUNK_BYTES
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.offsets.push(self.entries.len() as u16);
        self.entries.push(key.len() as u8);
        self.entries.extend_from_slice(key);
        self.entries.extend_from_slice(value);
    }

    fn finish(self) -> Vec<u8> {
        let mut chunk = Vec::with_capacity(2 + 2 * self.offsets.len() + self.entries.len());
        chunk.extend_from_slice(&(self.offsets.len() as u16).to_le_bytes());
        for offset in self.offsets {
            chunk.extend_from_slice(&offset.to_le_bytes());
        }
        chunk.extend_from_slice(&self.entries);
        chunk
    }
}

struct Chunk<'t> {
    count: usize,
    offsets: &'t [u8],
    entries: &'t [u8],
}

impl<'t> Chunk<'t> {
    fn open(bytes: &'t [u8]) -> Result<Self> {
        let (count, rest) = bytes.split_first_chunk::<2>().ok_or_else(damaged)?;
        let count = usize::from(u16::from_le_bytes(*count));
        let (offsets, entries) = rest.split_at_checked(2 * count).ok_or_else(damaged)?;
        Ok(Self { count, offsets, entries })
    }

    fn offset(&self, position: usize) -> usize {
        let at = 2 * position;
        usize::from(u16::from_le_bytes([self.offsets[at], self.offsets[at + 1]]))
    }

    fn entry(&self, position: usize) -> Result<(&'t [u8], &'t [u8])> {
        let end = match position + 1 {
            next if next < self.count => self.offset(next),
            _ => self.entries.len(),
        };
        let entry = self.entries.get(self.offset(position)..end).ok_or_else(damaged)?;
        let (&length, rest) = entry.split_first().ok_or_else(damaged)?;
        rest.split_at_checked(usize::from(length)).ok_or_else(damaged)
    }

    fn find(&self, wanted: &[u8]) -> Result<Option<&'t [u8]>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let (key, value) = self.entry(middle)?;
            match key.cmp(wanted) {
                std::cmp::Ordering::Equal => return Ok(Some(value)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}

fn damaged() -> Error {
    Error::StoreDamaged("a chunk of a delta is cut short".into())
}
