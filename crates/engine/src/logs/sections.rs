//! Candidate blocks for log queries: sections of the log index (`logs::index`), and header blooms.
//!
//! Both are Python-owned rows, whose keys are passed in. The key of a chunk is the prefix of its
//! section followed by the first entry of the chunk.

use std::ops::Bound;

use heed::{AnyTls, RoTxn};

use super::filter::LogFilter;
use super::index::{self, Chunk, ENTRY, Merged, Source, Term, entry, entry_bytes, parts};
use super::search::{LookUp, Search};
use crate::error::Result;
use crate::store::{Table, View, check_row_key, lmdb};
use crate::stored::rlp::{damaged, take_item, take_list};

/// A search pauses after this many terms or blocks.
const MOST_LOOK_UPS: usize = 1 << 12;
const MANY_BLOCKS: usize = 1024;
/// The number of entries that cost as much as a lookup.
const ENTRIES_PER_LOOK_UP: usize = 128;
/// Bytes before the header in its row.
const DIFFICULTY: usize = 32;
/// Fields of a header before its bloom.
const BEFORE_BLOOM: usize = 6;

impl View {
    /// Continues a search for up to `look_ups` terms of sections, fewer if they occur in many
    /// blocks. Returns the blocks of the sections that it finished.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a prefix is empty or too long, `StoreDamaged` if rows are not chunks,
    /// `StoreClosed`, `Store`.
    pub fn search_logs(&self, search: &mut Search, look_ups: usize) -> Result<Vec<u64>> {
        let mut blocks = Vec::new();
        self.read_rows(|rows, txn| {
            let mut left = look_ups.clamp(1, MOST_LOOK_UPS);
            while left > 0 && blocks.len() < MANY_BLOCKS {
                let Some(LookUp { prefix, term }) = search.next() else { break };
                check_row_key(&prefix)?;
                let mut entries = 0;
                let (first, last) = (entry(term, 0), entry(term, u16::MAX));
                each_entry(rows, txn, &prefix, first, |found| {
                    if found <= last {
                        search.found(parts(found).1);
                        entries += 1;
                    }
                    found < last
                })?;
                search.advance(&mut blocks);
                left = left.saturating_sub(1 + entries / ENTRIES_PER_LOOK_UP);
            }
            Ok(())
        })?;
        Ok(blocks)
    }

    /// Merges a part of some sections: about `most` entries of each source, beginning at `from`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a prefix is empty or too long, `StoreDamaged` if rows are not chunks,
    /// `StoreClosed`, `Store`.
    pub fn merge_log_sections(
        &self,
        sources: &[Source<'_>],
        from: &[u8; ENTRY],
        most: usize,
    ) -> Result<Merged> {
        sources.iter().try_for_each(|(prefix, _)| check_row_key(prefix))?;
        let (term, _) = parts(from.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)));
        let mut read: Vec<(u128, u16)> = Vec::new();
        // The term at which the first source to reach `most` stopped. The other sources stop there
        // too.
        let mut end: Option<Term> = None;
        self.read_rows(|rows, txn| {
            for (prefix, shift) in sources {
                let mut taken = 0;
                each_entry(rows, txn, prefix, entry(term, 0), |found| {
                    let (term, _) = parts(found);
                    if end.is_some_and(|end| term >= end) {
                        return false;
                    }
                    // A term is never split: its entries in all sources stay together.
                    let is_new = read.last().is_none_or(|(last, _)| parts(*last).0 != term);
                    if taken >= most && is_new {
                        end = Some(term);
                        return false;
                    }
                    taken += 1;
                    read.push((found, *shift));
                    true
                })?;
            }
            Ok(())
        })?;
        if end.is_some_and(|end| end <= term) {
            return Err(damaged("entries of the index are out of order"));
        }
        read.retain(|(found, _)| end.is_none_or(|end| parts(*found).0 < end));
        let moved = |(found, shift): (u128, u16)| {
            let (term, place) = parts(found);
            let place = place.checked_add(shift).ok_or_else(|| damaged("a place out of range"))?;
            Ok(entry(term, place))
        };
        let merged = read.into_iter().map(moved).collect::<Result<_>>()?;
        Ok((index::chunks(merged), end.map(|end| entry_bytes(entry(end, 0)))))
    }

    /// The blocks from `first` up to, but not including, `stop` whose bloom may match the filter.
    /// The key of a header row is `prefix` and the block number; the header follows 32 other bytes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the prefix is empty or too long, `StoreDamaged` if rows are not
    /// headers, `StoreClosed`, `Store`.
    pub fn blocks_in_bloom(
        &self,
        filter: &LogFilter,
        prefix: &[u8],
        first: u64,
        stop: u64,
    ) -> Result<Vec<u64>> {
        check_row_key(prefix)?;
        let key = |block: u64| [prefix, &block.to_be_bytes()].concat();
        let (first, stop) = (key(first), key(stop));
        let range = (Bound::Included(&first[..]), Bound::Excluded(&stop[..]));
        let mut found = Vec::new();
        if first >= stop {
            return Ok(found);
        }
        self.read_rows(|rows, txn| {
            for row in rows.range(txn, &range).map_err(lmdb)? {
                let (key, row) = row.map_err(lmdb)?;
                let number = key.get(prefix.len()..).and_then(|number| number.try_into().ok());
                let number = number.ok_or_else(|| damaged("a key of another length"))?;
                if filter.in_bloom(header_bloom(row)?) {
                    found.push(u64::from_be_bytes(number));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// The bloom in a header row.
fn header_bloom(row: &[u8]) -> Result<&[u8; 256]> {
    let mut header = row.get(DIFFICULTY..).ok_or_else(|| damaged("a header is cut short"))?;
    let mut fields = take_list(&mut header)?;
    for _ in 0..BEFORE_BLOOM {
        take_item(&mut fields)?;
    }
    take_item(&mut fields)?.try_into().map_err(|_| damaged("a bloom of another length"))
}

/// Passes the entries of a section from `from` on to `act`, in order, until it returns false.
fn each_entry(
    rows: Table,
    txn: &RoTxn<AnyTls>,
    prefix: &[u8],
    from: u128,
    mut act: impl FnMut(u128) -> bool,
) -> Result<()> {
    let mut key = Vec::with_capacity(prefix.len() + ENTRY);
    key.extend_from_slice(prefix);
    key.extend_from_slice(&entry_bytes(from));
    let before = rows.get_lower_than_or_equal_to(txn, &key).map_err(lmdb)?;
    if let Some((found, _)) = before
        && found.starts_with(prefix)
    {
        key = found.to_vec();
    }
    let range = (Bound::Included(&key[..]), Bound::Unbounded);
    for row in rows.range(txn, &range).map_err(lmdb)? {
        let (found, row) = row.map_err(lmdb)?;
        if !found.starts_with(prefix) {
            break;
        }
        let chunk = Chunk::new(row)?;
        for at in chunk.seek(from)..chunk.len() {
            if !act(chunk.at(at)) {
                return Ok(());
            }
        }
    }
    Ok(())
}
