//! Rows of transactions and receipts, read where they lie.
//!
//! A row of *items* is a count (4 bytes), then each item as its length (4) and its bytes.
//! To find one item, lengths are added up; to number the logs of a receipt, the RLP headers
//! of those before it are walked. Nothing is copied or decoded that was not asked for.
//! Bytes that are no such row are `StoreDamaged`, whatever they claim.

#[cfg(test)]
mod tests;

use alloy_rlp::Header;

use crate::error::{Error, Result};

const LENGTH: usize = 4;

/// The items of a row, from the first on.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Items<'a> {
    /// The items that the row begins with.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` when the row is not laid out as it must be.
    pub fn new(row: &'a [u8]) -> Result<Self> {
        let mut rest = row;
        let left = take_length(&mut rest)?;
        Ok(Self { rest, left })
    }

    /// How many items the row says are left.
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// What follows the items that were taken.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next item; none after the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` when the row is not laid out as it must be.
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

    /// The item at an index; none beyond the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` when the row is not laid out as it must be.
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

/// What a receipt tells without being decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptFacts {
    /// Gas used in the block up to and including its transaction.
    pub cumulative_gas: u64,
    pub logs: u64,
}

/// Walks over one receipt as it is in its trie.
///
/// # Errors
///
/// `StoreDamaged` for bytes that are no receipt.
pub fn receipt_facts(encoded: &[u8]) -> Result<ReceiptFacts> {
    let mut outer = match encoded {
        [1..0x80, rest @ ..] => rest,
        _ => encoded,
    };
    let mut fields = take_list(&mut outer)?;
    take_item(&mut fields)?; // status or state root
    let cumulative_gas = number(take_item(&mut fields)?)?;
    take_item(&mut fields)?; // bloom
    let mut list = take_list(&mut fields)?;
    let mut logs = 0;
    while !list.is_empty() {
        take_list(&mut list)?;
        logs += 1;
    }
    Ok(ReceiptFacts { cumulative_gas, logs })
}

/// A receipt of a row, and what the receipts of the row before it come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundReceipt<'a> {
    pub encoded: &'a [u8],
    /// Gas of the block up to it; none where it is the first of its row.
    pub gas_before: Option<u64>,
    /// Logs of the receipts before it in the row.
    pub logs_before: u64,
}

/// The receipt at an index of a row; none beyond the last.
///
/// # Errors
///
/// `StoreDamaged` when the row is not laid out as it must be.
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

/// How many receipts a row has, their logs, and the gas of the block up to the last of them.
///
/// # Errors
///
/// `StoreDamaged` when the row is not laid out as it must be.
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

/// The payload of the next RLP item, of whichever kind.
pub(crate) fn take_item<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    take(rest).map(|(payload, _)| payload)
}

/// The payload of the next RLP item, which must be a list.
pub(crate) fn take_list<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8]> {
    match take(rest)? {
        (payload, true) => Ok(payload),
        _ => Err(damaged("a string where a list should be")),
    }
}

/// A number of up to 64 bits.
pub(crate) fn number(payload: &[u8]) -> Result<u64> {
    wide_number(payload)?.try_into().map_err(|_| damaged("a number has more than 64 bits"))
}

/// A number of up to 128 bits.
pub(crate) fn wide_number(payload: &[u8]) -> Result<u128> {
    if payload.len() > 16 {
        return Err(damaged("a number has more than 128 bits"));
    }
    Ok(payload.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

pub(crate) fn damaged(why: &str) -> Error {
    Error::StoreDamaged(format!("a row of a block: {why}"))
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], bool)> {
    let header = Header::decode(rest).map_err(|why| damaged(&why.to_string()))?;
    let (payload, after) = rest
        .split_at_checked(header.payload_length)
        .ok_or_else(|| damaged("an RLP item is cut short"))?;
    *rest = after;
    Ok((payload, header.list))
}

fn take_length(rest: &mut &[u8]) -> Result<u32> {
    let (length, after) =
        rest.split_first_chunk::<LENGTH>().ok_or_else(|| damaged("a length is cut short"))?;
    *rest = after;
    Ok(u32::from_be_bytes(*length))
}
