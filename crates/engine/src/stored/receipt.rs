//! A receipt as encoded in its trie, and its logs, read in place.

use super::rlp::{damaged, number, take_item, take_list};
use crate::error::Result;

const BLOOM: usize = 256;
const TOPIC: usize = 32;
const MOST_TOPICS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedReceipt<'a> {
    /// Empty or 1, or the state root after the transaction.
    pub outcome: &'a [u8],
    /// Gas used in the block up to and including its transaction.
    pub gas: u64,
    pub bloom: &'a [u8; BLOOM],
    /// The encoded logs.
    pub logs: &'a [u8],
    /// The fields of a deposit.
    pub rest: &'a [u8],
}

impl<'a> EncodedReceipt<'a> {
    /// # Errors
    ///
    /// `StoreDamaged` if the bytes are not a receipt.
    #[inline]
    pub fn new(encoded: &'a [u8]) -> Result<Self> {
        let list = match encoded {
            [1..0x80, rest @ ..] => rest,
            _ => encoded,
        };
        Self::usual(list).map_or_else(|| Self::any(list), Ok)
    }

    /// A receipt of up to 64 kB with a status: three times as fast as `any`.
    #[inline]
    fn usual(list: &'a [u8]) -> Option<Self> {
        let [0xf9, 1..=0xff, _, status @ (0x80 | 1), gas, fields @ ..] = list else { return None };
        let outcome = if *status == 1 { &list[3..4] } else { &[] };
        let (gas, fields) = match *gas {
            0x82..=0x88 => {
                let (digits, fields) = fields.split_at_checked(usize::from(gas - 0x80))?;
                (digits.iter().fold(0, |all, digit| all << 8 | u64::from(*digit)), fields)
            }
            _ => return None,
        };
        let (bloom, mut rest) = fields.strip_prefix(&[0xb9, 1, 0])?.split_first_chunk()?;
        let logs = take_list(&mut rest).ok()?;
        let length = u16::from_be_bytes([list[1], list[2]]);
        let end = list.len() - rest.len();
        // The list ends with the logs: a deposit, or something damaged, has more or less.
        (end == 3 + usize::from(length)).then_some(Self { outcome, gas, bloom, logs, rest: &[] })
    }

    fn any(mut list: &'a [u8]) -> Result<Self> {
        let mut rest = take_list(&mut list)?;
        let outcome = take_item(&mut rest)?;
        let gas = number(take_item(&mut rest)?)?;
        let bloom = take_item(&mut rest)?;
        let bloom = bloom.try_into().map_err(|_| damaged("a bloom of another length"))?;
        let logs = take_list(&mut rest)?;
        Ok(Self { outcome, gas, bloom, logs, rest })
    }
}

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

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256, Log};

    use super::*;
    use crate::codec::receipt::{Receipt, ReceiptOutcome};

    #[test]
    fn usual_receipts_are_read_as_any() {
        let log = |size| Log::new_unchecked(Address::ZERO, vec![B256::ZERO], vec![7; size].into());
        let (mut usual, mut all) = (0, 0);
        for gas in [0, 1, 127, 128, 255, 256, 21_000, u64::MAX] {
            for logs in [vec![], vec![log(0)], vec![log(40), log(300)], vec![log(70_000)]] {
                for status in [true, false] {
                    let receipt = Receipt {
                        tx_type: 0,
                        outcome: ReceiptOutcome::Status(status),
                        cumulative_gas_used: gas,
                        logs: logs.clone(),
                        deposit_nonce: None,
                        deposit_receipt_version: None,
                    };
                    let encoded = receipt.encode();
                    for cut in [0, 1, 2, 200] {
                        let encoded = &encoded[..encoded.len() - cut];
                        let found = EncodedReceipt::usual(encoded);
                        let expected = EncodedReceipt::any(encoded).ok();
                        assert!(found.is_none() || found == expected, "{receipt:?} {cut}");
                        usual += usize::from(found.is_some());
                        all += usize::from(expected.is_some());
                    }
                }
            }
        }
        assert!(4 * usual > all, "{usual} of {all}");
    }
}
