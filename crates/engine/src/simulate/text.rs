//! The JSON of simulated blocks, written in pieces.

use std::{mem, sync::Arc};

use alloy_primitives::Bytes;

use super::body::SealedBody;
use crate::codec::json::{self, BlockText, Dialect, Place};

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
    json::header(out, &block.header, block.size);
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
    json::call(out, &call.outcome, call.lowered, &place, dialect);
}
