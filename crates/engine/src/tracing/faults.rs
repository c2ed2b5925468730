//! The reason a frame failed, in geth's texts, and whether its last instruction had started.
//!
//! geth checks stack and gas before an instruction and shows such a failure at the step; a failure
//! inside an instruction is shown only at its frame. revm charges static gas before it checks the
//! stack, so the stack is checked first here.

use std::borrow::Cow;

use revm::{
    bytecode::opcode::{self, OpCode},
    interpreter::{
        InstructionResult, Interpreter, InterpreterAction,
        interpreter::EthInterpreter,
        interpreter_types::{Jumps, LoopControl},
    },
    primitives::hardfork::SpecId,
};

use super::{
    context::Traced,
    costs::{Costs, Count},
};
use crate::evm::instructions;

const STACK_LIMIT: usize = 1024;

/// The next instruction.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    op: u8,
    stack: usize,
}

/// Observes each step in order to explain failures.
#[derive(Debug)]
pub(crate) struct Faults {
    costs: Costs,
    step: Step,
    count: Option<Count>,
}

pub(crate) struct Fault {
    pub(crate) text: Cow<'static, str>,
    /// The instruction was rejected before it had any effect.
    pub(crate) before: bool,
    /// The instruction's cost according to geth.
    pub(crate) cost: Option<u64>,
}

impl Faults {
    pub(crate) fn new(spec: SpecId) -> Self {
        Self { costs: Costs::new(spec), step: Step::default(), count: None }
    }

    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        self.step = Step { op: interpreter.bytecode.opcode(), stack: interpreter.stack.len() };
        self.count = self.costs.count(interpreter, context);
    }

    pub(crate) fn op(&self) -> u8 {
        self.step.op
    }

    /// The reason the step ended its frame; `None` if it did not, or if it did not fail.
    pub(crate) fn step_end(
        &mut self,
        interpreter: &mut Interpreter<EthInterpreter>,
    ) -> Option<Fault> {
        let Some(InterpreterAction::Return(end)) = interpreter.bytecode.action() else {
            return None;
        };
        if end.result.is_ok() {
            return None;
        }
        if let Some(text) = stack_fault(end.result, self.step) {
            let cost = Some(self.costs.constant(self.step.op));
            return Some(Fault { text: text.into(), before: true, cost });
        }
        let (cost, refusal) = self.count.take().map(|it| (it.cost, it.refusal)).unzip();
        let (text, before) = match refusal.flatten() {
            Some(text) => (text, true),
            None => of_step(end.result, self.step.op),
        };
        Some(Fault { text, before, cost })
    }
}

/// The failure of an instruction, and whether it was rejected before it started.
fn of_step(result: InstructionResult, op: u8) -> (Cow<'static, str>, bool) {
    use InstructionResult::*;
    match result {
        OutOfGas | MemoryOOG | MemoryLimitOOG | PrecompileOOG => ("out of gas".into(), true),
        InvalidOperandOOG => ("gas uint64 overflow".into(), true),
        ReentrancySentryOOG => ("out of gas: not enough gas for reentrancy sentry".into(), true),
        CreateInitCodeSizeLimit => ("out of gas: max initcode size exceeded".into(), true),
        OpcodeNotFound | NotActivated => {
            (format!("invalid opcode: {}", instructions::name(op)).into(), false)
        }
        StateChangeDuringStaticCall | CallNotAllowedInsideStatic => match op {
            opcode::SSTORE | opcode::CALL | opcode::SELFDESTRUCT => {
                ("out of gas: write protection".into(), true)
            }
            _ => ("write protection".into(), false),
        },
        other => (of_frame(other), false),
    }
}

/// Checks the stack as geth does: all inputs must exist, and the outputs must fit.
fn stack_fault(result: InstructionResult, step: Step) -> Option<String> {
    let undefined =
        matches!(result, InstructionResult::OpcodeNotFound | InstructionResult::NotActivated);
    let op = OpCode::new(step.op).filter(|_| !undefined)?;
    let (inputs, outputs) = (usize::from(op.inputs()), usize::from(op.outputs()));
    if step.stack < inputs {
        return Some(format!("stack underflow ({} <=> {inputs})", step.stack));
    }
    let limit = STACK_LIMIT + inputs - outputs;
    (step.stack > limit).then(|| format!("stack limit reached {} ({limit})", step.stack))
}

/// The failure of a frame that is not caused by a step.
pub(crate) fn of_frame(result: InstructionResult) -> Cow<'static, str> {
    use InstructionResult::*;
    let text = match result {
        Revert => "execution reverted",
        CallTooDeep => "max call depth exceeded",
        OutOfFunds => "insufficient balance for transfer",
        InvalidFEOpcode => "invalid opcode: INVALID",
        InvalidJump => "invalid jump destination",
        OutOfOffset => "return data out of bounds",
        CreateCollision => "contract address collision",
        NonceOverflow => "nonce uint64 overflow",
        CreateContractSizeLimit => "max code size exceeded",
        CreateContractStartingWithEF | CreateInitCodeStartingEF00 => {
            "invalid code: must not begin with 0xef"
        }
        CreateInitCodeSizeLimit => "max initcode size exceeded",
        OverflowPayment => "balance overflow",
        PrecompileError => "precompile failed",
        _ => "out of gas",
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_judged_before_the_gas() {
        let gone = InstructionResult::OutOfGas;
        let fault = |op, stack| stack_fault(gone, Step { op, stack });
        assert_eq!(fault(opcode::ADD, 1).as_deref(), Some("stack underflow (1 <=> 2)"));
        assert_eq!(fault(opcode::ADD, 2), None);
        let full = fault(opcode::PUSH1, 1024);
        assert_eq!(full.as_deref(), Some("stack limit reached 1024 (1023)"));
    }

    #[test]
    fn what_fails_inside_an_instruction_is_told_from_what_did_not_begin() {
        let jump = of_step(InstructionResult::InvalidJump, opcode::JUMP);
        assert_eq!(jump, ("invalid jump destination".into(), false));
        let write = InstructionResult::StateChangeDuringStaticCall;
        assert!(of_step(write, opcode::SSTORE).1);
        assert!(!of_step(write, opcode::LOG0).1);
        let undefined = of_step(InstructionResult::OpcodeNotFound, 0x0c);
        assert_eq!(undefined, ("invalid opcode: opcode 0xc not defined".into(), false));
    }
}
