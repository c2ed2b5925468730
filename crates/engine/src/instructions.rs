//! The instruction table of a fork: revm's own, with two changes.
//!
//! Jumps and frame entries look at the watch first (`deadline`). Bytes that are no
//! opcode of the fork note themselves before they halt, because the texts of VM
//! failures name them and revm does not. Gas is untouched: the static cost is the
//! fork's, and a byte that is no opcode takes all gas in either way.

use revm::{
    Context,
    bytecode::opcode::{self, OpCode},
    context::{Block, Cfg, ContextTr, Journal, JournalTr, LocalContextTr, Transaction},
    context_interface::{Host, context::ContextError},
    handler::instructions::EthInstructions,
    interpreter::{
        Instruction, InstructionContext, InstructionResult,
        instructions::{contract, control},
        interpreter::EthInterpreter,
        interpreter_types::{Jumps, LegacyBytecode},
    },
    primitives::hardfork::SpecId,
};

use crate::{database::Database, deadline::Watch};

/// The opcodes that came after Frontier, with the fork that has them.
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

/// A host whose run can be stopped: both of our contexts.
pub(crate) trait Watched: Host + ContextTr {
    fn watch(&mut self) -> &mut Watch;
    fn depth(&self) -> usize;
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
}

type At<'a, H> = InstructionContext<'a, H, EthInterpreter>;
type Function<H> = fn(At<'_, H>);

/// The instruction, unless the run has to end before it.
macro_rules! watched {
    ($instruction:expr, $look:ident) => {
        |at| {
            if !$look(at.host) {
                return $instruction(at);
            }
            // revm panics on a fatal halt that leaves no error behind.
            *at.host.error() = Err(ContextError::Custom(STOPPED.into()));
            at.interpreter.halt_fatal();
        }
    };
}

const STOPPED: &str = "stopped";

pub(crate) fn table<H: Watched>(spec: SpecId) -> EthInstructions<EthInterpreter, H> {
    let mut instructions = EthInstructions::new_mainnet_with_spec(spec);
    let watched: [(u8, Function<H>); 8] = [
        (opcode::JUMP, watched!(control::jump, at_jump)),
        (opcode::JUMPI, watched!(control::jumpi, at_jump)),
        (opcode::CALL, watched!(contract::call, at_frame)),
        (opcode::CALLCODE, watched!(contract::call_code, at_frame)),
        (opcode::DELEGATECALL, watched!(contract::delegate_call, at_frame)),
        (opcode::STATICCALL, watched!(contract::static_call, at_frame)),
        (opcode::CREATE, watched!(contract::create::<_, false, _>, at_frame)),
        (opcode::CREATE2, watched!(contract::create::<_, true, _>, at_frame)),
    ];
    for (code, function) in watched {
        let gas = instructions.instruction_table[usize::from(code)].static_gas();
        instructions.insert_instruction(code, Instruction::new(function, gas));
    }
    for code in (0..=u8::MAX).filter(|code| !is_defined(*code, spec)) {
        instructions.insert_instruction(code, Instruction::new(undefined, 0));
    }
    instructions
}

fn at_jump<H: Watched>(host: &mut H) -> bool {
    host.watch().jump()
}

fn at_frame<H: Watched>(host: &mut H) -> bool {
    let depth = host.depth();
    host.watch().frame(depth)
}

fn is_defined(code: u8, spec: SpecId) -> bool {
    let introduced = INTRODUCED.iter().find(|(later, _)| *later == code);
    OpCode::new(code).is_some() && introduced.is_none_or(|(_, fork)| spec.is_enabled_in(*fork))
}

fn undefined<H: Watched>(at: At<'_, H>) {
    // The program counter already stands behind the byte.
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
