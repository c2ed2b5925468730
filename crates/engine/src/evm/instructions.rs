//! The instruction table of a fork: revm's table with four changes.
//!
//! Instructions whose duration exceeds one nanosecond per gas first report an upper bound (`work`)
//! to the watch (`deadline`), as do jumps and frame entries. Bytes that are not opcodes of the fork
//! are recorded before they halt, because the texts of VM failures name them and revm does not.
//! Logs are counted (`LogIndices`).
//! Above a partial base state, hashes of two words are recorded (`hashed`). Gas is unchanged:
//! static costs are those of the fork, and an undefined byte consumes all gas either way.

use revm::{
    Context,
    bytecode::opcode::{self, OpCode},
    context::{Block, Cfg, ContextTr, Journal, JournalTr, LocalContextTr, Transaction},
    context_interface::{Host, context::ContextError},
    handler::instructions::EthInstructions,
    interpreter::{
        Instruction, InstructionContext, InstructionResult, Interpreter,
        instructions::{arithmetic, contract, control, host, memory, system},
        interpreter::EthInterpreter,
        interpreter_types::{Jumps, LegacyBytecode, MemoryTr},
    },
    primitives::hardfork::SpecId,
};

use crate::{
    deadline::Watch,
    evm::{
        database::Database,
        hashed::{HashedPairs, PAIR},
        transfers::LogIndices,
        work,
    },
};

/// Opcodes introduced after Frontier, each with its fork.
const INTRODUCED: [(u8, SpecId); 24] = [
    (opcode::DELEGATECALL, SpecId::HOMESTEAD),
    (opcode::REVERT, SpecId::BYZANTIUM),
    (opcode::RETURNDATASIZE, SpecId::BYZANTIUM),
    (opcode::RETURNDATACOPY, SpecId::BYZANTIUM),
    (opcode::STATICCALL, SpecId::BYZANTIUM),
    (opcode::SHL, SpecId::PETERSBURG),
    (opcode::SHR, SpecId::PETERSBURG),
    (opcode::SAR, SpecId::PETERSBURG),
    (opcode::EXTCODEHASH, SpecId::PETERSBURG),
    (opcode::CREATE2, SpecId::PETERSBURG),
    (opcode::CHAINID, SpecId::ISTANBUL),
    (opcode::SELFBALANCE, SpecId::ISTANBUL),
    (opcode::BASEFEE, SpecId::LONDON),
    (opcode::PUSH0, SpecId::SHANGHAI),
    (opcode::BLOBHASH, SpecId::CANCUN),
    (opcode::BLOBBASEFEE, SpecId::CANCUN),
    (opcode::TLOAD, SpecId::CANCUN),
    (opcode::TSTORE, SpecId::CANCUN),
    (opcode::MCOPY, SpecId::CANCUN),
    (opcode::CLZ, SpecId::OSAKA),
    (opcode::SLOTNUM, SpecId::AMSTERDAM),
    (opcode::DUPN, SpecId::AMSTERDAM),
    (opcode::SWAPN, SpecId::AMSTERDAM),
    (opcode::EXCHANGE, SpecId::AMSTERDAM),
];

/// A host whose run can be stopped: both context types.
pub(crate) trait Watched: Host + ContextTr {
    fn watch(&mut self) -> &mut Watch;
    fn depth(&self) -> usize;
    /// The recorder of two-word hashes, if enabled.
    fn hashed(&mut self) -> Option<&mut HashedPairs>;
    fn log_count(&self) -> usize;
    fn log_indices(&mut self) -> &mut LogIndices;
}

impl<BLOCK, TX, CFG, CHAIN, LOCAL> Watched
    for Context<BLOCK, TX, CFG, Database, Journal<Database>, CHAIN, LOCAL>
where
    BLOCK: Block,
    TX: Transaction,
    CFG: Cfg,
    LOCAL: LocalContextTr,
{
    fn watch(&mut self) -> &mut Watch {
        &mut self.journaled_state.database.watch
    }

    fn depth(&self) -> usize {
        self.journaled_state.depth()
    }

    fn hashed(&mut self) -> Option<&mut HashedPairs> {
        self.journaled_state.database.hashed.as_mut()
    }

    fn log_count(&self) -> usize {
        self.journaled_state.logs.len()
    }

    fn log_indices(&mut self) -> &mut LogIndices {
        &mut self.journaled_state.database.log_indices
    }
}

type At<'a, H> = InstructionContext<'a, H, EthInterpreter>;
type Function<H> = fn(At<'_, H>);

/// Wraps an instruction that is skipped if the run must end before it.
macro_rules! watched {
    ($instruction:expr, $ends:expr) => {
        |at| {
            if !$ends(&mut *at.interpreter, &mut *at.host) {
                return $instruction(at);
            }
            // revm panics on a fatal halt without an error.
            *at.host.error() = Err(ContextError::Custom(STOPPED.into()));
            at.interpreter.halt_fatal();
        }
    };
}

/// Wraps an instruction with a bound on its duration.
macro_rules! weighed {
    ($instruction:expr, $weight:expr) => {
        watched!($instruction, |on: &mut On, host: &mut H| {
            let weight = $weight(&*on);
            host.watch().work(weight)
        })
    };
}

/// Wraps an instruction that keeps something in memory until the run ends.
macro_rules! kept {
    ($instruction:expr, $weight:expr) => {
        watched!($instruction, |on: &mut On, host: &mut H| {
            let weight = $weight(&*on);
            host.watch().charge_entry(weight)
        })
    };
}

const STOPPED: &str = "stopped";

type On = Interpreter<EthInterpreter>;

pub(crate) fn table<H: Watched>(spec: SpecId) -> EthInstructions<EthInterpreter, H> {
    let mut instructions = EthInstructions::new_mainnet_with_spec(spec);
    let replaced = jumps_and_frames().into_iter().chain(arithmetic_and_memory()).chain(state());
    for (code, function) in replaced {
        let gas = instructions.instruction_table[usize::from(code)].static_gas();
        instructions.insert_instruction(code, Instruction::new(function, gas));
    }
    for code in (0..=u8::MAX).filter(|code| !is_defined(*code, spec)) {
        instructions.insert_instruction(code, Instruction::new(undefined, 0));
    }
    instructions
}

fn jumps_and_frames<H: Watched>() -> [(u8, Function<H>); 8] {
    [
        (opcode::JUMP, watched!(control::jump, at_jump)),
        (opcode::JUMPI, watched!(control::jumpi, at_jump)),
        (opcode::CALL, watched!(contract::call, at_call::<3, _>)),
        (opcode::CALLCODE, watched!(contract::call_code, at_call::<3, _>)),
        (opcode::DELEGATECALL, watched!(contract::delegate_call, at_call::<2, _>)),
        (opcode::STATICCALL, watched!(contract::static_call, at_call::<2, _>)),
        (opcode::CREATE, watched!(contract::create::<_, false, _>, at_creation)),
        (opcode::CREATE2, watched!(contract::create::<_, true, _>, at_creation)),
    ]
}

fn arithmetic_and_memory<H: Watched>() -> [(u8, Function<H>); 18] {
    [
        (opcode::DIV, weighed!(arithmetic::div, |_: &On| work::DIVIDE)),
        (opcode::SDIV, weighed!(arithmetic::sdiv, |_: &On| work::DIVIDE)),
        (opcode::MOD, weighed!(arithmetic::rem, |_: &On| work::DIVIDE)),
        (opcode::SMOD, weighed!(arithmetic::smod, |_: &On| work::DIVIDE)),
        (opcode::ADDMOD, weighed!(arithmetic::addmod, |_: &On| work::MODULAR)),
        (opcode::MULMOD, weighed!(arithmetic::mulmod, |_: &On| work::MODULAR)),
        (opcode::EXP, weighed!(arithmetic::exp, power)),
        (opcode::KECCAK256, weighed!(hash, keccak)),
        (opcode::CALLDATACOPY, weighed!(system::calldatacopy, |on: &On| copy(on, 0, 2))),
        (opcode::CODECOPY, weighed!(system::codecopy, |on: &On| copy(on, 0, 2))),
        (opcode::RETURNDATACOPY, weighed!(system::returndatacopy, |on: &On| copy(on, 0, 2))),
        (opcode::MCOPY, weighed!(memory::mcopy, |on: &On| copy(on, 0, 2))),
        (opcode::MLOAD, weighed!(memory::mload, |on: &On| growth(on, 0, 32))),
        (opcode::MSTORE, weighed!(memory::mstore, |on: &On| growth(on, 0, 32))),
        (opcode::MSTORE8, weighed!(memory::mstore8, |on: &On| growth(on, 0, 1))),
        (opcode::RETURN, weighed!(control::ret, |on: &On| copy(on, 0, 1))),
        (opcode::REVERT, weighed!(control::revert, |on: &On| copy(on, 0, 1))),
        (opcode::EXTCODECOPY, weighed!(host::extcodecopy, |on: &On| copy(on, 1, 3))),
    ]
}

fn state<H: Watched>() -> [(u8, Function<H>); 15] {
    [
        (opcode::BALANCE, weighed!(host::balance, |_: &On| work::WARM)),
        (opcode::SELFBALANCE, weighed!(host::selfbalance, |_: &On| work::WARM)),
        (opcode::EXTCODESIZE, weighed!(host::extcodesize, |_: &On| work::WARM)),
        (opcode::EXTCODEHASH, weighed!(host::extcodehash, |_: &On| work::WARM)),
        (opcode::BLOCKHASH, weighed!(host::blockhash, |_: &On| work::WARM)),
        (opcode::SLOAD, weighed!(host::sload, |_: &On| work::WARM)),
        (opcode::SSTORE, kept!(host::sstore, |_: &On| work::WARM)),
        (opcode::TLOAD, weighed!(host::tload, |_: &On| work::WARM)),
        (opcode::TSTORE, kept!(host::tstore, |_: &On| work::WARM)),
        (opcode::SELFDESTRUCT, weighed!(host::selfdestruct, |_: &On| work::LOOKUP)),
        (opcode::LOG0, kept!(numbered_log::<0, _>, log)),
        (opcode::LOG1, kept!(numbered_log::<1, _>, log)),
        (opcode::LOG2, kept!(numbered_log::<2, _>, log)),
        (opcode::LOG3, kept!(numbered_log::<3, _>, log)),
        (opcode::LOG4, kept!(numbered_log::<4, _>, log)),
    ]
}

fn at_jump<H: Watched>(on: &mut On, host: &mut H) -> bool {
    host.watch().on_jump(on.gas.remaining()) && {
        let depth = host.depth();
        host.watch().check_at_jump(depth, spent(on))
    }
}

/// The gas spent by a frame so far, including its calls.
fn spent(on: &On) -> u64 {
    on.gas.limit().saturating_sub(on.gas.remaining())
}

/// `INPUT` is the stack position of the input offset. The input length, the output offset and the
/// output length follow below it.
fn at_call<const INPUT: usize, H: Watched>(on: &mut On, host: &mut H) -> bool {
    let grown = range(on, INPUT, INPUT + 1).max(range(on, INPUT + 2, INPUT + 3));
    at_frame(on, host, work::FRAME + bounded(on, grown))
}

fn at_creation<H: Watched>(on: &mut On, host: &mut H) -> bool {
    let weight = work::creation(operand(on, 2)).saturating_add(range(on, 1, 2));
    at_frame(on, host, bounded(on, weight))
}

fn at_frame<H: Watched>(on: &On, host: &mut H, weight: u64) -> bool {
    let depth = host.depth();
    host.watch().frame(depth, spent(on), weight)
}

fn power(on: &On) -> u64 {
    let stack = on.stack.data();
    stack.len().checked_sub(2).map_or(0, |exponent| work::power(&stack[exponent]))
}

fn keccak(on: &On) -> u64 {
    bounded(on, work::hash(operand(on, 1)).saturating_add(range(on, 0, 1)))
}

/// KECCAK256 that records its input if it may explain a missing slot.
fn hash<H: Watched>(at: At<'_, H>) {
    let is_pair = operand(at.interpreter, 1) == PAIR as u64;
    if !is_pair || at.host.hashed().is_none() {
        return system::keccak256(at);
    }
    let from = operand(at.interpreter, 0) as usize;
    let InstructionContext { interpreter, host } = at;
    system::keccak256(InstructionContext { interpreter: &mut *interpreter, host: &mut *host });
    // If it ran out of gas, memory was not grown.
    if from.checked_add(PAIR).is_none_or(|end| end > interpreter.memory.size()) {
        return;
    }
    let mut pair = [0; PAIR];
    pair.copy_from_slice(&interpreter.memory.slice_len(from, PAIR));
    if let (Some(hashed), Some(top)) = (host.hashed(), interpreter.stack.data().last()) {
        hashed.note(*top, pair);
    }
}

/// LOG that notes the index of its log.
fn numbered_log<const TOPICS: usize, H: Watched>(at: At<'_, H>) {
    let InstructionContext { interpreter, host } = at;
    let position = host.log_count();
    host::log::<TOPICS, _>(InstructionContext { interpreter: &mut *interpreter, host: &mut *host });
    if host.log_count() > position {
        host.log_indices().note(position);
    }
}

fn log(on: &On) -> u64 {
    work::WARM + copy(on, 0, 1)
}

/// The time to copy `length` bytes to `offset`; both are stack positions.
fn copy(on: &On, offset: usize, length: usize) -> u64 {
    bounded(on, work::copy(operand(on, length)).saturating_add(range(on, offset, length)))
}

/// The time to grow memory to hold `length` bytes at `offset`; both are stack positions.
fn range(on: &On, offset: usize, length: usize) -> u64 {
    match operand(on, length) {
        0 => 0,
        length => work::growth(beyond_memory(on, offset, length)),
    }
}

/// The time to grow memory to hold `length` bytes at the stack operand `offset`, bounded by the
/// gas.
#[inline]
fn growth(on: &On, offset: usize, length: u64) -> u64 {
    match beyond_memory(on, offset, length) {
        0 => 0,
        more => bounded(on, work::growth(more)),
    }
}

#[inline]
fn beyond_memory(on: &On, offset: usize, length: u64) -> u64 {
    operand(on, offset).saturating_add(length).saturating_sub(on.memory.size() as u64)
}

/// Bounds a duration by the remaining gas: a longer instruction would run out of gas first.
fn bounded(on: &On, weight: u64) -> u64 {
    weight.min(on.gas.remaining().saturating_mul(work::MOST_FOR_GAS))
}

/// The stack item at this depth, saturated to 64 bits. 0 if the stack is too small, which the
/// instruction itself rejects.
#[inline]
fn operand(on: &On, below_top: usize) -> u64 {
    let stack = on.stack.data();
    match stack.len().checked_sub(below_top + 1) {
        Some(at) => u64::try_from(stack[at]).unwrap_or(u64::MAX),
        None => 0,
    }
}

pub(crate) fn is_defined(code: u8, spec: SpecId) -> bool {
    let introduced = INTRODUCED.iter().find(|(later, _)| *later == code);
    OpCode::new(code).is_some() && introduced.is_none_or(|(_, fork)| spec.is_enabled_in(*fork))
}

fn undefined<H: Watched>(at: At<'_, H>) {
    // The program counter is already past the byte.
    let position = at.interpreter.bytecode.pc().saturating_sub(1);
    let code = at.interpreter.bytecode.bytecode_slice().get(position).copied();
    at.host.watch().undefined_opcode = code;
    at.interpreter.halt(InstructionResult::OpcodeNotFound);
}

/// The name of a byte as other clients print it after "invalid opcode: ".
pub(crate) fn name(code: u8) -> String {
    match OpCode::new(code) {
        Some(known) => known.as_str().to_owned(),
        None => format!("opcode {code:#x} not defined"),
    }
}
