//! The log index: the blocks of a section that contain a term.
//!
//! A *term* represents an address, or a topic at a position: the first eight bytes of the keccak
//! hash of its kind and value. Colliding terms yield false positives, which are eliminated when the
//! block is read. `ANY` is in every block that has a log.
//!
//! A *section* is a range of consecutive blocks. It has one entry per term and block: the term (8
//! bytes) and the block's offset in the section (2 bytes), both big-endian. Entries are sorted and
//! stored in chunks of up to `CHUNK` bytes. Sections are merged into larger ones incrementally.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use alloy_primitives::keccak256;

use crate::error::Result;
use crate::stored::items::Items;
use crate::stored::receipt::ReceiptLogs;
use crate::stored::rlp::damaged;

pub type Term = u64;

/// A section to merge: the key prefix of its rows, and the offset of its first block in the new
/// section.
pub type Source<'a> = (&'a [u8], u16);

/// Chunks of a merged section, and the entry to continue from, `None` at the end.
pub type Merged = (Vec<Vec<u8>>, Option<[u8; ENTRY]>);

/// The term of every block with a log.
pub const ANY: Term = 0;
/// The size of an entry: term and offset.
pub const ENTRY: usize = 10;
/// Four pages of the store minus its header, in whole entries.
const CHUNK: usize = 16_360;

/// The term of an address (kind 0), or of a topic at a position (kinds 1 to 4).
pub fn term(kind: u8, value: &[u8]) -> Term {
    let mut bytes = [0; 33];
    bytes[0] = kind;
    bytes[1..=value.len()].copy_from_slice(value);
    let hash = keccak256(&bytes[..=value.len()]);
    Term::from_be_bytes(hash.0[..8].try_into().unwrap_or_default())
}

/// The terms of addresses, sorted, each once.
pub fn address_terms<'a>(addresses: impl Iterator<Item = &'a [u8]>) -> Vec<Term> {
    let mut terms: Vec<Term> = addresses.map(|address| term(0, address)).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Adds the terms of all logs in a row of receipts.
///
/// # Errors
///
/// `StoreDamaged` if the row is malformed.
pub fn add_terms(row: &[u8], terms: &mut HashSet<Term>) -> Result<()> {
    let mut receipts = Items::new(row)?;
    let mut last: &[u8] = &[];
    while let Some(encoded) = receipts.take()? {
        let mut logs = ReceiptLogs::of(encoded)?;
        while let Some(log) = logs.take()? {
            if log.address != last {
                terms.insert(term(0, log.address));
                last = log.address;
            }
            terms.extend((1..).zip(log.topics()).map(|(kind, topic)| term(kind, topic)));
        }
    }
    if !terms.is_empty() {
        terms.insert(ANY);
    }
    Ok(())
}

/// An entry as an 80-bit number that sorts like its bytes.
pub fn entry(term: Term, place: u16) -> u128 {
    u128::from(term) << 16 | u128::from(place)
}

pub fn entry_bytes(entry: u128) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    bytes.copy_from_slice(&entry.to_be_bytes()[16 - ENTRY..]);
    bytes
}

fn read_entry(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The term and the offset of an entry.
pub fn parts(entry: u128) -> (Term, u16) {
    ((entry >> 16) as Term, entry as u16)
}

/// Splits entries into chunks. `entries` need not be sorted.
pub fn chunks(mut entries: Vec<u128>) -> Vec<Vec<u8>> {
    entries.sort_unstable();
    let chunk = |some: &[u128]| some.iter().flat_map(|it| entry_bytes(*it)).collect();
    entries.chunks(CHUNK / ENTRY).map(chunk).collect()
}

#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a>(&'a [u8]);

impl<'a> Chunk<'a> {
    /// # Errors
    ///
    /// `StoreDamaged` if the row is empty or its length is not a multiple of `ENTRY`.
    pub fn new(row: &'a [u8]) -> Result<Self> {
        if row.is_empty() || !row.len().is_multiple_of(ENTRY) {
            return Err(damaged("a chunk of the index has no whole entries"));
        }
        Ok(Self(row))
    }

    pub fn len(&self) -> usize {
        self.0.len() / ENTRY
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn at(&self, index: usize) -> u128 {
        read_entry(&self.0[ENTRY * index..ENTRY * (index + 1)])
    }

    /// The index of the first entry that is not less than `wanted`.
    pub fn seek(&self, wanted: u128) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
