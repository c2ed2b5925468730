//! The row of a block that lists which of its transactions touch an address.
//!
//! It is the hash of the block (32), a byte defined by Python, and an entry for each address and
//! each transaction that touches it: the address (20) and the index of the transaction (4), sorted.
//! A row with another hash is of another block at that height and is ignored.

#[cfg(test)]
mod tests;

use alloy_primitives::B256;

use super::rlp::damaged;
use crate::error::Result;

const ADDRESS: usize = 20;
const ENTRY: usize = ADDRESS + 4;
const HASH: usize = 32;

type Entry = [u8; ENTRY];

/// Builds a row from entries in any order; `None` if an entry is incomplete.
pub fn row(hash: B256, note: u8, entries: &[u8]) -> Option<Vec<u8>> {
    let mut sorted = whole(entries)?.to_vec();
    sorted.sort_unstable();
    Some([hash.as_slice(), &[note], sorted.as_flattened()].concat())
}

#[derive(Debug, Clone, Copy)]
pub struct TouchedRow<'a>(&'a [Entry]);

impl<'a> TouchedRow<'a> {
    /// `None` if the row is of another block.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the row is too short or an entry is incomplete.
    pub fn new(row: &'a [u8], hash: &B256) -> Result<Option<Self>> {
        let Some((found, [_, entries @ ..])) = row.split_first_chunk::<HASH>() else {
            return Err(damaged("a row of touched addresses is cut short"));
        };
        let entries =
            whole(entries).ok_or_else(|| damaged("touched addresses are not whole entries"))?;
        Ok((found == hash).then_some(Self(entries)))
    }

    /// Its addresses, each once.
    pub fn addresses(&self) -> impl Iterator<Item = &'a [u8]> {
        let same = |one: &Entry, other: &Entry| one[..ADDRESS] == other[..ADDRESS];
        self.0.chunk_by(same).map(|some| &some[0][..ADDRESS])
    }
}

fn whole(entries: &[u8]) -> Option<&[Entry]> {
    match entries.as_chunks::<ENTRY>() {
        (entries, []) => Some(entries),
        _ => None,
    }
}
