//! Parity's traces: the frames of a run as a flat list, each with its position in the tree.

use alloy_primitives::{Address, B256};
use revm::interpreter::CallScheme;

use super::{
    frames::{Frame, Frames, Kind},
    text::{Text, decimal},
};
use crate::codec::json::{data, member, quantity, string, wide_quantity};

/// The position of the run in its block, repeated in each trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    pub block_hash: Option<B256>,
    pub block_number: u64,
    pub transaction: Option<(B256, u64)>,
}

/// Selects traces by sender and receiver, and limits them to a range of matches.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Matches any address if empty.
    pub from: Vec<Address>,
    pub to: Vec<Address>,
    /// Matches if either `from` or `to` matches, instead of both.
    pub either: bool,
    /// Matches only successful creations.
    pub creations: bool,
    pub skip: u64,
    pub take: Option<u64>,
}

impl Selection {
    fn matches(&self, frame: &Frame) -> bool {
        if self.creations && (!frame.is_creation() || frame.error.is_some()) {
            return false;
        }
        let to = (!frame.is_creation() || frame.error.is_none()).then_some(frame.to);
        let from = self.from.contains(&frame.from);
        let to = to.is_some_and(|to| self.to.contains(&to));
        match (self.from.is_empty(), self.to.is_empty()) {
            (true, true) => true,
            (false, true) => from,
            (true, false) => to,
            (false, false) if self.either => from || to,
            (false, false) => from && to,
        }
    }

    /// Returns true if the next match is written. The match is counted in either case.
    fn next(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.take {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.take == Some(0)
    }
}

/// The style of a trace: error texts, position and gas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) place: Option<Place>,
    /// Use Parity's error texts instead of geth's.
    pub(crate) parity_errors: bool,
    pub(crate) precompiles: bool,
    /// The transaction's gas and gas used, shown instead of those of its frame.
    pub(crate) top: Option<(u64, u64)>,
}

/// Writes the traces, separated by commas; `first` is cleared by the first trace.
pub(crate) fn write(
    text: &mut Text,
    frames: &Frames,
    style: &Style,
    selection: &mut Selection,
    first: &mut bool,
) {
    let mut address = Vec::new();
    write_frame(text, frames, 0, style, selection, first, &mut address);
}

fn write_frame(
    text: &mut Text,
    frames: &Frames,
    number: usize,
    style: &Style,
    selection: &mut Selection,
    first: &mut bool,
    address: &mut Vec<usize>,
) {
    let Some(frame) = frames.all.get(number) else { return };
    let calls: Vec<usize> =
        frame.calls.iter().copied().filter(|call| is_shown(&frames.all[*call], style)).collect();
    if selection.matches(frame) && selection.next() {
        if !std::mem::take(first) {
            text.push(b",");
        }
        let top = style.top.filter(|_| number == 0);
        write_one(text.out(), frame, style, calls.len(), address, top);
    }
    for (place, call) in calls.into_iter().enumerate() {
        if selection.is_done() || text.is_over() {
            return;
        }
        address.push(place);
        write_frame(text, frames, call, style, selection, first, address);
        address.pop();
    }
}

/// Calls of precompiles are omitted, because Parity treats them like instructions.
fn is_shown(frame: &Frame, style: &Style) -> bool {
    let plain = matches!(frame.kind, Kind::Call(CallScheme::Call | CallScheme::StaticCall));
    style.precompiles || !(plain && frame.precompile)
}

fn write_one(
    out: &mut Vec<u8>,
    frame: &Frame,
    style: &Style,
    subtraces: usize,
    address: &[usize],
    top: Option<(u64, u64)>,
) {
    let (gas, gas_used) = top.unwrap_or((frame.gas, frame.gas_used));
    write_action(out, frame, gas);
    if let Some(place) = &style.place {
        member(out, b",\"blockHash\":", |out| optional_hash(out, place.block_hash));
        member(out, b",\"blockNumber\":", |out| decimal(out, place.block_number));
    }
    if let Some(error) = &frame.error {
        let error = if style.parity_errors { parity_error(error) } else { error };
        member(out, b",\"error\":", |out| string(out, error));
    }
    match frame.kind {
        Kind::SelfDestruct if style.top.is_none() => out.extend_from_slice(b",\"result\":null"),
        Kind::SelfDestruct => {}
        _ if frame.error.is_some() && !frame.reverted => {
            if style.top.is_none() {
                out.extend_from_slice(b",\"result\":null");
            }
        }
        _ => write_result(out, frame, gas_used),
    }
    member(out, b",\"subtraces\":", |out| decimal(out, subtraces as u64));
    out.extend_from_slice(b",\"traceAddress\":[");
    for (place, index) in address.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        decimal(out, *index as u64);
    }
    out.push(b']');
    if let Some(place) = &style.place {
        let (hash, index) = place.transaction.unzip();
        member(out, b",\"transactionHash\":", |out| optional_hash(out, hash));
        member(out, b",\"transactionPosition\":", |out| decimal(out, index.unwrap_or_default()));
    }
    let kind = match frame.kind {
        Kind::Call(_) => "call",
        Kind::Create | Kind::Create2 => "create",
        Kind::SelfDestruct => "suicide",
    };
    member(out, b",\"type\":", |out| string(out, kind));
    out.push(b'}');
}

fn write_action(out: &mut Vec<u8>, frame: &Frame, gas: u64) {
    out.extend_from_slice(b"{\"action\":{");
    let name = frame.name().to_lowercase();
    match frame.kind {
        Kind::SelfDestruct => {
            member(out, b"\"address\":", |out| data(out, frame.from));
            member(out, b",\"balance\":", |out| wide_quantity(out, frame.value));
            member(out, b",\"refundAddress\":", |out| data(out, frame.to));
            out.push(b'}');
            return;
        }
        Kind::Call(_) => {
            member(out, b"\"callType\":", |out| string(out, &name));
            member(out, b",\"to\":", |out| data(out, frame.to));
            member(out, b",\"input\":", |out| data(out, &frame.input));
        }
        Kind::Create | Kind::Create2 => {
            member(out, b"\"creationMethod\":", |out| string(out, &name));
            member(out, b",\"init\":", |out| data(out, &frame.input));
        }
    }
    member(out, b",\"from\":", |out| data(out, frame.from));
    member(out, b",\"gas\":", |out| quantity(out, gas));
    member(out, b",\"value\":", |out| wide_quantity(out, frame.value));
    out.push(b'}');
}

fn write_result(out: &mut Vec<u8>, frame: &Frame, gas_used: u64) {
    member(out, b",\"result\":{\"gasUsed\":", |out| quantity(out, gas_used));
    if frame.is_creation() {
        if frame.error.is_none() {
            member(out, b",\"address\":", |out| data(out, frame.to));
        }
        member(out, b",\"code\":", |out| data(out, &frame.output));
    } else {
        member(out, b",\"output\":", |out| data(out, &frame.output));
    }
    out.push(b'}');
}

fn optional_hash(out: &mut Vec<u8>, hash: Option<B256>) {
    match hash {
        Some(hash) => data(out, hash),
        None => out.extend_from_slice(b"null"),
    }
}

/// Translates geth's text to Parity's; texts without a counterpart are unchanged.
pub(crate) fn parity_error(error: &str) -> &str {
    match error {
        "contract creation code storage out of gas"
        | "gas uint64 overflow"
        | "max code size exceeded" => "Out of gas",
        "invalid jump destination" => "Bad jump destination",
        "execution reverted" => "Reverted",
        "return data out of bounds" => "Out of bounds",
        "stack limit reached 1024 (1023)" => "Out of stack",
        "precompile failed" | "invalid input length" => "Built-in failed",
        _ if error.starts_with("out of gas") => "Out of gas",
        _ if error.starts_with("invalid opcode:") => "Bad instruction",
        _ if error.starts_with("stack underflow") => "Stack underflow",
        _ => error,
    }
}
