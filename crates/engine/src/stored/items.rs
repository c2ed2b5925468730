//! Rows of transactions and receipts, read in place.
//!
//! A row of *items* is a count (4 bytes), then each item as its length (4) and its bytes. An item
//! is found by adding up lengths; the logs of a receipt are numbered by walking the RLP headers of
//! the receipts before it. Only requested data is copied or decoded. Malformed rows are
//! `StoreDamaged`.

#[cfg(test)]
mod tests;

use super::receipt::EncodedReceipt;
use super::rlp::{damaged, take_list};
use crate::error::Result;

const LENGTH: usize = 4;

/// The remaining items of a row.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Items<'a> {
    /// Reads the items at the start of a row.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the row is malformed.
    pub fn new(row: &'a [u8]) -> Result<Self> {
        let mut rest = row;
        let left = take_length(&mut rest)?;
        Ok(Self { rest, left })
    }

    /// The number of items left, according to the row.
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// The bytes after the items taken so far.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next item; `None` after the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the row is malformed.
    #[inline]
    pub fn take(&mut self) -> Result<Option<&'a [u8]>> {
        if self.left == 0 {
            return Ok(None);
        }
        let length = take_length(&mut self.rest)? as usize;
        let (item, rest) =
            self.rest.split_at_checked(length).ok_or_else(|| damaged("an item is cut short"))?;
        self.rest = rest;
        self.left -= 1;
        Ok(Some(item))
    }

    /// The item at an index; `None` beyond the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the row is malformed.
    pub fn at(mut self, index: usize) -> Result<Option<&'a [u8]>> {
        if index >= self.left() {
            return Ok(None);
        }
        for _ in 0..index {
            self.take()?;
        }
        self.take()
    }
}

/// Facts about a receipt that are read without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptFacts {
    /// Gas used in the block up to and including its transaction.
    pub cumulative_gas: u64,
    pub logs: u64,
}

/// Reads the facts of a receipt as encoded in its trie.
///
/// # Errors
///
/// `StoreDamaged` if the bytes are not a receipt.
pub fn receipt_facts(encoded: &[u8]) -> Result<ReceiptFacts> {
    let mut receipt = EncodedReceipt::new(encoded)?;
    let mut logs = 0;
    while !receipt.logs.is_empty() {
        take_list(&mut receipt.logs)?;
        logs += 1;
    }
    Ok(ReceiptFacts { cumulative_gas: receipt.gas, logs })
}

/// A receipt of a row, with totals of the receipts before it in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundReceipt<'a> {
    pub encoded: &'a [u8],
    /// Cumulative gas of the receipt before it; `None` if it is the first of its row.
    pub gas_before: Option<u64>,
    /// The number of logs in the receipts before it in the row.
    pub logs_before: u64,
}

/// The receipt at an index of a row; `None` beyond the last.
///
/// # Errors
///
/// `StoreDamaged` if the row is malformed.
pub fn receipt_at(row: &[u8], index: usize) -> Result<Option<FoundReceipt<'_>>> {
    let mut items = Items::new(row)?;
    if index >= items.left() {
        return Ok(None);
    }
    let (mut gas_before, mut logs_before) = (None, 0);
    for _ in 0..index {
        if let Some(encoded) = items.take()? {
            let facts = receipt_facts(encoded)?;
            gas_before = Some(facts.cumulative_gas);
            logs_before += facts.logs;
        }
    }
    Ok(items.take()?.map(|encoded| FoundReceipt { encoded, gas_before, logs_before }))
}

/// The number of receipts in a row, the number of their logs, and the cumulative gas of the last
/// one.
///
/// # Errors
///
/// `StoreDamaged` if the row is malformed.
pub fn receipts_end(row: &[u8]) -> Result<(usize, u64, Option<u64>)> {
    let mut items = Items::new(row)?;
    let count = items.left();
    let (mut logs, mut gas) = (0, None);
    while let Some(encoded) = items.take()? {
        let facts = receipt_facts(encoded)?;
        gas = Some(facts.cumulative_gas);
        logs += facts.logs;
    }
    Ok((count, logs, gas))
}

#[inline]
fn take_length(rest: &mut &[u8]) -> Result<u32> {
    let (length, after) =
        rest.split_first_chunk::<LENGTH>().ok_or_else(|| damaged("a length is cut short"))?;
    *rest = after;
    Ok(u32::from_be_bytes(*length))
}
