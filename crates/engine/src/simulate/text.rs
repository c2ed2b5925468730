//! The JSON of simulated blocks, written in pieces.
//!
//! The dialects differ in the results of failed calls only.

use std::{borrow::Cow, mem, sync::Arc};

use alloy_primitives::{B256, Bytes, Log};

use super::body::SealedBody;
use crate::{
    abi::revert_reason,
    codec::{
        header::Header,
        json::{self, array, data, member, quantity, string},
    },
    evm::outcome::{Outcome, Status},
};

/// An array of blocks with the results of their calls.
pub struct SimulationText {
    blocks: Vec<Arc<SealedBody>>,
    /// The transactions of each block as a JSON array, or nothing to show their hashes.
    transactions: Vec<Bytes>,
    dialect: Dialect,
    /// The number of written blocks, and of written calls in the block in progress.
    written: (usize, usize),
    /// The text that all logs of the block in progress share.
    shared: Option<BlockText>,
    /// The current piece, and the number of its bytes already taken.
    piece: Vec<u8>,
    taken: usize,
    is_complete: bool,
}

impl SimulationText {
    pub fn new(blocks: Vec<Arc<SealedBody>>, transactions: Vec<Bytes>, dialect: Dialect) -> Self {
        Self {
            blocks,
            transactions,
            dialect,
            written: (0, 0),
            shared: None,
            piece: Vec::new(),
            taken: 0,
            is_complete: false,
        }
    }

    /// The next piece of at most `size` bytes; empty at the end.
    pub fn take(&mut self, size: usize) -> &[u8] {
        if self.taken == self.piece.len() {
            let mut piece = mem::take(&mut self.piece);
            piece.clear();
            self.write(&mut piece, size);
            (self.piece, self.taken) = (piece, 0);
        }
        let start = self.taken;
        self.taken = self.piece.len().min(start.saturating_add(size));
        &self.piece[start..self.taken]
    }

    /// Appends results until `out` has at least `size` bytes. Returns true if the text is complete.
    pub fn write(&mut self, out: &mut Vec<u8>, size: usize) -> bool {
        while out.len() < size && !self.is_complete {
            let (number, call) = self.written;
            let Some(block) = self.blocks.get(number) else {
                out.extend_from_slice(if number == 0 { b"[]" } else { b"]" });
                self.is_complete = true;
                break;
            };
            match &self.shared {
                None => {
                    out.push(if number == 0 { b'[' } else { b',' });
                    write_beginning(out, block, self.transactions.get(number));
                    self.shared = Some(BlockText::new(&block.block.header));
                }
                Some(shared) if call < block.calls.len() => {
                    write_result(out, block, call, shared, self.dialect);
                    self.written.1 += 1;
                }
                Some(_) => {
                    out.extend_from_slice(b"]}");
                    (self.written, self.shared) = ((number + 1, 0), None);
                }
            }
        }
        self.is_complete
    }
}

/// Writes a block up to the result of its first call.
fn write_beginning(out: &mut Vec<u8>, sealed: &SealedBody, transactions: Option<&Bytes>) {
    let block = &sealed.block;
    out.reserve(2048 + 256 * sealed.calls.len());
    out.push(b'{');
    json::header(out, &block.header, Some(block.size));
    out.extend_from_slice(b",\"uncles\":[]");
    if let Some(withdrawals) = &block.withdrawals {
        out.extend_from_slice(b",\"withdrawals\":");
        json::array(out, withdrawals, json::withdrawal);
    }
    out.extend_from_slice(b",\"transactions\":");
    match transactions {
        Some(array) => out.extend_from_slice(array),
        None => json::array(out, &sealed.hashes, json::data),
    }
    out.extend_from_slice(b",\"calls\":[");
}

fn write_result(
    out: &mut Vec<u8>,
    sealed: &SealedBody,
    index: usize,
    block: &BlockText,
    dialect: Dialect,
) {
    if index > 0 {
        out.push(b',');
    }
    let call = &sealed.calls[index];
    let place = Place { block, transaction_hash: sealed.hashes[index], index };
    write_outcome(out, &call.outcome, call.lowered, &place, dialect);
}

/// The form of failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `error` is a text, and revert data are return data.
    Preconf,
    /// `error` is an object with the revert data.
    Ethereum,
}

impl Dialect {
    pub fn read(name: &str) -> Option<Self> {
        match name {
            "preconf" => Some(Self::Preconf),
            "ethereum" => Some(Self::Ethereum),
            _ => None,
        }
    }
}

/// The members that all logs of a block share, encoded once.
struct BlockText(Vec<u8>);

impl BlockText {
    fn new(header: &Header) -> Self {
        let mut out = Vec::with_capacity(160);
        member(&mut out, b",\"blockNumber\":", |out| quantity(out, header.number));
        member(&mut out, b",\"blockHash\":", |out| data(out, header.hash()));
        member(&mut out, b",\"blockTimestamp\":", |out| quantity(out, header.timestamp));
        Self(out)
    }
}

/// The position of a call in its block, for its logs.
struct Place<'a> {
    block: &'a BlockText,
    transaction_hash: B256,
    index: usize,
}

/// Writes the result of a call. `lowered` is true if it received less gas than it requested.
fn write_outcome(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    lowered: bool,
    place: &Place<'_>,
    dialect: Dialect,
) {
    let status = if outcome.is_success() { b"{\"status\":\"0x1\"" } else { b"{\"status\":\"0x0\"" };
    out.extend_from_slice(status);
    let returned = match (&outcome.status, dialect) {
        (Status::Revert, Dialect::Ethereum) | (Status::Halt(_), _) => &[],
        _ => &outcome.output[..],
    };
    member(out, b",\"returnData\":", |out| data(out, returned));
    member(out, b",\"gasUsed\":", |out| quantity(out, outcome.gas_used));
    member(out, b",\"maxUsedGas\":", |out| quantity(out, outcome.max_gas_used));
    out.extend_from_slice(b",\"logs\":");
    match outcome.collected_logs() {
        Some(collected) if collected.len() > 0 => logs(out, collected, place),
        _ => out.extend_from_slice(b"[]"),
    }
    match &outcome.status {
        Status::Success => {}
        Status::Revert => reverted(out, &outcome.output, dialect),
        Status::Halt(why) => halted(out, why, lowered, dialect),
    }
    out.push(b'}');
}

fn reverted(out: &mut Vec<u8>, output: &[u8], dialect: Dialect) {
    let text = match revert_reason(output) {
        Some(reason) if !reason.is_empty() => Cow::from(format!("execution reverted: {reason}")),
        _ => "execution reverted".into(),
    };
    match dialect {
        Dialect::Preconf => member(out, b",\"error\":", |out| string(out, &text)),
        Dialect::Ethereum => {
            member(out, b",\"error\":{\"code\":3,\"message\":", |out| string(out, &text));
            member(out, b",\"data\":", |out| data(out, output));
            out.push(b'}');
        }
    }
}

fn halted(out: &mut Vec<u8>, why: &str, lowered: bool, dialect: Dialect) {
    let note =
        if lowered { " (gas limit was capped by the RPC server's global gas cap)" } else { "" };
    let text = format!("{why}{note}");
    match dialect {
        Dialect::Preconf => member(out, b",\"error\":", |out| string(out, &text)),
        Dialect::Ethereum => {
            member(out, b",\"error\":{\"code\":-32015,\"message\":", |out| string(out, &text));
            out.push(b'}');
        }
    }
}

fn logs<'a>(out: &mut Vec<u8>, collected: impl Iterator<Item = (u64, &'a Log)>, place: &Place<'_>) {
    let mut end = Vec::with_capacity(300);
    member(&mut end, b",\"transactionHash\":", |out| data(out, place.transaction_hash));
    member(&mut end, b",\"transactionIndex\":", |out| quantity(out, place.index as u64));
    end.extend_from_slice(&place.block.0);
    end.extend_from_slice(b",\"removed\":false}");
    array(out, collected, |out, (index, log)| {
        member(out, b"{\"address\":", |out| data(out, log.address));
        member(out, b",\"topics\":", |out| array(out, log.topics(), data));
        member(out, b",\"data\":", |out| data(out, &log.data.data));
        member(out, b",\"logIndex\":", |out| quantity(out, index));
        out.extend_from_slice(&end);
    });
}
