//! The logs of a block that match a filter, as JSON.
//!
//! A bounded number of receipts and logs is read per call, so that a large block does not delay
//! other requests.

use alloy_primitives::keccak256;

use super::filter::LogFilter;
use crate::codec::json;
use crate::error::Result;
use crate::stored::items::Items;
use crate::stored::receipt::{Log, ReceiptLogs};
use crate::stored::rlp::damaged;

/// Skipping a log takes this fraction of the time of matching it.
const SKIPPED: u64 = 8;

/// The position in a block: the next portion, receipt and log, and the number of transactions and
/// logs before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    pub portion: usize,
    pub receipt: usize,
    pub log: u64,
    pub transactions: u64,
    pub logs: u64,
}

/// The approximate limits of one call: receipts and logs read, and bytes of JSON.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    pub items: usize,
    pub bytes: usize,
}

impl Allowance {
    pub fn is_used_up(&self, found: &Found) -> bool {
        self.items == 0 || found.text.len() >= self.bytes
    }

    fn count(&mut self, items: u64) {
        self.items = self.items.saturating_sub(usize::try_from(items).unwrap_or(usize::MAX));
    }
}

/// The JSON of the logs, separated by commas, and their number.
#[derive(Debug, Default)]
pub struct Found {
    pub text: Vec<u8>,
    pub count: usize,
}

impl Found {
    fn add(&mut self, log: &Log<'_>, index: u64, transaction: &TransactionText, end: &[u8]) {
        let out = &mut self.text;
        out.extend_from_slice(if self.count == 0 { b"{\"address\":" } else { b",{\"address\":" });
        json::data(out, log.address);
        out.extend_from_slice(b",\"topics\":");
        json::array(out, log.topics(), json::data);
        out.extend_from_slice(b",\"data\":");
        json::data(out, log.data);
        out.extend_from_slice(b",\"logIndex\":");
        json::quantity(out, index);
        out.extend_from_slice(&transaction.0);
        out.extend_from_slice(end);
        out.push(b'}');
        self.count += 1;
    }
}

/// The members that all logs of a transaction share.
struct TransactionText(Vec<u8>);

impl TransactionText {
    fn new(raw: &[u8], index: u64) -> Self {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(b",\"transactionHash\":");
        json::data(&mut out, keccak256(raw));
        out.extend_from_slice(b",\"transactionIndex\":");
        json::quantity(&mut out, index);
        out.push(b',');
        Self(out)
    }
}

/// Continues in one portion (a row of transactions and a row of receipts) until the allowance is
/// used up or the portion ends. `end` contains the members that all logs of the block share.
///
/// # Errors
///
/// `StoreDamaged` if a row is malformed.
pub fn read_on(
    filter: &LogFilter,
    (transactions, receipts): (&[u8], &[u8]),
    end: &[u8],
    reached: &mut Reached,
    left: &mut Allowance,
    found: &mut Found,
) -> Result<()> {
    let (mut raws, mut encoded) = (Items::new(transactions)?, Items::new(receipts)?);
    if raws.left() != encoded.left() {
        return Err(damaged("transactions and receipts differ in number"));
    }
    for _ in 0..reached.receipt {
        raws.take()?;
        encoded.take()?;
    }
    while !left.is_used_up(found) {
        let (Some(raw), Some(receipt)) = (raws.take()?, encoded.take()?) else {
            *reached = Reached { portion: reached.portion + 1, receipt: 0, ..*reached };
            return Ok(());
        };
        let logs = ReceiptLogs::of(receipt)?;
        if filter.in_bloom(logs.bloom) {
            if !read_receipt(filter, raw, logs, end, reached, left, found)? {
                return Ok(());
            }
        } else {
            let count = logs.count()?;
            reached.logs += count;
            left.count(count / SKIPPED);
        }
        left.count(1);
        *reached = Reached {
            receipt: reached.receipt + 1,
            log: 0,
            transactions: reached.transactions + 1,
            ..*reached
        };
    }
    Ok(())
}

/// Continues in one receipt. Returns false if the allowance is used up before its end.
fn read_receipt(
    filter: &LogFilter,
    raw: &[u8],
    mut logs: ReceiptLogs<'_>,
    end: &[u8],
    reached: &mut Reached,
    left: &mut Allowance,
    found: &mut Found,
) -> Result<bool> {
    for _ in 0..reached.log {
        logs.take()?;
    }
    let mut transaction = None;
    loop {
        if reached.log > 0 && left.is_used_up(found) {
            return Ok(false);
        }
        let Some(log) = logs.take()? else { return Ok(true) };
        if filter.matches(&log) {
            let text =
                transaction.get_or_insert_with(|| TransactionText::new(raw, reached.transactions));
            found.add(&log, reached.logs, text, end);
        }
        reached.log += 1;
        reached.logs += 1;
        left.count(1);
    }
}
