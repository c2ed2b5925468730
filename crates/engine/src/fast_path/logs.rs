//! Short searches for logs in sealed blocks.
//!
//! The general path supplies the extent of the index and the limits of a query. A search that would
//! read more than a few hundred index entries, headers or receipts is not begun, or given up.

use alloy_primitives::{Address, B256};

use crate::error::Result;
use crate::logs::filter::LogFilter;
use crate::logs::found::{Allowance, Found, Reached, read_on};
use crate::logs::search::{Run, Search};
use crate::params::hex;
use crate::params::text::{Kind, Malformed, Text};
use crate::store::View;
use crate::stored::block::{HEADERS, Portion, log_end, portions_of_sealed};

/// Topics, and values of a clause, that a recognized query may have.
const TOPICS: usize = 4;
const VALUES: usize = 16;

/// The most look-ups in the index, comparisons of header blooms with a value, and receipts and logs
/// of one search; and the bytes of its result.
const LOOK_UPS: u64 = 128;
const BLOOMS: u64 = 1024;
const ITEMS: usize = 512;
const BYTES: usize = 1 << 14;

/// A filter and the blocks to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogQuery {
    pub addresses: Vec<Address>,
    pub topics: Vec<Vec<B256>>,
    pub blocks: Blocks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    Hash(B256),
    /// Both ends are included.
    Range(End, End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Number(u64),
    Latest,
}

/// The extent of the index of logs, and the limits of a query.
#[derive(Clone, Debug)]
pub struct LogIndex {
    /// The sections of all indexed blocks.
    pub runs: Vec<Run>,
    /// The first block whose logs are stored, and the first that is not indexed.
    pub first: u64,
    pub end: u64,
    /// The largest distance between the ends of a range, if it is limited.
    pub distance: Option<u64>,
    /// The most logs of more than one block.
    pub logs: usize,
}

impl LogQuery {
    /// Reads a filter object with strings and lists of strings only.
    ///
    /// # Errors
    ///
    /// `Malformed` for any other object.
    pub fn read(object: &[u8]) -> std::result::Result<Self, Malformed> {
        let (mut hash, mut from, mut to, mut addresses, mut topics) =
            (None, None, None, None, None);
        let mut text = Text::new(object);
        text.object(|text, name| match name.as_ref() {
            b"blockHash" => once(&mut hash, value(text)?),
            b"fromBlock" => once(&mut from, End::read(text.plain_string()?)?),
            b"toBlock" => once(&mut to, End::read(text.plain_string()?)?),
            b"address" => once(&mut addresses, values(text)?),
            b"topics" => once(&mut topics, positions(text)?),
            _ => Err(Malformed),
        })?;
        text.end()?;
        let fixed = |hash: Option<[u8; 32]>| hash.map(B256::new);
        let blocks = match (fixed(hash), from, to) {
            (Some(hash), None, None) => Blocks::Hash(hash),
            (Some(_), ..) => return Err(Malformed),
            (None, from, to) => {
                Blocks::Range(from.unwrap_or(End::Latest), to.unwrap_or(End::Latest))
            }
        };
        let addresses = addresses.unwrap_or_default().into_iter().map(Address::new).collect();
        Ok(Self { addresses, topics: topics.unwrap_or_default(), blocks })
    }

    /// The blocks of a range from the first up to the last; `None` if the general path has to
    /// refuse it, or to read unsealed blocks.
    pub fn range(&self, index: &LogIndex, latest: u64) -> Option<(u64, u64)> {
        let Blocks::Range(first, last) = self.blocks else { return None };
        if first == End::Latest && last != End::Latest {
            return None;
        }
        let number = |end| match end {
            End::Number(number) => number,
            End::Latest => latest,
        };
        let (first, last) = (number(first), number(last));
        let is_whole = index.first <= first && first <= last && last <= latest;
        let distance = last.checked_sub(first)?;
        (is_whole && index.distance.is_none_or(|most| distance <= most)).then_some((first, last))
    }

    /// Writes the matching logs of sealed blocks as a JSON array. False if the search is too long
    /// or finds too many.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn write(
        self,
        view: &View,
        index: &LogIndex,
        (first, last): (u64, u64),
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let filter = LogFilter::new(self.addresses, self.topics);
        let Some(blocks) = candidates(&filter, view, index, first, last + 1)? else {
            return Ok(false);
        };
        let (mut left, mut found) = (Allowance { items: ITEMS, bytes: BYTES }, Found::default());
        for number in blocks {
            if !read_block(&filter, view, number, &mut left, &mut found)? {
                return Ok(false);
            }
        }
        if first != last && found.count > index.logs {
            return Ok(false);
        }
        out.push(b'[');
        out.extend_from_slice(&found.text);
        out.push(b']');
        Ok(true)
    }
}

/// The blocks that may have matching logs; `None` if finding them takes too long.
fn candidates(
    filter: &LogFilter,
    view: &View,
    index: &LogIndex,
    first: u64,
    stop: u64,
) -> Result<Option<Vec<u64>>> {
    let values = 1 + filter.size() as u64;
    let (mut runs, mut sections) = (Vec::new(), 0);
    for run in &index.runs {
        let size = u64::from(run.size.max(1));
        let start = run.first.max(first / size * size);
        let end = run.stop.min(stop.div_ceil(size).saturating_mul(size));
        if start < end {
            sections += (end - start).div_ceil(size);
            runs.push(Run { first: start, stop: end, ..run.clone() });
        }
    }
    let scanned = first.max(index.end);
    if sections.saturating_mul(values) > LOOK_UPS
        || stop.saturating_sub(scanned).saturating_mul(values) > BLOOMS
    {
        return Ok(None);
    }
    let mut search = Search::new(filter, runs, first, stop);
    let mut blocks = Vec::new();
    while search.reached().is_some() {
        blocks.append(&mut view.search_logs(&mut search, LOOK_UPS as usize)?);
        if blocks.len() > ITEMS {
            return Ok(None);
        }
    }
    blocks.append(&mut view.blocks_in_bloom(filter, HEADERS, scanned, stop)?);
    Ok(Some(blocks))
}

/// Adds the matching logs of a block. False if the allowance is used up before its end.
fn read_block(
    filter: &LogFilter,
    view: &View,
    number: u64,
    left: &mut Allowance,
    found: &mut Found,
) -> Result<bool> {
    let portions = portions_of_sealed(view, number)?;
    let end = log_end(view, number, &portions)?;
    let mut reached = Reached::default();
    while let Some(portion) = portions.get(reached.portion) {
        if left.is_used_up(found) {
            return Ok(false);
        }
        Portion::with_rows(*portion, view, |rows| {
            read_on(filter, rows, &end, &mut reached, left, found)
        })?;
    }
    Ok(true)
}

impl End {
    /// `earliest` is left to the general path: a follower asks its upstream.
    fn read(text: &[u8]) -> std::result::Result<Self, Malformed> {
        match text {
            b"latest" => Ok(Self::Latest),
            _ => hex::number(text).map(Self::Number).map_err(|_| Malformed),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> std::result::Result<(), Malformed> {
    if place.replace(value).is_none() { Ok(()) } else { Err(Malformed) }
}

fn value<const N: usize>(text: &mut Text<'_>) -> std::result::Result<[u8; N], Malformed> {
    hex::fixed(text.plain_string()?).ok_or(Malformed)
}

/// One value or a list of values.
fn values<const N: usize>(text: &mut Text<'_>) -> std::result::Result<Vec<[u8; N]>, Malformed> {
    if text.kind()? != Kind::Array {
        return value(text).map(|only| vec![only]);
    }
    let mut found = Vec::new();
    text.array(|text, index| {
        found.push(value(text)?);
        if index < VALUES { Ok(()) } else { Err(Malformed) }
    })?;
    Ok(found)
}

/// The topics of each position; null for any.
fn positions(text: &mut Text<'_>) -> std::result::Result<Vec<Vec<B256>>, Malformed> {
    let mut found = Vec::new();
    text.array(|text, index| {
        let topics = if text.takes(b"null") { Vec::new() } else { values(text)? };
        found.push(topics.into_iter().map(B256::new).collect());
        if index < TOPICS { Ok(()) } else { Err(Malformed) }
    })?;
    Ok(found)
}
