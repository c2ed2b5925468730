//! Parity's vmTrace: the instructions of each frame, with the values they pushed and wrote.
//!
//! An entry is written after its instruction. The entry of a call or creation stays open for the
//! inner frame and is closed at the next step of its own frame, when the result is on the stack.
//! Only the text is held in memory.
//!
//! The rules are those of OpenEthereum. An instruction rejected before its gas is charged
//! (undefined opcode, stack underflow or overflow) has no entry; one that fails later has no `ex`.
//! The end of the code is not an instruction. `used` is the remaining gas. Erigon's `op` and `idx`
//! are included because libraries read them.

use alloy_primitives::U256;
use revm::{
    bytecode::opcode::{self, OpCode},
    interpreter::{
        InstructionResult, Interpreter, InterpreterAction,
        interpreter::EthInterpreter,
        interpreter_types::{Jumps, LegacyBytecode, LoopControl},
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
    evm::instructions,
};

#[derive(Debug)]
pub(crate) struct VmTrace {
    pub(crate) text: Text,
    faults: Faults,
    open: Vec<OpenFrame>,
    /// The current step.
    step: Option<Step>,
    is_empty: bool,
    /// The size of data that exceeded the remaining space.
    refused: usize,
}

#[derive(Debug, Default)]
struct OpenFrame {
    has_begun: bool,
    /// The number of entries.
    entries: usize,
    /// The open entry of a call.
    calling: Option<Effects>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    pc: usize,
    gas: u64,
    effects: Effects,
}

/// The effects of an instruction.
#[derive(Debug, Clone, Copy)]
struct Effects {
    pushed: usize,
    memory: Option<(usize, usize)>,
    slot: Option<(U256, U256)>,
}

impl VmTrace {
    /// `text` continues the text written so far.
    pub(crate) fn new(text: Text, spec: SpecId) -> Self {
        let faults = Faults::new(spec);
        Self { text, faults, open: Vec::new(), step: None, is_empty: true, refused: 0 }
    }

    pub(crate) fn held(&self) -> usize {
        self.text.len() + self.refused
    }

    /// Returns false if data is too long to be written: two digits per byte.
    fn fits(&mut self, bytes: usize) -> bool {
        let size = bytes.saturating_mul(2);
        let fits = size <= self.text.room();
        if !fits {
            self.refused = size;
        }
        fits
    }

    /// Called before a call or creation, which may not execute a frame.
    pub(crate) fn enter(&mut self) {
        self.open.push(OpenFrame::default());
    }

    /// Called when a frame starts executing. Returns the number of bytes written.
    pub(crate) fn begin(&mut self, interpreter: &Interpreter<EthInterpreter>) -> usize {
        let before = self.text.len();
        if let Some(frame) = self.open.last_mut() {
            frame.has_begun = true;
            self.begin_frame(interpreter.bytecode.bytecode_slice());
        }
        self.text.len() - before
    }

    fn begin_frame(&mut self, code: &[u8]) {
        self.is_empty = false;
        let code = if self.fits(code.len()) { code } else { &[] };
        let out = self.text.out();
        member(out, b"{\"code\":", |out| data(out, code));
        out.extend_from_slice(b",\"ops\":[");
    }

    /// Called after a call or creation. `code` is shown for a frame that executed no step.
    pub(crate) fn leave(&mut self, result: InstructionResult, code: &[u8]) {
        let Some(frame) = self.open.pop() else { return };
        if !frame.has_begun {
            use InstructionResult::{CallTooDeep, OutOfFunds, OverflowPayment};
            if matches!(result, CallTooDeep | OutOfFunds | OverflowPayment) {
                self.text.push(b"null");
                return;
            }
            self.begin_frame(code);
        }
        self.text.push(b"]}");
    }

    /// Returns the number of bytes written.
    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) -> usize {
        let before = self.text.len();
        if let Some(effects) = self.open.last_mut().and_then(|frame| frame.calling.take()) {
            self.close(interpreter, &effects);
        }
        let pc = interpreter.bytecode.pc();
        self.step = None;
        if pc < interpreter.bytecode.bytecode_len() {
            self.faults.step(interpreter, context);
            let effects = Effects::of(self.faults.op(), interpreter.stack.data());
            self.step = Some(Step { pc, gas: interpreter.gas.remaining(), effects });
        }
        self.text.len() - before
    }

    /// Returns the number of bytes written.
    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) -> usize {
        let Some(step) = self.step.take() else { return 0 };
        let before = self.text.len();
        let cost = step.gas.saturating_sub(interpreter.gas.remaining());
        let (ended, calls) = match interpreter.bytecode.action() {
            Some(InterpreterAction::Return(end)) => (Some(end.result), false),
            Some(InterpreterAction::NewFrame(_)) => (None, true),
            None => (None, false),
        };
        let failed = ended.filter(|end| end.is_error() && *end != InstructionResult::InvalidJump);
        match failed {
            Some(failure) => self.fail(failure, &step, cost, interpreter),
            None => {
                self.open_entry(&step, cost);
                match self.open.last_mut().filter(|_| calls) {
                    Some(frame) => frame.calling = Some(step.effects),
                    None => {
                        self.text.push(b"null");
                        self.close(interpreter, &step.effects);
                    }
                }
            }
        }
        self.text.len() - before
    }

    fn fail(
        &mut self,
        failure: InstructionResult,
        step: &Step,
        cost: u64,
        interpreter: &mut Interpreter<EthInterpreter>,
    ) {
        let fault = self.faults.step_end(interpreter);
        if !is_known(failure) || fault.as_ref().is_some_and(|it| is_uncounted(&it.text)) {
            return;
        }
        let cost = fault.and_then(|fault| fault.cost).unwrap_or(cost);
        self.open_entry(step, cost);
        self.text.push(b"null,\"ex\":null}");
    }

    /// Writes an entry up to the trace of its inner frame.
    fn open_entry(&mut self, step: &Step, cost: u64) {
        let Some((frame, below)) = self.open.split_last_mut() else { return };
        let place = frame.entries;
        frame.entries += 1;
        let out = self.text.out();
        out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        member(out, b"\"pc\":", |out| decimal(out, step.pc as u64));
        member(out, b",\"op\":", |out| string(out, &instructions::name(self.faults.op())));
        out.extend_from_slice(b",\"idx\":\"");
        for frame in below.iter() {
            decimal(out, frame.entries.saturating_sub(1) as u64);
            out.push(b'-');
        }
        decimal(out, place as u64);
        member(out, b"\",\"cost\":", |out| decimal(out, cost));
        out.extend_from_slice(b",\"sub\":");
    }

    /// Writes the rest of an entry: the effects of the instruction.
    fn close(&mut self, interpreter: &Interpreter<EthInterpreter>, effects: &Effects) {
        let memory = interpreter.memory.context_memory();
        let shown = effects.memory.map(|(offset, length)| {
            let start = offset.min(memory.len());
            let end = offset.saturating_add(length).min(memory.len());
            (offset, &memory[start..end])
        });
        let shown = shown.filter(|(_, bytes)| self.fits(bytes.len()));
        let out = self.text.out();
        out.extend_from_slice(b",\"ex\":{\"mem\":");
        match shown {
            None => out.extend_from_slice(b"null"),
            Some((offset, bytes)) => {
                member(out, b"{\"data\":", |out| data(out, bytes));
                member(out, b",\"off\":", |out| decimal(out, offset as u64));
                out.push(b'}');
            }
        }
        let stack = interpreter.stack.data();
        let pushed = &stack[stack.len().saturating_sub(effects.pushed)..];
        member(out, b",\"push\":", |out| array(out, pushed, |out, it| wide_quantity(out, *it)));
        match effects.slot {
            None => out.extend_from_slice(b",\"store\":null"),
            Some((slot, value)) => {
                member(out, b",\"store\":{\"key\":", |out| wide_quantity(out, slot));
                member(out, b",\"val\":", |out| wide_quantity(out, value));
                out.push(b'}');
            }
        }
        member(out, b",\"used\":", |out| decimal(out, interpreter.gas.remaining()));
        out.extend_from_slice(b"}}");
    }

    /// Returns the text, with `null` if nothing was executed.
    pub(crate) fn finish(mut self) -> Text {
        if self.is_empty {
            self.text.push(b"null");
        }
        self.text
    }
}

impl Effects {
    fn of(op: u8, stack: &[U256]) -> Self {
        let at = |below_top: usize| {
            stack.len().checked_sub(below_top + 1).map(|place| stack[place]).unwrap_or_default()
        };
        let size = |below_top| usize::try_from(at(below_top)).unwrap_or(usize::MAX);
        let memory = match op {
            opcode::MSTORE | opcode::MLOAD => Some((size(0), 32)),
            opcode::MSTORE8 => Some((size(0), 1)),
            opcode::CALLDATACOPY | opcode::CODECOPY | opcode::RETURNDATACOPY | opcode::MCOPY => {
                Some((size(0), size(2)))
            }
            opcode::EXTCODECOPY => Some((size(1), size(3))),
            opcode::CALL | opcode::CALLCODE => Some((size(5), size(6))),
            opcode::DELEGATECALL | opcode::STATICCALL => Some((size(4), size(5))),
            _ => None,
        };
        Self {
            pushed: OpCode::new(op).map_or(0, |op| usize::from(op.outputs())),
            memory: memory.filter(|(_, length)| *length > 0),
            slot: (op == opcode::SSTORE).then(|| (at(0), at(1))),
        }
    }
}

fn is_known(failure: InstructionResult) -> bool {
    use InstructionResult::{InvalidFEOpcode, NotActivated, OpcodeNotFound};
    !matches!(failure, OpcodeNotFound | NotActivated | InvalidFEOpcode)
}

/// True if the instruction was rejected before its gas was charged.
fn is_uncounted(fault: &str) -> bool {
    fault.starts_with("stack ") || fault.ends_with("gas uint64 overflow")
}
