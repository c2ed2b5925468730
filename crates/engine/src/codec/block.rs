//! RLP encoding of blocks: `[header, transactions, uncles, withdrawals?]`.
//!
//! `decode_block` decodes one block from the start of a buffer. An accepted block re-encodes to
//! exactly the bytes consumed, including each transaction. Senders are not recovered (see
//! `transaction::decode_all`). Memory use is bounded by the bytes present, not by the lengths they
//! claim.
//!
//! The caller must check that body and header match, using the root functions below. On the L2 the
//! header's withdrawals root is not the root of the (empty) withdrawals.

#[cfg(test)]
mod tests;

pub use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::{BufMut, Decodable, Encodable};

use crate::codec::header::Header;
use crate::codec::transaction;
use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Block {
    pub header: Header,
    pub hash: B256,
    /// EIP-2718 encodings.
    pub transactions: Vec<Bytes>,
    pub uncles: Vec<Header>,
    /// `None` before Shanghai (Canyon on the L2).
    pub withdrawals: Option<Vec<Withdrawal>>,
    /// The length of the encoding in bytes.
    pub size: usize,
}

impl Block {
    /// Each transaction is a non-empty EIP-2718 encoding.
    pub fn new(
        header: Header,
        transactions: Vec<Bytes>,
        uncles: Vec<Header>,
        withdrawals: Option<Vec<Withdrawal>>,
    ) -> Self {
        let hash = header.hash();
        let mut block = Self { header, hash, transactions, uncles, withdrawals, size: 0 };
        block.size = list_header(block.payload_length()).length_with_payload();
        block
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        list_header(self.payload_length()).encode(&mut out);
        self.header.fields().encode(&mut out);
        list_header(self.transactions_length()).encode(&mut out);
        self.transactions.iter().for_each(|raw| encode_transaction(raw, &mut out));
        list_header(self.uncles_length()).encode(&mut out);
        self.uncles.iter().for_each(|uncle| uncle.fields().encode(&mut out));
        if let Some(withdrawals) = &self.withdrawals {
            withdrawals.encode(&mut out);
        }
        out
    }

    fn payload_length(&self) -> usize {
        self.header.size()
            + list_header(self.transactions_length()).length_with_payload()
            + list_header(self.uncles_length()).length_with_payload()
            + self.withdrawals.as_ref().map_or(0, Encodable::length)
    }

    fn transactions_length(&self) -> usize {
        self.transactions.iter().map(|raw| transaction_length(raw)).sum()
    }

    fn uncles_length(&self) -> usize {
        self.uncles.iter().map(Header::size).sum()
    }
}

/// Decodes the block at the start of `bytes`. Also returns the number of bytes consumed.
///
/// # Errors
///
/// `Undecodable` unless the bytes start with one canonical block.
pub fn decode_block(bytes: &[u8]) -> Result<(Block, usize)> {
    if bytes.is_empty() {
        return Err(undecodable("no bytes"));
    }
    let mut rest = bytes;
    let mut body = list(&mut rest, "outer list")?;
    let consumed = bytes.len() - rest.len();

    let header = Header::decode(item(&mut body, "header")?.whole)?;
    let transactions = decode_transactions(list(&mut body, "transactions")?)?;
    let uncles = decode_uncles(list(&mut body, "uncles")?)?;
    let withdrawals = if body.is_empty() {
        None
    } else {
        Some(Vec::decode(&mut body).map_err(|why| undecodable(format!("withdrawals: {why}")))?)
    };
    if !body.is_empty() {
        return Err(undecodable("more items than header, transactions, uncles and withdrawals"));
    }

    let block = Block::new(header, transactions, uncles, withdrawals);
    if block.encode() != bytes[..consumed] {
        return Err(undecodable("not the canonical encoding"));
    }
    Ok((block, consumed))
}

/// `keccak(rlp(uncles))`.
pub fn ommers_hash(uncles: &[Header]) -> B256 {
    let fields: Vec<_> = uncles.iter().map(|uncle| uncle.fields().clone()).collect();
    alloy_consensus::proofs::calculate_ommers_root(&fields)
}

/// The trie root of the EIP-2718 encodings by index.
pub fn transactions_root<T: AsRef<[u8]>>(raws: &[T]) -> B256 {
    alloy_trie::root::ordered_trie_root_encoded(raws)
}

pub fn withdrawals_root(withdrawals: &[Withdrawal]) -> B256 {
    alloy_consensus::proofs::calculate_withdrawals_root(withdrawals)
}

/// One RLP item: the complete item and its payload.
struct Item<'a> {
    whole: &'a [u8],
    payload: &'a [u8],
    is_list: bool,
}

fn item<'a>(rest: &mut &'a [u8], what: &str) -> Result<Item<'a>> {
    let start = *rest;
    let decoded =
        alloy_rlp::Header::decode(rest).map_err(|why| undecodable(format!("{what}: {why}")))?;
    let (payload, after) = rest
        .split_at_checked(decoded.payload_length)
        .ok_or_else(|| undecodable(format!("{what}: cut short")))?;
    *rest = after;
    Ok(Item { whole: &start[..start.len() - after.len()], payload, is_list: decoded.list })
}

fn list<'a>(rest: &mut &'a [u8], what: &str) -> Result<&'a [u8]> {
    match item(rest, what)? {
        Item { payload, is_list: true, .. } => Ok(payload),
        _ => Err(undecodable(format!("{what}: a string where a list should be"))),
    }
}

fn decode_transactions(mut rest: &[u8]) -> Result<Vec<Bytes>> {
    let mut transactions = Vec::new();
    while !rest.is_empty() {
        let index = transactions.len();
        let found = item(&mut rest, "transactions")?;
        // A legacy transaction is a list, a typed one is wrapped in a string.
        let raw = if found.is_list { found.whole } else { found.payload };
        transaction::check(raw).map_err(|error| match error {
            Error::Undecodable { why, .. } => undecodable(format!("transaction {index}: {why}")),
            other => other,
        })?;
        transactions.push(Bytes::copy_from_slice(raw));
    }
    Ok(transactions)
}

fn decode_uncles(mut rest: &[u8]) -> Result<Vec<Header>> {
    let mut uncles = Vec::new();
    while !rest.is_empty() {
        uncles.push(Header::decode(item(&mut rest, "uncles")?.whole)?);
    }
    Ok(uncles)
}

fn is_legacy(raw: &[u8]) -> bool {
    raw.first().is_some_and(|&first| first >= alloy_rlp::EMPTY_LIST_CODE)
}

/// The length of a transaction inside a block.
pub fn transaction_length(raw: &[u8]) -> usize {
    if is_legacy(raw) { raw.len() } else { raw.length() }
}

/// Writes a transaction in its block encoding: legacy as a list, typed as a string.
pub fn encode_transaction(raw: &[u8], out: &mut Vec<u8>) {
    if is_legacy(raw) { out.put_slice(raw) } else { raw.encode(out) }
}

fn list_header(payload_length: usize) -> alloy_rlp::Header {
    alloy_rlp::Header { list: true, payload_length }
}

fn undecodable(why: impl Into<String>) -> Error {
    Error::Undecodable { what: "block", why: why.into() }
}
