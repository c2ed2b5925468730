//! The addresses that a run touches: senders and receivers of the transaction and its calls.
//!
//! Creations and self-destructs count as calls, as in geth's callTracer, and so do failed calls.
//! This is Otterscan's definition of the transactions of an address.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use revm::{
    bytecode::opcode,
    interpreter::{
        CallInputs, CreateInputs, InstructionResult, Interpreter, InterpreterAction,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, LoopControl},
    },
};

use super::{context::Traced, frames, text::Text};

/// Approximate memory of an address.
const ADDRESS_BYTES: usize = 48;

#[derive(Debug, Default)]
pub(crate) struct Touched {
    all: BTreeSet<Address>,
    destruction: Option<(Address, Address)>,
}

impl Touched {
    pub(crate) fn note(&mut self, address: Address) {
        self.all.insert(address);
    }

    pub(crate) fn call(&mut self, inputs: &CallInputs) {
        let (from, to) = frames::ends(inputs);
        self.note(from);
        self.note(to);
    }

    pub(crate) fn create<CTX: Traced>(&mut self, context: &mut CTX, inputs: &CreateInputs) {
        let nonce = context.nonce(inputs.caller());
        self.note(inputs.caller());
        self.note(inputs.created_address(nonce));
    }

    pub(crate) fn step(&mut self, interpreter: &Interpreter<EthInterpreter>) {
        if interpreter.bytecode.opcode() != opcode::SELFDESTRUCT {
            return;
        }
        let Ok(beneficiary) = interpreter.stack.peek(0) else { return };
        let contract = interpreter.input.target_address();
        self.destruction = Some((contract, Address::from_word(beneficiary.into())));
    }

    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) {
        let Some((contract, beneficiary)) = self.destruction.take() else { return };
        let Some(InterpreterAction::Return(end)) = interpreter.bytecode.action() else { return };
        if end.result == InstructionResult::SelfDestruct {
            self.note(contract);
            self.note(beneficiary);
        }
    }

    pub(crate) fn held(&self) -> usize {
        self.all.len() * ADDRESS_BYTES
    }

    /// Writes entries of a row (`stored::touched`), ordered by address.
    pub(crate) fn write(&self, text: &mut Text, place: u64) {
        for address in &self.all {
            let out = text.out();
            out.extend_from_slice(address.as_slice());
            out.extend_from_slice(&(place as u32).to_be_bytes());
        }
    }
}
