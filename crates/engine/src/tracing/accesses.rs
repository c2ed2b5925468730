//! The addresses and slots that a run accesses.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use alloy_primitives::{Address, U256};
use revm::{
    bytecode::opcode,
    interpreter::{
        Interpreter,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps},
    },
    primitives::hardfork::SpecId,
};

use super::{context::Traced, faults::Faults};

const ENTRY_BYTES: usize = 128;
pub(super) type List = BTreeMap<Address, BTreeSet<U256>>;

#[derive(Debug)]
pub(crate) struct Accesses {
    pub(super) list: List,
    excluded: BTreeSet<Address>,
    slots: usize,
    faults: Faults,
    /// The error with which the last step ended its frame.
    pub(super) fault: Option<Cow<'static, str>>,
}

impl Accesses {
    pub(super) fn new(list: List, excluded: BTreeSet<Address>, spec: SpecId) -> Self {
        Self { list, excluded, slots: 0, faults: Faults::new(spec), fault: None }
    }

    pub(crate) fn held(&self) -> usize {
        (self.list.len() + self.slots) * ENTRY_BYTES
    }

    pub(crate) fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>) {
        self.fault = self.faults.step_end(interpreter).map(|fault| fault.text);
    }

    pub(crate) fn step<CTX: Traced>(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) {
        self.faults.step(interpreter, context);
        let stack = interpreter.stack.data();
        let at = |below: usize| stack.len().checked_sub(below + 1).map(|at| stack[at]);
        let account = match interpreter.bytecode.opcode() {
            opcode::SLOAD | opcode::SSTORE => {
                if let Some(slot) = at(0) {
                    let contract = interpreter.input.target_address();
                    if self.list.entry(contract).or_default().insert(slot) {
                        self.slots += 1;
                    }
                }
                return;
            }
            opcode::EXTCODECOPY
            | opcode::EXTCODEHASH
            | opcode::EXTCODESIZE
            | opcode::BALANCE
            | opcode::SELFDESTRUCT => at(0),
            opcode::DELEGATECALL | opcode::CALL | opcode::STATICCALL | opcode::CALLCODE
                if stack.len() >= 5 =>
            {
                at(1)
            }
            _ => return,
        };
        let Some(address) = account.map(|word| Address::from_word(word.into())) else { return };
        if !self.excluded.contains(&address) {
            self.list.entry(address).or_default();
        }
    }
}
