//! geth's struct logs: one entry per instruction, written after it executed.
//!
//! An entry shows the state before the instruction, but its cost and error are only known after it.
//! Stack, memory and return data are therefore written to a separate buffer in `step` and copied in
//! `step_end`. Numbers, words and storage are formatted as in the published test cases, which
//! prefix words of memory and storage with 0x.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use alloy_primitives::{Address, B256, U256};
use revm::{
    bytecode::opcode,
    interpreter::{
        FrameInput, Interpreter, InterpreterAction,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, LoopControl, ReturnData},
    },
    primitives::hardfork::SpecId,
};

use super::{
    context::Traced,
    faults::Faults,
    text::{Text, decimal},
};
use crate::{
    codec::json::{array, data, member, string, wide_quantity},
    evm::{
        instructions,
        outcome::{Outcome, Status},
    },
};

/// Approximate memory of a recorded slot.
const SLOT_BYTES: usize = 128;

#[derive(Debug, Clone, Copy)]
pub struct StructLogOptions {
    pub memory: bool,
    pub stack: bool,
    pub storage: bool,
    pub return_data: bool,
    /// No more entries are written after this many bytes; 0 for no limit.
    pub limit: usize,
}

#[derive(Debug)]
pub(crate) struct StructLogs {
    options: StructLogOptions,
    pub(crate) text: Text,
    first: bool,
    written: usize,
    storage: HashMap<Address, BTreeMap<U256, U256>>,
    slots: usize,
    /// The refunds of each open frame.
    refunds: Vec<i64>,
    /// The refunds of all open frames except the last.
    below: i64,
    /// The fields from here on belong to the current step.
    faults: Faults,
    pc: usize,
    gas: u64,
    slot: Option<(U256, U256)>,
    shown: Vec<u8>,
    skip: bool,
    /// The size of a step that exceeded the remaining space.
    refused: usize,
}

impl StructLogs {
    /// `text` continues the text of earlier transactions.
    pub(crate) fn new(options: StructLogOptions, mut text: Text, spec: SpecId) -> Self {
        text.push(b"{\"structLogs\":[");
        Self {
            options,
            text,
            first: true,
            written: 0,
            storage: HashMap::new(),
            slots: 0,
            refunds: Vec::new(),
            below: 0,
            faults: Faults::new(spec),
            pc: 0,
            gas: 0,
            slot: None,
            shown: Vec::new(),
            skip: false,
            refused: 0,
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.slots * SLOT_BYTES + self.refused
    }

    /// Adds refunds from before the first instruction.
    pub(crate) fn add_refund(&mut self, refund: i64) {
        self.below += refund;
    }

    pub(crate) fn enter(&mut self) {
        self.below += self.refunds.last().copied().unwrap_or_default();
        self.refunds.push(0);
    }

    pub(crate) fn leave(&mut self) {
        self.refunds.pop();
        self.below -= self.refunds.last().copied().unwrap_or_default();
    }

    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        self.skip = self.options.limit != 0 && self.written > self.options.limit;
        if self.skip {
            return;
        }
        let size = self.size(interpreter);
        if size > self.text.room() {
            (self.skip, self.refused) = (true, size);
            return;
        }
        self.faults.step(interpreter, context);
        let (op, stack) = (self.faults.op(), interpreter.stack.data());
        self.pc = interpreter.bytecode.pc();
        self.gas = interpreter.gas.remaining();
        self.slot = None;
        if matches!(op, opcode::SLOAD | opcode::SSTORE) && self.options.storage {
            self.slot = touched_slot(op, stack, interpreter, context);
        }
        let shown = &mut self.shown;
        shown.clear();
        if self.options.stack {
            member(shown, b",\"stack\":", |out| array(out, stack, |out, item| wide(out, *item)));
        }
        if self.options.return_data && !interpreter.return_data.buffer().is_empty() {
            member(shown, b",\"returnData\":", |out| data(out, interpreter.return_data.buffer()));
        }
        if self.options.memory {
            let memory = interpreter.memory.context_memory();
            if !memory.is_empty() {
                member(shown, b",\"memory\":", |out| array(out, memory.chunks(32), data));
            }
        }
    }

    /// The text size of the parts of a step that may be large: two digits per byte.
    fn size(&self, interpreter: &Interpreter<EthInterpreter>) -> usize {
        let of = |is_shown: bool, bytes: usize| if is_shown { bytes.saturating_mul(2) } else { 0 };
        of(self.options.memory, interpreter.memory.context_memory().len())
            .saturating_add(of(self.options.return_data, interpreter.return_data.buffer().len()))
    }

    /// Returns the number of bytes written.
    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) -> usize {
        let refund = interpreter.gas.refunded();
        if let Some(last) = self.refunds.last_mut() {
            *last = refund;
        }
        if self.skip {
            return 0;
        }
        let mut cost = self.gas.saturating_sub(interpreter.gas.remaining());
        let fault = self.faults.step_end(interpreter);
        // The gas forwarded to the new frame is not part of the instruction's cost.
        if let Some(InterpreterAction::NewFrame(FrameInput::Create(inputs))) =
            interpreter.bytecode.action()
        {
            cost = cost.saturating_sub(inputs.gas_limit());
        }
        if let Some(full) = fault.as_ref().and_then(|fault| fault.cost) {
            cost = full;
        }
        let fault = fault.filter(|fault| fault.before);
        let before = self.text.len();
        if !mem::take(&mut self.first) {
            self.text.push(b",");
        }
        let start = self.text.len();
        let out = self.text.out();
        member(out, b"{\"pc\":", |out| decimal(out, self.pc as u64));
        member(out, b",\"op\":", |out| string(out, &instructions::name(self.faults.op())));
        member(out, b",\"gas\":", |out| decimal(out, self.gas));
        member(out, b",\"gasCost\":", |out| decimal(out, cost));
        member(out, b",\"depth\":", |out| decimal(out, self.refunds.len() as u64));
        if let Some(fault) = fault {
            member(out, b",\"error\":", |out| string(out, &fault.text));
        }
        out.extend_from_slice(&self.shown);
        self.write_storage(interpreter.input.target_address());
        let refund = self.below.saturating_add(refund).max(0);
        if refund > 0 {
            member(self.text.out(), b",\"refund\":", |out| decimal(out, refund as u64));
        }
        self.text.out().push(b'}');
        self.written += self.text.len() - start;
        self.text.len() - before
    }

    fn write_storage(&mut self, contract: Address) {
        let Some((slot, value)) = self.slot.take() else { return };
        let storage = self.storage.entry(contract).or_default();
        if storage.insert(slot, value).is_none() {
            self.slots += 1;
        }
        let out = self.text.out();
        for (place, (slot, value)) in storage.iter().enumerate() {
            out.extend_from_slice(if place == 0 { b",\"storage\":{" } else { b"," });
            data(out, B256::from(*slot));
            out.push(b':');
            data(out, B256::from(*value));
        }
        out.push(b'}');
    }

    /// Completes the text of this run.
    pub(crate) fn finish(mut self, outcome: &Outcome) -> Text {
        let out = self.text.out();
        member(out, b"],\"gas\":", |out| decimal(out, outcome.gas_used));
        let failed = !outcome.is_success();
        out.extend_from_slice(if failed { b",\"failed\":true" } else { b",\"failed\":false" });
        let returned: &[u8] = match outcome.status {
            Status::Halt(_) => &[],
            Status::Success | Status::Revert => &outcome.output,
        };
        member(out, b",\"returnValue\":", |out| data(out, returned));
        out.push(b'}');
        self.text
    }
}

/// Writes a stack word; most are short.
fn wide(out: &mut Vec<u8>, word: U256) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let [low, rest @ ..] = word.as_limbs();
    if rest.iter().any(|limb| *limb != 0) {
        return wide_quantity(out, word);
    }
    let digits = (64 - low.leading_zeros()).div_ceil(4).max(1);
    out.extend_from_slice(b"\"0x");
    for place in (0..digits).rev() {
        out.push(DIGITS[(low >> (4 * place)) as usize & 0xf]);
    }
    out.push(b'"');
}

/// The slot accessed, with its value after the instruction.
fn touched_slot<CTX: Traced>(
    op: u8,
    stack: &[U256],
    interpreter: &Interpreter<EthInterpreter>,
    context: &mut CTX,
) -> Option<(U256, U256)> {
    let slot = *stack.last()?;
    let value = match op {
        opcode::SLOAD => context.slot(interpreter.input.target_address(), slot)?,
        _ => *stack.get(stack.len().checked_sub(2)?)?,
    };
    Some((slot, value))
}
