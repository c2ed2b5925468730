//! JSON of receipts, written from their encoding without decoding them.

use alloy_primitives::{B256, U256};

use super::l1_cost::{L1Cost, L1Prices};
use super::receipt::{EncodedReceipt, ReceiptLogs};
use super::rlp::{damaged, number, take_item};
use crate::codec::header::Header;
use crate::codec::json::{array, data, member, optional, quantity, wide_quantity};
use crate::codec::transaction::Transaction;
use crate::error::Result;
use crate::evm::settlement::refund_at;

const GAS_PER_BLOB: u64 = 1 << 17;

/// The fields that the receipts of one block share, and the prices of their fees.
#[derive(Debug, Clone)]
pub struct ReceiptFormat {
    /// The price of blob gas.
    pub blob_fee: U256,
    /// Absent if the block has no L1 prices.
    pub l1: Option<L1Prices>,
    /// True on an Optimism chain from Jovian on.
    pub has_footprint: bool,
    /// True on an Optimism chain from Lagoon on.
    pub has_refunds: bool,
    base_fee: Option<u64>,
    /// The last members of each log, and of each receipt.
    log_end: Box<[u8]>,
    end: Box<[u8]>,
}

/// The part of a block before one of its transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    pub transactions: u64,
    pub gas: u64,
    pub logs: u64,
}

impl ReceiptFormat {
    /// `end` are further members of each receipt.
    pub fn new(header: &Header, blob_fee: U256, l1: Option<L1Prices>, end: &[u8]) -> Self {
        let place = |out: &mut Vec<u8>| {
            member(out, b",\"blockHash\":", |out| data(out, header.hash()));
            member(out, b",\"blockNumber\":", |out| quantity(out, header.number));
        };
        let (mut log_end, mut all) = (Vec::with_capacity(200), Vec::with_capacity(120 + end.len()));
        place(&mut log_end);
        member(&mut log_end, b",\"blockTimestamp\":", |out| quantity(out, header.timestamp));
        optional(&mut log_end, b",\"blockTimestampMs\":", header.timestamp_ms(), quantity);
        log_end.extend_from_slice(b",\"removed\":false}");
        place(&mut all);
        all.extend_from_slice(end);
        all.push(b'}');
        Self {
            blob_fee,
            l1,
            has_footprint: false,
            has_refunds: false,
            base_fee: header.base_fee_per_gas,
            log_end: log_end.into(),
            end: all.into(),
        }
    }

    #[must_use]
    pub fn with_footprint(self, has_footprint: bool) -> Self {
        Self { has_footprint, ..self }
    }

    #[must_use]
    pub fn with_refunds(self, has_refunds: bool) -> Self {
        Self { has_refunds, ..self }
    }

    /// Writes a receipt as encoded in its trie, and returns the position after it. `refunds` are
    /// those of the block.
    ///
    /// # Errors
    ///
    /// `StoreDamaged` if the bytes are not a receipt, or its gas is below that before it.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        transaction: &Transaction,
        encoded: &[u8],
        before: Position,
        refunds: &[(u64, u64)],
    ) -> Result<Position> {
        let (fields, receipt) = (transaction.fields(), EncodedReceipt::new(encoded)?);
        let deposit = deposit_fields(&receipt)?;
        let gas_used =
            receipt.gas.checked_sub(before.gas).ok_or_else(|| damaged("gas that falls"))?;
        member(out, b"{\"transactionHash\":", |out| data(out, transaction.hash));
        member(out, b",\"transactionIndex\":", |out| quantity(out, before.transactions));
        member(out, b",\"type\":", |out| quantity(out, fields.ty().into()));
        member(out, b",\"from\":", |out| data(out, transaction.sender));
        member(out, b",\"to\":", |out| data_or_null(out, transaction.to()));
        member(out, b",\"cumulativeGasUsed\":", |out| quantity(out, receipt.gas));
        member(out, b",\"gasUsed\":", |out| quantity(out, gas_used));
        member(out, b",\"effectiveGasPrice\":", |out| {
            wide_quantity(out, U256::from(fields.effective_gas_price(self.base_fee)));
        });
        let nonce = match transaction.deposit() {
            Some(_) => deposit[0],
            None => Some(fields.nonce()),
        };
        let creator = nonce.filter(|_| fields.kind().is_create());
        member(out, b",\"contractAddress\":", |out| {
            data_or_null(out, creator.map(|nonce| transaction.sender.create(nonce)));
        });
        out.extend_from_slice(b",\"logs\":[");
        let logs = self.write_logs(out, transaction.hash, ReceiptLogs::new(&receipt), before)?;
        member(out, b"],\"logsBloom\":", |out| data(out, receipt.bloom));
        if receipt.outcome.len() == size_of::<B256>() {
            member(out, b",\"root\":", |out| data(out, receipt.outcome));
        } else {
            member(out, b",\"status\":", |out| quantity(out, (!receipt.outcome.is_empty()).into()));
        }
        self.write_fees(out, transaction, deposit);
        if self.has_refunds && transaction.is_standard() {
            let refund = refund_at(refunds, before.transactions);
            member(out, b",\"opGasRefund\":", |out| match refund {
                0 => out.extend_from_slice(b"null"),
                gas => quantity(out, gas),
            });
        }
        out.extend_from_slice(&self.end);
        let transactions = before.transactions.saturating_add(1);
        Ok(Position { transactions, gas: receipt.gas, logs: before.logs.saturating_add(logs) })
    }

    /// Returns the number of logs.
    fn write_logs(
        &self,
        out: &mut Vec<u8>,
        transaction_hash: B256,
        mut logs: ReceiptLogs<'_>,
        before: Position,
    ) -> Result<u64> {
        let mut count = 0;
        while let Some(log) = logs.take()? {
            out.extend_from_slice(if count == 0 { b"{\"address\":" } else { b",{\"address\":" });
            data(out, log.address);
            member(out, b",\"topics\":", |out| array(out, log.topics(), data));
            member(out, b",\"data\":", |out| data(out, log.data));
            member(out, b",\"logIndex\":", |out| quantity(out, before.logs.saturating_add(count)));
            member(out, b",\"transactionHash\":", |out| data(out, transaction_hash));
            member(out, b",\"transactionIndex\":", |out| quantity(out, before.transactions));
            out.extend_from_slice(&self.log_end);
            count += 1;
        }
        Ok(count)
    }

    /// Writes the fields that depend on fork and type.
    fn write_fees(&self, out: &mut Vec<u8>, transaction: &Transaction, deposit: [Option<u64>; 2]) {
        let cost = match &self.l1 {
            Some(prices) if transaction.is_standard() => prices.cost(&transaction.raw),
            _ => L1Cost::default(),
        };
        let blobs = transaction.fields().blob_versioned_hashes();
        if let Some(blobs) = blobs {
            let gas =
                if self.has_footprint { cost.footprint } else { GAS_PER_BLOB * blobs.len() as u64 };
            member(out, b",\"blobGasUsed\":", |out| quantity(out, gas));
            member(out, b",\"blobGasPrice\":", |out| wide_quantity(out, self.blob_fee));
        }
        optional(out, b",\"depositNonce\":", deposit[0], quantity);
        optional(out, b",\"depositReceiptVersion\":", deposit[1], quantity);
        if self.l1.is_some() {
            member(out, b",\"l1GasUsed\":", |out| wide_quantity(out, cost.gas));
            member(out, b",\"l1Fee\":", |out| wide_quantity(out, cost.fee));
        }
        if self.has_footprint && blobs.is_none() {
            member(out, b",\"blobGasUsed\":", |out| quantity(out, cost.footprint));
        }
    }
}

/// The nonce and the receipt version of a deposit.
fn deposit_fields(receipt: &EncodedReceipt<'_>) -> Result<[Option<u64>; 2]> {
    let mut rest = receipt.rest;
    let mut field = || match rest.is_empty() {
        true => Ok(None),
        false => take_item(&mut rest).and_then(number).map(Some),
    };
    Ok([field()?, field()?])
}

fn data_or_null(out: &mut Vec<u8>, bytes: Option<impl AsRef<[u8]>>) {
    match bytes {
        Some(bytes) => data(out, bytes),
        None => out.extend_from_slice(b"null"),
    }
}
