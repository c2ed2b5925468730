//! The recorder of a run: one kind per tracer, behind one revm inspector.
//!
//! Most recorders observe a few opcodes (`Opcodes`); at any other instruction only a bit is tested.
//! Recorded and written bytes are bounded; a run that exceeds the limit or its deadline is stopped
//! at its next instruction. Writing counts as work.

use std::mem;

use revm::{
    Inspector,
    bytecode::opcode,
    context_interface::context::ContextError,
    interpreter::{
        CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter,
        interpreter::EthInterpreter, interpreter_types::Jumps,
    },
    primitives::Log,
};

use super::{
    accesses::Accesses,
    context::Traced,
    frames::Frames,
    prestate::{self, Prestate},
    selectors::Selectors,
    struct_logs::StructLogs,
    text::Held,
    touched::Touched,
    vm_trace::VmTrace,
};
use crate::evm::{
    machine::{self, Failure, Inspected, Ran, Setup},
    overlay::Overlay,
};

/// Maximum time of a recorder per observed instruction and per call, excluding writes.
const STEP_NS: u64 = 40;
const STOPPED: &str = "the trace was stopped";

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) kind: Kind,
    /// Parity's instruction trace, recorded in addition to frames.
    vm_trace: Option<VmTrace>,
    observed: Opcodes,
    is_observing: bool,
    /// Maximum bytes held and written.
    pub(crate) limit: usize,
    pub(crate) is_full: bool,
    /// All traces of the process together exceed their limit.
    pub(crate) is_crowded: bool,
    /// The run must end at its next instruction.
    is_stopped: bool,
    /// Bytes written since the last `step_end`.
    written: usize,
    counted: Held,
    next_count: usize,
}

/// Growth in bytes after which held memory is counted again.
const COUNT_AFTER: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Nothing,
    Steps(StructLogs),
    Frames(Frames),
    Prestate(Prestate),
    Selectors(Selectors),
    Accesses(Accesses),
    Touched(Touched),
}

/// A set of opcodes.
#[derive(Debug, Clone, Copy, Default)]
struct Opcodes([u64; 4]);

impl Opcodes {
    const ALL: Self = Self([u64::MAX; 4]);

    fn of(list: &[u8]) -> Self {
        let mut bits = [0; 4];
        for op in list {
            bits[usize::from(op / 64)] |= 1 << (op % 64);
        }
        Self(bits)
    }

    #[inline]
    fn contains(&self, op: u8) -> bool {
        self.0[usize::from(op / 64)] >> (op % 64) & 1 == 1
    }
}

impl Kind {
    fn observed(&self) -> Opcodes {
        match self {
            Self::Nothing | Self::Selectors(_) => Opcodes::default(),
            Self::Frames(frames) if frames.is_explaining() => Opcodes::ALL,
            Self::Frames(_) | Self::Touched(_) => Opcodes::of(&[opcode::SELFDESTRUCT]),
            Self::Prestate(_) => Opcodes::of(&prestate::OBSERVED),
            Self::Steps(_) | Self::Accesses(_) => Opcodes::ALL,
        }
    }
}

/// Runs `input` under a recorder and returns the recorder with its recordings.
///
/// geth's texts for failures depend on the state before the failed instruction. Most runs have no
/// such failure, so call frames are recorded without it first. If a frame failed, the run is
/// repeated with every instruction observed.
pub(crate) fn record<'a, M>(
    overlay: &mut Overlay,
    setup: impl Fn() -> Setup<'a>,
    input: M::Input,
    recorder: Recorder,
) -> (Result<Ran, Failure>, Recorder)
where
    M: Inspected<Inspector = Recorder, Input: Clone>,
{
    let again = recorder.brief_frames().map(|_| input.clone());
    let (ran, recorder) = machine::trace::<M>(overlay, setup(), input, recorder);
    let unexplained = recorder.brief_frames().filter(|frames| frames.is_unexplained);
    let (Some(frames), Some(input), Ok(_)) = (unexplained, again, &ran) else {
        return (ran, recorder);
    };
    let explaining = Recorder::new(Kind::Frames(frames.explaining()), recorder.limit);
    drop((ran, recorder));
    machine::trace::<M>(overlay, setup(), input, explaining)
}

impl Recorder {
    pub(crate) fn new(kind: Kind, limit: usize) -> Self {
        let observed = kind.observed();
        Self { kind, observed, limit, next_count: COUNT_AFTER, ..Self::default() }
    }

    /// Parity's instruction trace in addition to `kind`.
    pub(crate) fn with_vm_trace(kind: Kind, vm_trace: VmTrace, limit: usize) -> Self {
        let observed = Opcodes::ALL;
        Self { vm_trace: Some(vm_trace), observed, ..Self::new(kind, limit) }
    }

    /// Call frames that are recorded without the texts of failures.
    fn brief_frames(&self) -> Option<&Frames> {
        match &self.kind {
            Kind::Frames(frames) if !frames.is_explaining() => Some(frames),
            _ => None,
        }
    }

    pub(crate) fn into_parts(self) -> (Kind, Option<VmTrace>) {
        (self.kind, self.vm_trace)
    }

    fn held(&self) -> usize {
        let written = self.vm_trace.as_ref().map_or(0, VmTrace::held);
        written + self.held_by_kind()
    }

    fn held_by_kind(&self) -> usize {
        match &self.kind {
            Kind::Nothing => 0,
            Kind::Steps(steps) => steps.held() + steps.text.len(),
            Kind::Frames(frames) => frames.held,
            Kind::Prestate(prestate) => prestate.held(),
            Kind::Selectors(selectors) => selectors.held(),
            Kind::Accesses(accesses) => accesses.held(),
            Kind::Touched(touched) => touched.held(),
        }
    }
}

impl Recorder {
    #[inline(never)]
    fn observe<CTX: Traced>(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        match &mut self.kind {
            Kind::Nothing | Kind::Selectors(_) => {}
            Kind::Steps(steps) => steps.step(interpreter, context),
            Kind::Frames(frames) => frames.step(interpreter, context),
            Kind::Prestate(prestate) => prestate.step(interpreter, context),
            Kind::Accesses(accesses) => accesses.step(interpreter, context),
            Kind::Touched(touched) => touched.step(interpreter),
        }
        if let Some(vm_trace) = &mut self.vm_trace {
            self.written += vm_trace.step(interpreter, context);
        }
    }

    #[inline(never)]
    fn observe_end<CTX: Traced>(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        let mut work = STEP_NS;
        match &mut self.kind {
            Kind::Nothing | Kind::Selectors(_) => {}
            Kind::Accesses(accesses) => accesses.step_end(interpreter),
            Kind::Touched(touched) => touched.step_end(interpreter),
            Kind::Steps(steps) => work += 2 * steps.step_end(interpreter) as u64,
            Kind::Frames(frames) => frames.step_end(interpreter),
            Kind::Prestate(prestate) => prestate.step_end(interpreter),
        }
        if let Some(vm_trace) = &mut self.vm_trace {
            let written = mem::take(&mut self.written) + vm_trace.step_end(interpreter);
            work += STEP_NS + 2 * written as u64;
        }
        self.count(work, context);
    }

    /// Counts work and held bytes.
    fn count<CTX: Traced>(&mut self, work: u64, context: &mut CTX) {
        let held = self.held();
        self.is_full = held > self.limit;
        if held >= self.next_count {
            self.next_count = held + COUNT_AFTER;
            self.is_crowded = match &self.kind {
                Kind::Steps(steps) => steps.text.is_crowded(),
                _ => !self.counted.grow_to(self.held_by_kind()),
            };
            self.is_crowded |= self.vm_trace.as_ref().is_some_and(|it| it.text.is_crowded());
        }
        let watch = context.watch();
        let is_late = watch.work(work) || watch.error().is_some();
        self.is_stopped |= self.is_full || self.is_crowded || is_late;
    }
}

impl<CTX: Traced> Inspector<CTX, EthInterpreter> for Recorder {
    #[inline]
    fn step(&mut self, interpreter: &mut Interpreter<EthInterpreter>, context: &mut CTX) {
        if self.is_stopped {
            *context.error() = Err(ContextError::Custom(STOPPED.into()));
            interpreter.halt_fatal();
            return;
        }
        self.is_observing = self.observed.contains(interpreter.bytecode.opcode());
        if self.is_observing {
            self.observe(interpreter, context);
        }
    }

    #[inline]
    fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>, context: &mut CTX) {
        if self.is_observing {
            self.observe_end(interpreter, context);
        }
    }

    fn initialize_interp(&mut self, interpreter: &mut Interpreter<EthInterpreter>, _: &mut CTX) {
        if let Some(vm_trace) = &mut self.vm_trace {
            self.written += vm_trace.begin(interpreter);
        }
    }

    fn call(&mut self, context: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.enter();
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.enter(),
            Kind::Frames(frames) => frames.call(context, inputs, self.limit),
            Kind::Selectors(selectors) => selectors.call(context, inputs),
            Kind::Touched(touched) => touched.call(inputs),
            Kind::Nothing | Kind::Prestate(_) | Kind::Accesses(_) => {}
        }
        self.count(STEP_NS, context);
        None
    }

    fn call_end(&mut self, context: &mut CTX, _: &CallInputs, outcome: &mut CallOutcome) {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.leave(outcome.result.result, &[]);
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.leave(),
            Kind::Frames(frames) => frames.call_end(context, outcome),
            _ => {}
        }
        self.count(0, context);
    }

    fn create(&mut self, context: &mut CTX, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.enter();
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.enter(),
            Kind::Frames(frames) => frames.create(context, inputs),
            Kind::Touched(touched) => touched.create(context, inputs),
            _ => {}
        }
        self.count(STEP_NS, context);
        None
    }

    fn create_end(
        &mut self,
        context: &mut CTX,
        inputs: &CreateInputs,
        outcome: &mut CreateOutcome,
    ) {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.leave(outcome.result.result, inputs.init_code());
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.leave(),
            Kind::Frames(frames) => frames.create_end(outcome),
            _ => {}
        }
        self.count(0, context);
    }

    fn log(&mut self, context: &mut CTX, log: Log) {
        if let Kind::Frames(frames) = &mut self.kind {
            frames.log(log);
            self.count(0, context);
        }
    }
}

#[cfg(test)]
mod tests;
