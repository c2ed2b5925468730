//! Otterscan's two lists of a run: its calls in order, and its transfers and creations.

use revm::interpreter::CallScheme;

use super::{
    frames::{Frame, Frames, Kind},
    text::{Text, decimal},
};
use crate::codec::json::{data, member, string, wide_quantity};

/// Writes all frames in execution order, each with its depth.
pub(crate) fn write_entries(text: &mut Text, frames: &Frames) {
    text.push(b"[");
    let mut waiting = vec![(0, 0)];
    let mut first = true;
    while let Some((number, depth)) = waiting.pop() {
        let Some(frame) = frames.all.get(number) else { break };
        if !std::mem::take(&mut first) {
            text.push(b",");
        }
        write_entry(text.out(), frame, depth);
        waiting.extend(frame.calls.iter().rev().map(|call| (*call, depth + 1)));
    }
    text.push(b"]");
}

fn write_entry(out: &mut Vec<u8>, frame: &Frame, depth: u64) {
    member(out, b"{\"type\":", |out| string(out, frame.name()));
    member(out, b",\"depth\":", |out| decimal(out, depth));
    member(out, b",\"from\":", |out| data(out, frame.from));
    member(out, b",\"to\":", |out| data(out, frame.to));
    match frame.kind {
        Kind::Call(CallScheme::DelegateCall | CallScheme::StaticCall) => {
            out.extend_from_slice(b",\"value\":null");
        }
        _ => member(out, b",\"value\":", |out| wide_quantity(out, frame.value)),
    }
    member(out, b",\"input\":", |out| data(out, &frame.input));
    member(out, b",\"output\":", |out| data(out, &frame.output));
    out.push(b'}');
}

/// Writes the internal transfers, creations and self-destructs. Failed frames are skipped.
pub(crate) fn write_operations(text: &mut Text, frames: &Frames) {
    text.push(b"[");
    let mut waiting = vec![0];
    let mut first = true;
    while let Some(number) = waiting.pop() {
        let Some(frame) = frames.all.get(number) else { break };
        if frame.error.is_some() {
            continue;
        }
        waiting.extend(frame.calls.iter().rev());
        let kind = match frame.kind {
            _ if number == 0 => continue,
            Kind::Call(CallScheme::Call) if !frame.value.is_zero() => 0,
            Kind::SelfDestruct => 1,
            Kind::Create => 2,
            Kind::Create2 => 3,
            Kind::Call(_) => continue,
        };
        if !std::mem::take(&mut first) {
            text.push(b",");
        }
        let out = text.out();
        member(out, b"{\"type\":", |out| decimal(out, kind));
        member(out, b",\"from\":", |out| data(out, frame.from));
        member(out, b",\"to\":", |out| data(out, frame.to));
        member(out, b",\"value\":", |out| wide_quantity(out, frame.value));
        out.push(b'}');
    }
    text.push(b"]");
}
