//! The recorder of a run: one kind per tracer, behind one revm inspector.
//!
//! Recorded and written bytes are bounded; a run that exceeds the limit or its deadline is stopped
//! at its next instruction. Writing counts as work.

use revm::{
    Inspector,
    context_interface::context::ContextError,
    interpreter::{
        CallInputs, CallOutcome, CreateInputs, CreateOutcome, Interpreter,
        interpreter::EthInterpreter,
    },
    primitives::Log,
};

use super::{
    access_list::Accesses, context::Traced, frames::Frames, prestate::Prestate,
    selectors::Selectors, struct_logs::StructLogs, text::Held, touched::Touched, vm_trace::VmTrace,
};

/// Maximum time of a recorder per instruction, excluding writes.
const STEP_NS: u64 = 40;
const STOPPED: &str = "the trace was stopped";

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) kind: Kind,
    /// Parity's instruction trace, recorded in addition to frames.
    pub(crate) vm_trace: Option<VmTrace>,
    /// Maximum bytes held and written.
    pub(crate) limit: usize,
    pub(crate) is_full: bool,
    /// All traces of the process together exceed their limit.
    pub(crate) is_crowded: bool,
    late: bool,
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

impl Recorder {
    pub(crate) fn new(kind: Kind, limit: usize) -> Self {
        Self { kind, limit, next_count: COUNT_AFTER, ..Self::default() }
    }

    fn held(&self) -> usize {
        let written = self.vm_trace.as_ref().map_or(0, |vm_trace| vm_trace.text.len());
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

impl<CTX: Traced> Inspector<CTX, EthInterpreter> for Recorder {
    fn step(&mut self, interpreter: &mut Interpreter<EthInterpreter>, context: &mut CTX) {
        if self.is_full || self.is_crowded || self.late {
            *context.error() = Err(ContextError::Custom(STOPPED.into()));
            interpreter.halt_fatal();
            return;
        }
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

    fn initialize_interp(&mut self, interpreter: &mut Interpreter<EthInterpreter>, _: &mut CTX) {
        if let Some(vm_trace) = &mut self.vm_trace {
            self.written += vm_trace.begin(interpreter);
        }
    }

    fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>, context: &mut CTX) {
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
            let written = std::mem::take(&mut self.written) + vm_trace.step_end(interpreter);
            work += STEP_NS + 2 * written as u64;
        }
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
        self.late = context.watch().work(work);
    }

    fn call(&mut self, context: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.enter();
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.enter(),
            Kind::Frames(frames) => frames.call(context, inputs),
            Kind::Selectors(selectors) => selectors.call(context, inputs),
            Kind::Touched(touched) => touched.call(inputs),
            Kind::Nothing | Kind::Prestate(_) | Kind::Accesses(_) => {}
        }
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
        None
    }

    fn create_end(&mut self, _: &mut CTX, inputs: &CreateInputs, outcome: &mut CreateOutcome) {
        if let Some(vm_trace) = &mut self.vm_trace {
            vm_trace.leave(outcome.result.result, inputs.init_code());
        }
        match &mut self.kind {
            Kind::Steps(steps) => steps.leave(),
            Kind::Frames(frames) => frames.create_end(outcome),
            _ => {}
        }
    }

    fn log(&mut self, _: &mut CTX, log: Log) {
        if let Kind::Frames(frames) = &mut self.kind {
            frames.log(log);
        }
    }
}
