//! Reads the logs of encoded receipts in place, without copying.

use crate::error::Result;
use crate::stored::items::{damaged, take_item, take_list};
use crate::stored::receipt::EncodedReceipt;

const TOPIC: usize = 32;
const MOST_TOPICS: usize = 4;

/// The bloom and the logs of a receipt.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptLogs<'a> {
    pub bloom: &'a [u8; 256],
    /// The remaining encoded logs.
    rest: &'a [u8],
}

impl<'a> ReceiptLogs<'a> {
    /// Reads the logs of a receipt in its trie encoding.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the bytes are not a receipt.
    pub fn of(encoded: &'a [u8]) -> Result<Self> {
        EncodedReceipt::new(encoded).map(|receipt| Self::new(&receipt))
    }

    pub fn new(receipt: &EncodedReceipt<'a>) -> Self {
        Self { bloom: receipt.bloom, rest: receipt.logs }
    }

    /// The next log, `None` after the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the bytes are not a log.
    pub fn take(&mut self) -> Result<Option<Log<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut fields = take_list(&mut self.rest)?;
        let address = take_item(&mut fields)?;
        if address.len() != 20 {
            return Err(damaged("an address of another length"));
        }
        let topics = take_list(&mut fields)?;
        if !topics.len().is_multiple_of(TOPIC + 1) {
            return Err(damaged("a topic of another length"));
        }
        if topics.len() > MOST_TOPICS * (TOPIC + 1) {
            return Err(damaged("a log with more than four topics"));
        }
        Ok(Some(Log { address, topics, data: take_item(&mut fields)? }))
    }

    /// The number of remaining logs.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the bytes are not logs.
    pub fn count(mut self) -> Result<u64> {
        let mut count = 0;
        while !self.rest.is_empty() {
            take_list(&mut self.rest)?;
            count += 1;
        }
        Ok(count)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    pub address: &'a [u8],
    /// Each with its RLP prefix byte.
    topics: &'a [u8],
    pub data: &'a [u8],
}

impl<'a> Log<'a> {
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.topics.chunks_exact(TOPIC + 1).map(|topic| &topic[1..])
    }
}
