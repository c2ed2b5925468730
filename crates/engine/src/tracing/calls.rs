//! geth's callTracer: nested call frames.

use revm::interpreter::CallScheme;

use super::{
    frames::{Frame, Frames, Kind},
    text::Text,
};
use crate::{
    abi::revert_reason,
    codec::json::{array, data, member, quantity, string, wide_quantity},
    evm::outcome::Outcome,
};

/// The top-level frame is shown with the gas of the transaction.
pub(crate) struct Top<'a> {
    pub(crate) gas_limit: u64,
    pub(crate) outcome: &'a Outcome,
}

pub(crate) fn write(text: &mut Text, frames: &Frames, top: &Top<'_>, only_top: bool) {
    write_frame(text, frames, 0, Some(top), only_top, false);
}

fn write_frame(
    text: &mut Text,
    frames: &Frames,
    number: usize,
    top: Option<&Top<'_>>,
    only_top: bool,
    parent_failed: bool,
) {
    let Some(frame) = frames.all.get(number) else { return };
    // The text exceeds the recorded bytes by at most a constant factor; its limit is checked later.
    let out = text.out();
    let (gas, gas_used) = match top {
        Some(top) => (top.gas_limit, top.outcome.gas_used),
        None => (frame.gas, frame.gas_used),
    };
    member(out, b"{\"from\":", |out| data(out, frame.from));
    member(out, b",\"gas\":", |out| quantity(out, gas));
    member(out, b",\"gasUsed\":", |out| quantity(out, gas_used));
    if !(frame.is_creation() && frame.error.is_some()) {
        member(out, b",\"to\":", |out| data(out, frame.to));
    }
    member(out, b",\"input\":", |out| data(out, &frame.input));
    if !frame.output.is_empty() {
        member(out, b",\"output\":", |out| data(out, &frame.output));
    }
    if let Some(error) = &frame.error {
        member(out, b",\"error\":", |out| string(out, error));
        if let Some(reason) = frame.reverted.then(|| revert_reason(&frame.output)).flatten() {
            member(out, b",\"revertReason\":", |out| string(out, &reason));
        }
    }
    let failed = parent_failed || frame.error.is_some();
    if !only_top && !frame.calls.is_empty() {
        for (place, call) in frame.calls.iter().enumerate() {
            text.push(if place == 0 { b",\"calls\":[" } else { b"," });
            write_frame(text, frames, *call, None, only_top, failed);
        }
        text.push(b"]");
    }
    let out = text.out();
    if !failed && !frame.logs.is_empty() {
        member(out, b",\"logs\":", |out| write_logs(out, frame, only_top));
    }
    if frame.kind != Kind::Call(CallScheme::StaticCall) {
        member(out, b",\"value\":", |out| wide_quantity(out, frame.value));
    }
    member(out, b",\"type\":", |out| string(out, frame.name()));
    out.push(b'}');
}

fn write_logs(out: &mut Vec<u8>, frame: &Frame, only_top: bool) {
    array(out, &frame.logs, |out, entry| {
        member(out, b"{\"address\":", |out| data(out, entry.log.address));
        member(out, b",\"topics\":", |out| array(out, entry.log.topics(), data));
        member(out, b",\"data\":", |out| data(out, &entry.log.data.data));
        member(out, b",\"index\":", |out| quantity(out, entry.index));
        let position = if only_top { 0 } else { entry.position as u64 };
        member(out, b",\"position\":", |out| quantity(out, position));
        out.push(b'}');
    });
}
