//! A block in the store: the rows of its body, and its receipts as JSON.
//!
//! A body is stored in portions: one for a block that was imported whole, one per flashblock for a
//! pre-confirmed block and for the block sealed from it. The row of a portion's senders ends with
//! the position of the portion in the block, so a receipt is found without reading other portions.
//! Rows of older versions lack it; it is then counted from the receipts before it.
//! `ledger/storage/rows.py` and `partial_rows.py` have the layouts.

use alloy_primitives::{Address, B256};

use super::base_time::base_time;
use super::fragments::deposit_fields;
use super::items::{Items, receipt_at, receipts_end};
use super::receipt_json::{Position, ReceiptFormat};
use super::rlp::{damaged, number, take_item, take_list};
use super::tips::{Bid, read_bids};
use crate::codec::header::{Header, timestamp_ms};
use crate::codec::json::{data, member, optional, quantity};
use crate::codec::transaction::{POST_EXEC_TYPE, Transaction, decode_at, decode_known};
use crate::error::Result;
use crate::store::View;

/// The prefix of the keys of headers, before the number of the block.
pub const HEADERS: &[u8] = b"H";

/// Bytes before the header in its row, and fields before its timestamp.
const DIFFICULTY: usize = 32;
const BEFORE_TIMESTAMP: usize = 11;
const ADDRESS: usize = 20;
const POSITION: usize = 16;

/// In the number of a portion: it has the end of a block after this partial, its post-execution
/// transaction.
const END: u64 = 1 << 63;

/// A block and how its receipts are shown.
#[derive(Debug)]
pub struct StoredBlock {
    pub number: u64,
    pub hash: B256,
    /// The partials that have its portions, in order; empty for a block that was imported whole.
    pub partials: Box<[u64]>,
    /// True if the signature rules of EIP-2 are active.
    pub homestead: bool,
    pub format: ReceiptFormat,
}

/// The rows of one portion: the number of its block, and its partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion(u64, Option<u64>);

/// Limits of the work of reading one receipt.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptLimits {
    /// Receipts before it in its portion, which are skipped one by one.
    pub skipped: usize,
    /// Bytes of its encoding.
    pub bytes: usize,
}

impl ReceiptLimits {
    pub const NONE: Self = Self { skipped: usize::MAX, bytes: usize::MAX };
}

/// A transaction, and the nonce and receipt version of a deposit.
pub type FoundTransaction = (Transaction, Option<(u64, u64)>);

/// The first transactions of a block; their senders, 20 bytes each, unless some are not stored; and
/// the number of transactions up to the end of each portion.
pub type RawTransactions<T> = (Vec<T>, Option<Vec<u8>>, Vec<usize>);

/// The bids read so far, and where to continue.
#[derive(Debug, Default)]
pub struct ReadBids {
    pub bids: Vec<Bid>,
    portion: usize,
    /// In the portion.
    index: usize,
    gas: u64,
}

/// The key of a row and its length.
struct Key([u8; 18], usize);

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl Portion {
    fn transactions(self) -> Key {
        self.key(b'B', b't')
    }

    fn receipts(self) -> Key {
        self.key(b'R', b'r')
    }

    fn senders(self) -> Key {
        self.key(b's', b's')
    }

    /// Passes the rows of its transactions and receipts to `read`.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if one is missing, the errors of `read`, `StoreClosed`, `Store`.
    pub fn with_rows<T>(
        self,
        view: &View,
        read: impl FnOnce((&[u8], &[u8])) -> Result<T>,
    ) -> Result<T> {
        let keys = [self.transactions(), self.receipts()];
        view.with_rows(keys.each_ref().map(AsRef::as_ref), |[transactions, receipts]| {
            read((transactions.ok_or_else(lacking)?, receipts.ok_or_else(lacking)?))
        })
    }

    fn key(self, whole: u8, of_partial: u8) -> Key {
        let mut key = [0; 18];
        key[1..9].copy_from_slice(&self.0.to_be_bytes());
        let Some(partial) = self.1 else {
            key[0] = whole;
            return Key(key, 9);
        };
        key[0] = b'p';
        key[9..17].copy_from_slice(&partial.to_be_bytes());
        key[17] = of_partial;
        Key(key, 18)
    }
}

/// The portions of a sealed block. A row left by an earlier branch at its height names other
/// partials than the one that it was sealed by.
///
/// # Errors
///
/// `StoreDamaged` if there is no such block or its row is malformed, `StoreClosed`, `Store`.
pub fn portions_of_sealed(view: &View, block: u64) -> Result<Vec<Portion>> {
    let sealed = view.sealed(block)?.ok_or_else(lacking)?;
    let mut key = [b'S'; 9];
    key[1..].copy_from_slice(&block.to_be_bytes());
    view.with_rows([&key], |[row]| {
        let (partials, _) = row.unwrap_or_default().as_chunks();
        let partials = partials.iter().map(|partial| u64::from_be_bytes(*partial));
        if partials.clone().next_back().map(|last| last & !END) != Some(sealed.delta) {
            return Ok(vec![Portion(block, None)]);
        }
        Ok(partials.map(|partial| Portion(block, Some(partial))).collect())
    })
}

/// The members that the logs of a sealed block with these portions share.
///
/// # Errors
///
/// `StoreDamaged` if there is no such block or its header is malformed, `StoreClosed`, `Store`.
pub fn log_end(view: &View, block: u64, portions: &[Portion]) -> Result<Vec<u8>> {
    let sealed = view.sealed(block)?.ok_or_else(lacking)?;
    let mut key = [HEADERS[0]; 9];
    key[1..].copy_from_slice(&block.to_be_bytes());
    let timestamp = view.with_rows([&key], |[row]| {
        let mut header = row.and_then(|row| row.get(DIFFICULTY..)).ok_or_else(lacking)?;
        let mut fields = take_list(&mut header)?;
        for _ in 0..BEFORE_TIMESTAMP {
            take_item(&mut fields)?;
        }
        number(take_item(&mut fields)?)
    })?;
    let milliseconds = match portions.first() {
        Some(portion) => portion.with_rows(view, |(transactions, _)| base_time(transactions))?,
        None => None,
    };
    let time_ms = timestamp_ms(timestamp, milliseconds);
    let mut out = Vec::with_capacity(220);
    member(&mut out, b"\"blockHash\":", |out| data(out, sealed.hash));
    member(&mut out, b",\"blockNumber\":", |out| quantity(out, block));
    member(&mut out, b",\"blockTimestamp\":", |out| quantity(out, timestamp));
    optional(&mut out, b",\"blockTimestampMs\":", time_ms, quantity);
    out.extend_from_slice(b",\"removed\":false");
    Ok(out)
}

impl StoredBlock {
    pub fn new(
        header: &Header,
        partials: Vec<u64>,
        homestead: bool,
        format: ReceiptFormat,
    ) -> Self {
        let partials = partials.into();
        Self { number: header.number, hash: header.hash(), partials, homestead, format }
    }

    /// The transaction at an index, with the nonce and the receipt version of a deposit, if both are
    /// stored. `None` beyond the last.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` or `Undecodable` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn transaction(&self, view: &View, index: u64) -> Result<Option<FoundTransaction>> {
        let (portion, start) = self.find(view, index)?;
        let skipped = usize::try_from(index - start.transactions).unwrap_or(usize::MAX);
        self.with_rows(view, portion, |[transactions, receipts, senders]| {
            let Some(raw) = Items::new(transactions.ok_or_else(lacking)?)?.at(skipped)? else {
                return Ok(None);
            };
            let transaction = self.decode(portion, raw, senders, skipped)?;
            if transaction.deposit().is_none() {
                return Ok(Some((transaction, None)));
            }
            let receipt = Items::new(receipts.ok_or_else(lacking)?)?.at(skipped)?;
            let deposit = deposit_fields(receipt.ok_or_else(lacking)?)?;
            Ok(Some((transaction, deposit)))
        })
    }

    /// The transactions before an index, each as made by `keep`.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn raws<T>(
        &self,
        view: &View,
        stop: usize,
        keep: impl Fn(&[u8]) -> T,
    ) -> Result<RawTransactions<T>> {
        let (mut raws, mut senders, mut ends) = (Vec::new(), Some(Vec::new()), Vec::new());
        for index in 0..self.partials.len().max(1) {
            let portion = self.portion(index);
            let keys = [portion.transactions(), portion.senders()];
            view.with_rows(keys.each_ref().map(AsRef::as_ref), |[transactions, stored]| {
                let mut items = Items::new(transactions.ok_or_else(lacking)?)?;
                let start = raws.len();
                while raws.len() < stop
                    && let Some(raw) = items.take()?
                {
                    raws.push(keep(raw));
                }
                match (stored, &mut senders) {
                    (Some(stored), Some(senders)) => {
                        let size = ADDRESS * (raws.len() - start);
                        senders.extend_from_slice(stored.get(..size).ok_or_else(lacking)?);
                    }
                    // Rows of older versions lack the senders of whole blocks.
                    (None, senders) if portion.1.is_none() => *senders = None,
                    _ => return Err(lacking()),
                }
                Ok(())
            })?;
            ends.push(raws.len());
            if raws.len() == stop {
                break;
            }
        }
        Ok((raws, senders, ends))
    }

    /// Appends the bids of up to `most` further transactions. Returns false after the last one.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn bids(
        &self,
        view: &View,
        base_fee: Option<u64>,
        most: usize,
        read: &mut ReadBids,
    ) -> Result<bool> {
        let stop = read.index.saturating_add(most);
        let count = self.portion(read.portion).with_rows(view, |rows| {
            read.gas = read_bids(rows, (read.index, stop), base_fee, read.gas, &mut read.bids)?;
            Ok(Items::new(rows.0)?.left())
        })?;
        if stop < count {
            read.index = stop;
            return Ok(true);
        }
        (read.portion, read.index) = (read.portion + 1, 0);
        Ok(read.portion < self.partials.len())
    }

    /// The position of a portion, or the end of the block for the number of its portions.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn position(&self, view: &View, portion: usize) -> Result<Position> {
        let last = self.partials.len().saturating_sub(1).min(portion);
        let stored = match self.portion(last) {
            Portion(_, None) => Some(Position::default()),
            stored => self.start(view, stored)?,
        };
        let (mut position, counted) = match stored {
            Some(position) => (position, last),
            None => (Position::default(), 0),
        };
        for index in counted..portion.min(last + 1) {
            position = end_of(view, self.portion(index), position)?;
        }
        Ok(position)
    }

    fn portion(&self, index: usize) -> Portion {
        Portion(self.number, self.partials.get(index).copied())
    }

    /// Writes the receipt of the transaction at an index. False if there is none or if reading it
    /// exceeds the limits.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn receipt(
        &self,
        view: &View,
        index: u64,
        limits: ReceiptLimits,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let (portion, start) = self.find(view, index)?;
        let skipped = usize::try_from(index - start.transactions).unwrap_or(usize::MAX);
        if skipped > limits.skipped {
            return Ok(false);
        }
        let refunds = self.refunds(view)?;
        self.with_rows(view, portion, |[transactions, receipts, senders]| {
            let Some(raw) = Items::new(transactions.ok_or_else(lacking)?)?.at(skipped)? else {
                return Ok(false);
            };
            let found = receipt_at(receipts.ok_or_else(lacking)?, skipped)?.ok_or_else(lacking)?;
            if found.encoded.len() > limits.bytes {
                return Ok(false);
            }
            let before = Position {
                transactions: index,
                gas: found.gas_before.unwrap_or(start.gas),
                logs: start.logs + found.logs_before,
            };
            let transaction = self.decode(portion, raw, senders, skipped)?;
            self.format.write(out, &transaction, found.encoded, before, &refunds)?;
            Ok(true)
        })
    }

    /// Writes up to `most` receipts of one portion, separated by commas, from a position on.
    /// Returns the position after them, which is the same at the end of the block.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn receipts(
        &self,
        view: &View,
        mut before: Position,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<Position> {
        let (portion, start) = self.find(view, before.transactions)?;
        let skipped =
            usize::try_from(before.transactions - start.transactions).unwrap_or(usize::MAX);
        let refunds = self.refunds(view)?;
        self.with_rows(view, portion, |[transactions, receipts, senders]| {
            let mut raws = Items::new(transactions.ok_or_else(lacking)?)?;
            let mut encoded = Items::new(receipts.ok_or_else(lacking)?)?;
            if raws.left() != encoded.left() {
                return Err(lacking());
            }
            for index in 0..skipped.saturating_add(most) {
                let (Some(raw), Some(receipt)) = (raws.take()?, encoded.take()?) else { break };
                if index < skipped {
                    continue;
                }
                if index > skipped {
                    out.push(b',');
                }
                let transaction = self.decode(portion, raw, senders, index)?;
                before = self.format.write(out, &transaction, receipt, before, &refunds)?;
            }
            Ok(before)
        })
    }

    /// The receipts of a body that is not in the store.
    ///
    /// # Errors
    ///
    /// `Undecodable` or `StoreDamaged` for malformed transactions and receipts.
    pub fn texts(&self, raws: &[&[u8]], receipts: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
        let mut before = Position::default();
        let refunds = refunds_in(raws.last().copied())?;
        let write = |(raw, receipt): (&&[u8], &&[u8])| {
            let mut out = Vec::new();
            let transaction = decode_at(raw, self.homestead)?;
            before = self.format.write(&mut out, &transaction, receipt, before, &refunds)?;
            Ok(out)
        };
        raws.iter().zip(receipts).map(write).collect()
    }

    /// The refunds of the block by its sequencer, from its last transaction.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` or `Undecodable` if a row is missing or malformed, `StoreClosed`, `Store`.
    pub fn refunds(&self, view: &View) -> Result<Vec<(u64, u64)>> {
        if !self.format.has_refunds {
            return Ok(Vec::new());
        }
        let last = self.portion(self.partials.len().saturating_sub(1));
        // A block in progress does not have its end yet.
        let end = Portion(last.0, last.1.map(|partial| partial | END));
        view.with_rows([end.transactions().as_ref()], |[row]| {
            let Some(row) = row else { return Ok(Vec::new()) };
            let items = Items::new(row)?;
            let last = items.left().checked_sub(1);
            refunds_in(last.map(|last| items.at(last)).transpose()?.flatten())
        })
    }

    fn decode(
        &self,
        portion: Portion,
        raw: &[u8],
        senders: Option<&[u8]>,
        index: usize,
    ) -> Result<Transaction> {
        let Some(senders) = senders else {
            // Rows of older versions lack the senders of whole blocks.
            return if portion.1.is_none() {
                decode_at(raw, self.homestead)
            } else {
                Err(lacking())
            };
        };
        let (senders, _) = senders.as_chunks::<ADDRESS>();
        decode_known(raw, senders.get(index).map(Address::from).ok_or_else(lacking)?)
    }

    /// The portion with the transaction at an index, and its position: the last one that begins no
    /// later.
    fn find(&self, view: &View, index: u64) -> Result<(Portion, Position)> {
        if self.partials.is_empty() {
            return Ok((self.portion(0), Position::default()));
        }
        let (mut low, mut high) = (0, self.partials.len());
        let mut found = Position::default();
        while high - low > 1 {
            let middle = (low + high) / 2;
            let Some(start) = self.start(view, self.portion(middle))? else {
                return self.count_to(view, index);
            };
            if start.transactions <= index {
                (low, found) = (middle, start);
            } else {
                high = middle;
            }
        }
        Ok((self.portion(low), found))
    }

    /// The position of a portion; `None` if its row is of an older version.
    fn start(&self, view: &View, portion: Portion) -> Result<Option<Position>> {
        view.with_rows([portion.senders().as_ref()], |[row]| {
            let row = row.ok_or_else(lacking)?;
            if row.len() % ADDRESS != POSITION {
                return Ok(None);
            }
            let end = &row[row.len() - POSITION..];
            let (transactions, logs) = (number(&end[..4])?, number(&end[4..8])?);
            Ok(Some(Position { transactions, gas: number(&end[8..])?, logs }))
        })
    }

    /// Like `find`, from the receipts of the portions before it.
    fn count_to(&self, view: &View, index: u64) -> Result<(Portion, Position)> {
        let (mut found, mut start) = (self.portion(0), Position::default());
        let mut end = start;
        for each in 0..self.partials.len() {
            if end.transactions > index {
                break;
            }
            (found, start) = (self.portion(each), end);
            end = end_of(view, found, start)?;
        }
        Ok((found, start))
    }

    fn with_rows<T>(
        &self,
        view: &View,
        portion: Portion,
        read: impl FnOnce([Option<&[u8]>; 3]) -> Result<T>,
    ) -> Result<T> {
        let keys = [portion.transactions(), portion.receipts(), portion.senders()];
        view.with_rows(keys.each_ref().map(AsRef::as_ref), read)
    }
}

/// The position after a portion, from its receipts.
fn end_of(view: &View, portion: Portion, start: Position) -> Result<Position> {
    let (count, logs, gas) = view
        .with_rows([portion.receipts().as_ref()], |[row]| receipts_end(row.ok_or_else(lacking)?))?;
    Ok(Position {
        transactions: start.transactions.saturating_add(count as u64),
        gas: gas.unwrap_or(start.gas),
        logs: start.logs.saturating_add(logs),
    })
}

/// The refunds in the last transaction of a block.
fn refunds_in(last: Option<&[u8]>) -> Result<Vec<(u64, u64)>> {
    match last {
        Some(raw @ [POST_EXEC_TYPE, ..]) => {
            let transaction = decode_known(raw, Address::ZERO)?;
            let entries = transaction.post_exec().map_or(&[][..], |it| &it.gas_refund_entries);
            Ok(entries.iter().map(|entry| (entry.index, entry.gas_refund)).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn lacking() -> crate::error::Error {
    damaged("it lacks a row or an item")
}
