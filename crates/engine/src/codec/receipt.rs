//! Receipts in consensus encoding, as hashed into the header.
//!
//! The additional fields of JSON-RPC (gas used by the transaction alone, created address, fees) are
//! computed elsewhere.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;

use alloy_primitives::{B256, Bloom, Log};
use alloy_rlp::{BufMut, Decodable, Encodable};

use crate::codec::transaction::DEPOSIT_TYPE;
use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    pub tx_type: u8,
    pub outcome: ReceiptOutcome,
    /// Gas used in the block up to and including this transaction.
    pub cumulative_gas_used: u64,
    pub logs: Vec<Log>,
    /// The sender's nonce before a deposit was executed. Deposits only, since Regolith.
    pub deposit_nonce: Option<u64>,
    /// 1 for deposits since Canyon. Without it the nonce is not encoded either, because the
    /// receipt hashes of Regolith blocks do not include the nonce.
    pub deposit_receipt_version: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiptOutcome {
    /// True if the transaction succeeded, since Byzantium (EIP-658).
    Status(bool),
    /// The state root after the transaction, before Byzantium.
    PostState(B256),
}

impl Encodable for ReceiptOutcome {
    fn encode(&self, out: &mut dyn BufMut) {
        match self {
            Self::Status(success) => success.encode(out),
            Self::PostState(root) => root.encode(out),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Status(success) => success.length(),
            Self::PostState(root) => root.length(),
        }
    }
}

impl Receipt {
    pub fn bloom(&self) -> Bloom {
        self.logs.iter().collect()
    }

    /// The EIP-2718 encoding, as in the receipt trie.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_with_bloom(&self.bloom(), &mut out);
        out
    }

    /// Like `encode`, with a precomputed bloom.
    pub fn encode_with_bloom(&self, bloom: &Bloom, out: &mut Vec<u8>) {
        let fields = ReceiptFields {
            tx_type: self.tx_type,
            outcome: self.outcome,
            cumulative_gas_used: self.cumulative_gas_used,
            bloom,
            logs: &self.logs,
        };
        fields.encode(self.hashed_deposit_fields(), out);
    }

    /// Decodes exactly one canonical encoding.
    ///
    /// # Errors
    ///
    /// `Undecodable` for anything else.
    pub fn decode(encoded: &[u8]) -> Result<Self> {
        let (tx_type, mut list) = match encoded {
            [tx_type @ 1..0x80, rest @ ..] => (*tx_type, rest),
            _ => (0, encoded),
        };
        let receipt =
            Self::decode_fields(tx_type, &mut list).map_err(|why| undecodable(why.to_string()))?;
        if receipt.encode() != encoded {
            return Err(undecodable("not the canonical encoding"));
        }
        Ok(receipt)
    }

    fn decode_fields(tx_type: u8, list: &mut &[u8]) -> alloy_rlp::Result<Self> {
        let mut fields = alloy_rlp::Header::decode_bytes(list, true)?;
        let outcome = match fields.first() {
            Some(0xa0) => ReceiptOutcome::PostState(Decodable::decode(&mut fields)?),
            _ => ReceiptOutcome::Status(Decodable::decode(&mut fields)?),
        };
        let cumulative_gas_used = Decodable::decode(&mut fields)?;
        Bloom::decode(&mut fields)?;
        let logs = Decodable::decode(&mut fields)?;
        let mut deposit_field =
            || (!fields.is_empty()).then(|| u64::decode(&mut fields)).transpose();
        let (deposit_nonce, deposit_receipt_version) = (deposit_field()?, deposit_field()?);
        Ok(Self {
            tx_type,
            outcome,
            cumulative_gas_used,
            logs,
            deposit_nonce,
            deposit_receipt_version,
        })
    }

    fn hashed_deposit_fields(&self) -> Option<(u64, u64)> {
        if self.tx_type != DEPOSIT_TYPE {
            return None;
        }
        self.deposit_nonce.zip(self.deposit_receipt_version)
    }
}

/// The encoded fields of a receipt, by reference.
pub struct ReceiptFields<'a> {
    pub tx_type: u8,
    pub outcome: ReceiptOutcome,
    pub cumulative_gas_used: u64,
    pub bloom: &'a Bloom,
    pub logs: &'a Vec<Log>,
}

impl ReceiptFields<'_> {
    /// `deposit` is the nonce and the receipt version of a deposit, if both are encoded.
    pub fn encode(&self, deposit: Option<(u64, u64)>, out: &mut Vec<u8>) {
        if self.tx_type != 0 {
            out.put_u8(self.tx_type);
        }
        let payload_length = self.outcome.length()
            + self.cumulative_gas_used.length()
            + self.bloom.length()
            + self.logs.length()
            + deposit.map_or(0, |(nonce, version)| nonce.length() + version.length());
        alloy_rlp::Header { list: true, payload_length }.encode(out);
        self.outcome.encode(out);
        self.cumulative_gas_used.encode(out);
        self.bloom.encode(out);
        self.logs.encode(out);
        if let Some((nonce, version)) = deposit {
            nonce.encode(out);
            version.encode(out);
        }
    }
}

fn undecodable(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "receipt", why: why.into() }
}

/// The bloom of a block: the union of the blooms of its receipts.
pub fn logs_bloom<'a>(receipts: impl IntoIterator<Item = &'a Receipt>) -> Bloom {
    receipts.into_iter().flat_map(|receipt| &receipt.logs).collect()
}

/// The trie root of the encoded receipts by index.
pub fn receipts_root<T: Borrow<Receipt>>(receipts: &[T]) -> B256 {
    alloy_trie::root::ordered_trie_root_with_encoder(receipts, |receipt, out| {
        let receipt = receipt.borrow();
        receipt.encode_with_bloom(&receipt.bloom(), out);
    })
}
