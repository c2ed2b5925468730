//! The cost of instructions that run out of gas, and geth's texts for these failures.
//!
//! revm stops counting when gas runs out, but a struct log shows the full cost, and geth's errors
//! depend on where its calculation ended. For steps that may fail, this module therefore calculates
//! costs in geth's order: first the constant part, then the dynamic part. Execution does not use
//! these numbers.

use std::{borrow::Cow, sync::OnceLock};

use alloy_primitives::{Address, U256};
use revm::{
    bytecode::opcode::{self, OpCode},
    interpreter::{
        Interpreter,
        host::DummyHost,
        instructions::instruction_table_gas_changes_spec,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, MemoryTr, RuntimeFlag},
    },
    primitives::hardfork::SpecId,
};

use super::context::Traced;
use crate::evm::instructions;

const FORKS: usize = SpecId::AMSTERDAM as usize + 1;
/// Maximum cost of an instruction, excluding parts that depend on its operands.
const MOST_FIXED: u64 = 64_000;
/// The largest memory size whose cost fits into 64 bits.
const MOST_MEMORY: u64 = 0x1f_ffff_ffe0;
const COLD_ACCOUNT: u64 = 2_600;
const COLD_SLOT: u64 = 2_100;
const WARM: u64 = 100;
const NEW_ACCOUNT: u64 = 25_000;
const VALUE: u64 = 9_000;
const SENTRY: u64 = 2_300;

const OUT: &str = "out of gas";
const OUT_INSIDE: &str = "out of gas: out of gas";
const OVERFLOW: &str = "gas uint64 overflow";
const OVERFLOW_INSIDE: &str = "out of gas: gas uint64 overflow";
const STATIC: &str = "out of gas: write protection";
const SENTRY_TEXT: &str = "out of gas: not enough gas for reentrancy sentry";

/// The cost shown, and the error if the instruction is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) cost: u64,
    pub(crate) refusal: Option<Cow<'static, str>>,
}

#[derive(Debug)]
pub(crate) struct Costs {
    table: &'static Table,
    spec: SpecId,
}

/// The opcodes of a fork, and their constant costs in geth's division into constant and dynamic
/// costs.
#[derive(Debug)]
struct Table {
    constant: [u64; 256],
    defined: [bool; 256],
}

impl Table {
    fn new(spec: SpecId) -> Self {
        let table = instruction_table_gas_changes_spec::<EthInterpreter, DummyHost>(spec);
        let mut constant = [0; 256];
        for (cost, instruction) in constant.iter_mut().zip(&table) {
            *cost = instruction.static_gas();
        }
        for dynamic in [opcode::EXP, opcode::SSTORE, opcode::SELFDESTRUCT] {
            constant[usize::from(dynamic)] = 0;
        }
        constant[usize::from(opcode::LOG0)..=usize::from(opcode::LOG4)].fill(0);
        constant[usize::from(opcode::CREATE)] = 32_000;
        constant[usize::from(opcode::CREATE2)] = 32_000;
        if spec.is_enabled_in(SpecId::BERLIN) {
            constant[usize::from(opcode::SLOAD)] = 0;
            constant[usize::from(opcode::SELFDESTRUCT)] = 5_000;
        }
        let defined = std::array::from_fn(|op| {
            u8::try_from(op).is_ok_and(|op| instructions::is_defined(op, spec))
        });
        Self { constant, defined }
    }

    /// The table of a fork, made once.
    fn of(spec: SpecId) -> &'static Self {
        static TABLES: [OnceLock<Table>; FORKS] = [const { OnceLock::new() }; FORKS];
        TABLES[spec as usize].get_or_init(|| Self::new(spec))
    }
}

/// The dynamic cost, or the text of a failure while calculating it.
type Counted = Result<u64, Cow<'static, str>>;

impl Costs {
    pub(crate) fn new(spec: SpecId) -> Self {
        Self { table: Table::of(spec), spec }
    }

    pub(crate) fn constant(&self, op: u8) -> u64 {
        self.table.constant[usize::from(op)]
    }

    /// The cost of the next instruction. `None` if it can certainly be paid and equals revm's cost,
    /// or if the instruction is undefined or lacks operands.
    pub(crate) fn count<CTX: Traced>(
        &self,
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut CTX,
    ) -> Option<Count> {
        let op = interpreter.bytecode.opcode();
        let gas = interpreter.gas.remaining();
        let range = Range::of(op);
        if gas >= MOST_FIXED && range.is_none() && !interpreter.runtime_flag.is_static() {
            return None;
        }
        if !self.table.defined[usize::from(op)] {
            return None;
        }
        let stack = interpreter.stack.data();
        let known = OpCode::new(op)?;
        if stack.len() < usize::from(known.inputs()) {
            return None;
        }
        let constant = self.constant(op);
        let refused = |cost, text| Some(Count { cost, refusal: Some(text) });
        let Some(left) = gas.checked_sub(constant) else { return refused(constant, OUT.into()) };
        let step = Step { op, stack, left, spec: self.spec, interpreter };
        let memory = match range.map(|range| range.size(&step)) {
            None => 0,
            Some(Some(size)) => size,
            Some(None) => return refused(constant, OVERFLOW.into()),
        };
        match step.dynamic(memory, context) {
            Err(text) => refused(constant, text),
            Ok(cost) if cost > left => refused(constant.saturating_add(cost), OUT.into()),
            Ok(cost) => Some(Count { cost: constant.saturating_add(cost), refusal: None }),
        }
    }
}

/// The operands that determine the memory used.
#[derive(Debug, Clone, Copy)]
enum Range {
    Fixed(usize, u64),
    Sized(usize, usize),
    Call(usize),
    Copy,
}

impl Range {
    fn of(op: u8) -> Option<Self> {
        Some(match op {
            opcode::MLOAD | opcode::MSTORE => Self::Fixed(0, 32),
            opcode::MSTORE8 => Self::Fixed(0, 1),
            opcode::KECCAK256 | opcode::RETURN | opcode::REVERT => Self::Sized(0, 1),
            opcode::LOG0..=opcode::LOG4 => Self::Sized(0, 1),
            opcode::CALLDATACOPY | opcode::CODECOPY | opcode::RETURNDATACOPY => Self::Sized(0, 2),
            opcode::EXTCODECOPY => Self::Sized(1, 3),
            opcode::CREATE | opcode::CREATE2 => Self::Sized(1, 2),
            opcode::CALL | opcode::CALLCODE => Self::Call(3),
            opcode::DELEGATECALL | opcode::STATICCALL => Self::Call(2),
            opcode::MCOPY => Self::Copy,
            _ => return None,
        })
    }

    /// The required memory size; `None` if it does not fit into 64 bits.
    fn size(self, step: &Step<'_>) -> Option<u64> {
        let end = |offset: U256, length: U256| {
            let length = u64::try_from(length).ok()?;
            if length == 0 {
                return Some(0);
            }
            u64::try_from(offset).ok()?.checked_add(length)
        };
        let end = |offset, length| end(step.at(offset), step.at(length));
        let size = match self {
            Self::Fixed(offset, length) => {
                u64::try_from(step.at(offset)).ok()?.checked_add(length)?
            }
            Self::Sized(offset, length) => end(offset, length)?,
            Self::Call(first) => end(first + 2, first + 3)?.max(end(first, first + 1)?),
            Self::Copy => end(if step.at(1) > step.at(0) { 1 } else { 0 }, 2)?,
        };
        words(size).checked_mul(32)
    }
}

struct Step<'a> {
    op: u8,
    stack: &'a [U256],
    /// Gas left after the constant cost.
    left: u64,
    spec: SpecId,
    interpreter: &'a Interpreter<EthInterpreter>,
}

impl Step<'_> {
    fn at(&self, below_top: usize) -> U256 {
        self.stack[self.stack.len() - 1 - below_top]
    }

    fn address(&self, below_top: usize) -> Address {
        Address::from_word(self.at(below_top).into())
    }

    fn is(&self, fork: SpecId) -> bool {
        self.spec.is_enabled_in(fork)
    }

    fn is_static(&self) -> bool {
        self.interpreter.runtime_flag.is_static()
    }

    fn dynamic<CTX: Traced>(&self, memory: u64, context: &mut CTX) -> Counted {
        match self.op {
            opcode::MLOAD | opcode::MSTORE | opcode::MSTORE8 | opcode::RETURN | opcode::REVERT => {
                self.memory(memory)
            }
            opcode::KECCAK256 => self.with_words(memory, 1, 6),
            opcode::CALLDATACOPY | opcode::CODECOPY | opcode::RETURNDATACOPY | opcode::MCOPY => {
                self.with_words(memory, 2, 3)
            }
            opcode::EXTCODECOPY => {
                let copied = self.with_words(memory, 3, 3)?;
                add(copied, self.cold_account(self.address(0), context))
            }
            opcode::LOG0..=opcode::LOG4 => {
                let topics = u64::from(self.op - opcode::LOG0);
                let size = u64::try_from(self.at(1)).map_err(|_| OVERFLOW_INSIDE)?;
                let bytes = size.checked_mul(8).ok_or(OVERFLOW_INSIDE)?;
                add(self.memory(memory)?, (375 + 375 * topics).saturating_add(bytes))
            }
            opcode::EXP => {
                let byte = if self.is(SpecId::SPURIOUS_DRAGON) { 50 } else { 10 };
                Ok(10 + byte * self.at(1).byte_len() as u64)
            }
            opcode::CREATE | opcode::CREATE2 => self.creation(memory, context),
            opcode::BALANCE | opcode::EXTCODESIZE | opcode::EXTCODEHASH => {
                Ok(self.cold_account(self.address(0), context))
            }
            opcode::SLOAD if self.is(SpecId::BERLIN) => {
                let contract = self.interpreter.input.target_address();
                Ok(if context.is_warm_slot(contract, self.at(0)) { WARM } else { COLD_SLOT })
            }
            opcode::SSTORE => self.store(context),
            opcode::SELFDESTRUCT => self.destruction(context),
            opcode::CALL | opcode::CALLCODE | opcode::DELEGATECALL | opcode::STATICCALL => {
                self.call(memory, context)
            }
            _ => Ok(0),
        }
    }

    fn memory(&self, size: u64) -> Counted {
        if size > MOST_MEMORY {
            return Err(OVERFLOW_INSIDE.into());
        }
        let now = self.interpreter.memory.size() as u64;
        let fee = |size: u64| 3 * words(size) + words(size) * words(size) / 512;
        Ok(if size > now { fee(size) - fee(now) } else { 0 })
    }

    fn with_words(&self, memory: u64, length: usize, each: u64) -> Counted {
        let length = u64::try_from(self.at(length)).map_err(|_| OVERFLOW_INSIDE)?;
        let gas = self.memory(memory)?;
        add(gas, words(length).checked_mul(each).ok_or(OVERFLOW_INSIDE)?)
    }

    fn cold_account<CTX: Traced>(&self, address: Address, context: &mut CTX) -> u64 {
        let cold = self.is(SpecId::BERLIN) && !context.is_warm_account(address);
        if cold { COLD_ACCOUNT - WARM } else { 0 }
    }

    fn creation<CTX: Traced>(&self, memory: u64, context: &CTX) -> Counted {
        let gas = self.memory(memory)?;
        let size = u64::try_from(self.at(2)).map_err(|_| OVERFLOW_INSIDE)?;
        let hashed = if self.op == opcode::CREATE2 { 6 } else { 0 };
        let metered = if self.is(SpecId::SHANGHAI) { 2 } else { 0 };
        let most = context.max_initcode_size() as u64;
        if metered > 0 && size > most {
            let why = format!("code size {size} limit {most}");
            return Err(format!("out of gas: max initcode size exceeded: {why}").into());
        }
        add(gas, words(size).saturating_mul(hashed + metered))
    }

    fn store<CTX: Traced>(&self, context: &mut CTX) -> Counted {
        if self.is_static() {
            return Err(STATIC.into());
        }
        if self.is(SpecId::ISTANBUL) && self.left <= SENTRY {
            return Err(SENTRY_TEXT.into());
        }
        let contract = self.interpreter.input.target_address();
        let (slot, value) = (self.at(0), self.at(1));
        let current = context.slot(contract, slot).unwrap_or_default();
        if !self.is(SpecId::ISTANBUL) {
            return Ok(if current.is_zero() && !value.is_zero() { 20_000 } else { 5_000 });
        }
        let original = context.original_slot(contract, slot).unwrap_or_default();
        let berlin = self.is(SpecId::BERLIN);
        let cold = if berlin && !context.is_warm_slot(contract, slot) { COLD_SLOT } else { 0 };
        let (read, reset) = if berlin { (WARM, 5_000 - COLD_SLOT) } else { (800, 5_000) };
        let cost = if current == value || original != current {
            read
        } else if original.is_zero() {
            20_000
        } else {
            reset
        };
        Ok(cold + cost)
    }

    fn destruction<CTX: Traced>(&self, context: &mut CTX) -> Counted {
        if self.is_static() {
            return Err(STATIC.into());
        }
        let beneficiary = self.address(0);
        let mut gas = 0;
        if self.is(SpecId::BERLIN) {
            if !context.is_warm_account(beneficiary) {
                gas = COLD_ACCOUNT;
                if self.left < gas {
                    return Err(OUT_INSIDE.into());
                }
            }
        } else if self.is(SpecId::TANGERINE) {
            gas = 5_000;
        }
        let contract = self.interpreter.input.target_address();
        let pays = !self.is(SpecId::SPURIOUS_DRAGON) || !context.balance_of(contract).is_zero();
        if self.is(SpecId::TANGERINE) && pays && context.is_empty_account(beneficiary) {
            gas += NEW_ACCOUNT;
        }
        Ok(gas)
    }

    fn call<CTX: Traced>(&self, memory: u64, context: &mut CTX) -> Counted {
        let to = self.address(1);
        let valued = matches!(self.op, opcode::CALL | opcode::CALLCODE) && !self.at(2).is_zero();
        let refused = self.op == opcode::CALL && valued && self.is_static();
        if refused && self.is(SpecId::PRAGUE) {
            return Err(STATIC.into());
        }
        let mut left = self.left;
        let cold = self.cold_account(to, context);
        left = left.checked_sub(cold).ok_or(OUT_INSIDE)?;
        if refused {
            return Err(STATIC.into());
        }
        let mut base = add(self.memory(memory)?, if valued { VALUE } else { 0 })?;
        if self.op == opcode::CALL {
            if left < base {
                return Err(OUT_INSIDE.into());
            }
            let pays = valued || !self.is(SpecId::SPURIOUS_DRAGON);
            if pays && context.is_empty_account(to) {
                base = add(base, NEW_ACCOUNT)?;
            }
        }
        let mut delegated = 0;
        if self.is(SpecId::PRAGUE) {
            if left < base {
                return Err(OUT_INSIDE.into());
            }
            if let Some(target) = context.delegation(to) {
                delegated = WARM + self.cold_account(target, context);
                left = left.checked_sub(delegated).ok_or(OUT_INSIDE)?;
            }
        }
        let asked = u64::try_from(self.at(0)).ok();
        let given = if self.is(SpecId::TANGERINE) {
            // geth calculates modulo 2^64 here and detects the overflow below.
            let available = left.wrapping_sub(base);
            let most = available - available / 64;
            asked.filter(|asked| *asked <= most).unwrap_or(most)
        } else {
            asked.ok_or(OVERFLOW_INSIDE)?
        };
        add(add(base, given)?, cold + delegated)
    }
}

fn add(one: u64, other: u64) -> Counted {
    one.checked_add(other).ok_or_else(|| OVERFLOW_INSIDE.into())
}

fn words(bytes: u64) -> u64 {
    bytes.div_ceil(32)
}
