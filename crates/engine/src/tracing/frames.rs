//! The call frames of a run, with their logs.
//!
//! A self-destruct is a separate frame, as in geth. Gas is that of the frame and excludes the
//! intrinsic gas of the transaction.
//!
//! The text of a failed instruction is known only if every instruction is observed (`explaining`).

use std::borrow::Cow;

use alloy_primitives::{Address, Bytes, Log, U256};
use revm::{
    bytecode::opcode,
    context::ContextTr,
    interpreter::{
        CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, InstructionResult,
        Interpreter, InterpreterAction, InterpreterResult,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, LoopControl},
    },
    precompile::Precompiles,
};

use crate::evm::{outcome::precompile_text, rules::Rules};

use super::{
    context::Traced,
    faults::{self, Faults},
};

/// Approximate size of a frame in memory and as text, excluding its data.
const FRAME_BYTES: usize = 512;

/// The error of a creation that executed but could not pay for storing its code.
pub(crate) const CODE_STORAGE: &str = "contract creation code storage out of gas";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Call(CallScheme),
    Create,
    Create2,
    SelfDestruct,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) from: Address,
    /// For a creation, the address of the new contract, even if it fails.
    pub(crate) to: Address,
    pub(crate) value: U256,
    pub(crate) gas: u64,
    pub(crate) gas_used: u64,
    pub(crate) input: Bytes,
    pub(crate) output: Bytes,
    pub(crate) error: Option<Cow<'static, str>>,
    pub(crate) reverted: bool,
    /// The target is the address of a precompile.
    pub(crate) precompile: bool,
    pub(crate) calls: Vec<usize>,
    pub(crate) logs: Vec<FrameLog>,
    logs_before: u64,
}

#[derive(Debug)]
pub(crate) struct FrameLog {
    pub(crate) log: Log,
    pub(crate) index: u64,
    /// The number of the frame's calls before the log.
    pub(crate) position: usize,
}

#[derive(Debug)]
pub(crate) struct Frames {
    /// The first is the top-level frame of the transaction.
    pub(crate) all: Vec<Frame>,
    open: Vec<usize>,
    with_logs: bool,
    first_log: u64,
    next_log: u64,
    rules: Rules,
    precompiles: &'static Precompiles,
    faults: Option<Faults>,
    /// A frame has failed whose instructions were not observed.
    pub(crate) is_unexplained: bool,
    fault: Option<Cow<'static, str>>,
    destruction: Option<(Address, Address, U256)>,
    pub(crate) held: usize,
}

impl Frames {
    /// `next_log` is the index of the first log in its block.
    pub(crate) fn new(with_logs: bool, next_log: u64, rules: Rules) -> Self {
        Self {
            all: Vec::new(),
            open: Vec::new(),
            with_logs,
            first_log: next_log,
            next_log,
            rules,
            precompiles: rules.precompiles(),
            faults: None,
            is_unexplained: false,
            fault: None,
            destruction: None,
            held: 0,
        }
    }

    /// Frames for a run in which every instruction is observed, to explain failures.
    pub(crate) fn explaining(&self) -> Self {
        let faults = Some(Faults::new(self.rules.spec_id()));
        Self { faults, ..Self::new(self.with_logs, self.first_log, self.rules) }
    }

    pub(crate) fn is_explaining(&self) -> bool {
        self.faults.is_some()
    }

    /// Records a call from and to the zero address that did nothing, for a post-execution
    /// transaction.
    pub(crate) fn note_nothing(&mut self, input: &Bytes) {
        self.enter(Frame {
            kind: Kind::Call(CallScheme::Call),
            from: Address::ZERO,
            to: Address::ZERO,
            value: U256::ZERO,
            gas: 0,
            gas_used: 0,
            input: input.clone(),
            output: Bytes::new(),
            error: None,
            reverted: false,
            precompile: false,
            calls: Vec::new(),
            logs: Vec::new(),
            logs_before: self.next_log,
        });
        self.open.pop();
    }

    fn enter(&mut self, frame: Frame) {
        self.held += FRAME_BYTES + frame.input.len();
        let number = self.all.len();
        if let Some(parent) = self.open.last() {
            self.all[*parent].calls.push(number);
        }
        self.all.push(frame);
        self.open.push(number);
    }

    fn leave(&mut self, result: &InterpreterResult, output: &Bytes) {
        let fault = self.fault.take();
        let Some(number) = self.open.pop() else { return };
        let frame = &mut self.all[number];
        let gas = &result.gas;
        frame.gas_used = frame.gas.saturating_sub(gas.remaining());
        if result.result.is_ok() {
            frame.output = output.clone();
        } else {
            frame.reverted = result.result == InstructionResult::Revert;
            if frame.reverted {
                frame.output = output.clone();
            } else if !result.result.is_revert() {
                frame.gas_used = frame.gas;
                self.is_unexplained |= !is_of_precompile(result.result);
            }
            frame.error = Some(fault.unwrap_or_else(|| failure(frame, result.result)));
            self.next_log = frame.logs_before;
        }
        self.held += frame.output.len();
    }

    /// The input is not copied if more than `limit` bytes would be held; the run ends then.
    pub(crate) fn call(&mut self, context: &mut impl ContextTr, inputs: &CallInputs, limit: usize) {
        let (from, to) = ends(inputs);
        let size = inputs.input.len();
        let fits = self.held.saturating_add(size) <= limit;
        if !fits {
            self.held += size;
        }
        let frame = Frame {
            value: inputs.call_value(),
            gas: inputs.gas_limit,
            input: if fits { inputs.input.bytes(context) } else { Bytes::new() },
            ..self.frame(Kind::Call(inputs.scheme), from, to)
        };
        self.enter(frame);
    }

    pub(crate) fn call_end<CTX: Traced>(&mut self, context: &mut CTX, outcome: &CallOutcome) {
        if outcome.result.result == InstructionResult::PrecompileError {
            self.fault = context.watch().precompile_failure.take().map(precompile_text);
        }
        self.leave(&outcome.result, &outcome.result.output);
    }

    pub(crate) fn create<CTX: Traced>(&mut self, context: &mut CTX, inputs: &CreateInputs) {
        let nonce = context.nonce(inputs.caller());
        let kind = match inputs.scheme() {
            revm::context_interface::CreateScheme::Create2 { .. } => Kind::Create2,
            _ => Kind::Create,
        };
        let frame = Frame {
            value: inputs.value(),
            gas: inputs.gas_limit(),
            input: inputs.init_code().clone(),
            ..self.frame(kind, inputs.caller(), inputs.created_address(nonce))
        };
        self.enter(frame);
    }

    pub(crate) fn create_end(&mut self, outcome: &CreateOutcome) {
        self.leave(&outcome.result, &outcome.result.output);
    }

    pub(crate) fn log(&mut self, log: Log) {
        let index = self.next_log;
        self.next_log += 1;
        if !self.with_logs {
            return;
        }
        let Some(number) = self.open.last() else { return };
        let frame = &mut self.all[*number];
        self.held += FRAME_BYTES + log.data.data.len();
        let position = frame.calls.len();
        frame.logs.push(FrameLog { log, index, position });
    }

    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        if let Some(faults) = &mut self.faults {
            faults.step(interpreter, context);
        }
        if interpreter.bytecode.opcode() != opcode::SELFDESTRUCT {
            return;
        }
        let Ok(beneficiary) = interpreter.stack.peek(0) else { return };
        let contract = interpreter.input.target_address();
        let balance = context.balance_of(contract);
        self.destruction = Some((contract, Address::from_word(beneficiary.into()), balance));
    }

    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) {
        let destruction = self.destruction.take();
        let Some(InterpreterAction::Return(end)) = interpreter.bytecode.action() else { return };
        if end.result == InstructionResult::SelfDestruct {
            let Some((contract, beneficiary, value)) = destruction else { return };
            let frame = Frame { value, ..self.frame(Kind::SelfDestruct, contract, beneficiary) };
            self.enter(frame);
            self.open.pop();
        } else if let Some(faults) = &mut self.faults {
            self.fault = faults.step_end(interpreter).map(|fault| fault.text);
        }
    }

    fn frame(&self, kind: Kind, from: Address, to: Address) -> Frame {
        Frame {
            kind,
            from,
            to,
            value: U256::ZERO,
            gas: 0,
            gas_used: 0,
            input: Bytes::new(),
            output: Bytes::new(),
            error: None,
            reverted: false,
            precompile: self.precompiles.contains(&to),
            calls: Vec::new(),
            logs: Vec::new(),
            logs_before: self.next_log,
        }
    }
}

impl Frame {
    pub(crate) fn is_creation(&self) -> bool {
        matches!(self.kind, Kind::Create | Kind::Create2)
    }

    /// The name used by geth and Parity.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Call(CallScheme::Call) => "CALL",
            Kind::Call(CallScheme::CallCode) => "CALLCODE",
            Kind::Call(CallScheme::DelegateCall) => "DELEGATECALL",
            Kind::Call(CallScheme::StaticCall) => "STATICCALL",
            Kind::Create => "CREATE",
            Kind::Create2 => "CREATE2",
            Kind::SelfDestruct => "SELFDESTRUCT",
        }
    }
}

/// The calling account, and the account that is called or whose code is executed.
pub(crate) fn ends(inputs: &CallInputs) -> (Address, Address) {
    match inputs.scheme {
        CallScheme::DelegateCall => (inputs.target_address, inputs.bytecode_address),
        CallScheme::CallCode => (inputs.caller, inputs.bytecode_address),
        CallScheme::Call | CallScheme::StaticCall => (inputs.caller, inputs.target_address),
    }
}

fn is_of_precompile(result: InstructionResult) -> bool {
    matches!(result, InstructionResult::PrecompileOOG | InstructionResult::PrecompileError)
}

/// A creation that runs out of gas after its last step could not pay for its code.
fn failure(frame: &Frame, result: InstructionResult) -> Cow<'static, str> {
    match result {
        InstructionResult::OutOfGas if frame.is_creation() => CODE_STORAGE.into(),
        other => faults::of_frame(other),
    }
}
