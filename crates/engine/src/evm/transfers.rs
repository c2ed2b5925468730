//! The logs of a run with their indices, and ether transfers as logs.
//!
//! An index counts every log ever emitted, including logs dropped when their frame fails, and never
//! decreases. Without transfers, the instruction table counts logs (`LogIndices`), which costs
//! nothing elsewhere. Transfers need an inspector, the collector. It keeps its own list and does not
//! change revm's: receipts and blooms contain the surviving logs without transfers.

use alloy_primitives::{Address, B256, Bytes, Log, LogData, U256, address, b256};
use revm::{
    Inspector,
    bytecode::opcode,
    context::ContextTr,
    inspector::JournalExt,
    interpreter::{
        CallInputs, CallOutcome, CallScheme, CreateInputs, CreateOutcome, InstructionResult,
        Interpreter, InterpreterAction,
        interpreter::EthInterpreter,
        interpreter_types::{InputsTr, Jumps, LoopControl},
    },
};

/// The emitter of transfer logs (execution-apis, eth_simulateV1, traceTransfers).
pub const TRANSFER_ADDRESS: Address = address!("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");
/// keccak256("Transfer(address,address,uint256)")
pub const TRANSFER_TOPIC: B256 =
    b256!("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// How to collect the logs of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collect {
    /// Record ether transfers as logs.
    pub transfers: bool,
    /// The index of the first log: in a block, the `next_index` of the previous run.
    pub next_index: u64,
}

/// The indices of the surviving logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    pub(crate) indices: Vec<u64>,
    /// The logs with transfers; `None` if the indices are those of the receipt's logs.
    pub(crate) with_transfers: Option<Vec<Log>>,
    /// The first log index of the next run in the block.
    pub next_index: u64,
}

/// The indices of the logs in revm's list.
#[derive(Debug, Default)]
pub(crate) struct LogIndices {
    indices: Vec<u64>,
    next: u64,
}

impl LogIndices {
    pub(crate) fn starting_at(next: u64) -> Self {
        Self { indices: Vec::new(), next }
    }

    /// Notes a log that was added at this position of revm's list. Logs that stood there or behind
    /// were dropped with their frame.
    pub(crate) fn note(&mut self, position: usize) {
        self.indices.truncate(position);
        self.indices.push(self.next);
        self.next += 1;
    }

    /// The indices of this many surviving logs.
    pub(crate) fn collected(mut self, count: usize) -> Collected {
        self.indices.truncate(count);
        Collected { indices: self.indices, with_transfers: None, next_index: self.next }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Collector {
    indices: LogIndices,
    logs: Vec<Log>,
    /// For every open frame, the number of logs when it was entered.
    marks: Vec<usize>,
    /// The SELFDESTRUCT about to be executed: contract, beneficiary, balance.
    destruction: Option<(Address, Address, U256)>,
}

impl Collector {
    pub(crate) fn new(collect: Collect) -> Self {
        Self { indices: LogIndices::starting_at(collect.next_index), ..Self::default() }
    }

    pub(crate) fn into_collected(self) -> Collected {
        let collected = self.indices.collected(self.logs.len());
        Collected { with_transfers: Some(self.logs), ..collected }
    }

    fn record(&mut self, log: Log) {
        self.indices.note(self.logs.len());
        self.logs.push(log);
    }

    fn transfer(&mut self, from: Address, to: Address, value: U256) {
        if value.is_zero() {
            return;
        }
        let topics = vec![TRANSFER_TOPIC, from.into_word(), to.into_word()];
        let data = Bytes::copy_from_slice(&value.to_be_bytes::<32>());
        self.record(Log { address: TRANSFER_ADDRESS, data: LogData::new_unchecked(topics, data) });
    }

    fn enter(&mut self) {
        self.marks.push(self.logs.len());
    }

    fn leave(&mut self, result: InstructionResult) {
        let mark = self.marks.pop().unwrap_or_default();
        if !result.is_ok() {
            self.logs.truncate(mark);
        }
    }
}

impl<CTX: ContextTr<Journal: JournalExt>> Inspector<CTX, EthInterpreter> for Collector {
    fn call(&mut self, _: &mut CTX, inputs: &mut CallInputs) -> Option<CallOutcome> {
        self.enter();
        // CALLCODE does not move ether.
        if inputs.scheme == CallScheme::Call {
            self.transfer(inputs.caller, inputs.target_address, inputs.call_value());
        }
        None
    }

    fn call_end(&mut self, _: &mut CTX, _: &CallInputs, outcome: &mut CallOutcome) {
        self.leave(outcome.result.result);
    }

    fn create(&mut self, context: &mut CTX, inputs: &mut CreateInputs) -> Option<CreateOutcome> {
        self.enter();
        if !inputs.value().is_zero() {
            let caller = context.journal().evm_state().get(&inputs.caller());
            let nonce = caller.map(|account| account.info.nonce).unwrap_or_default();
            let created = inputs.created_address(nonce);
            self.transfer(inputs.caller(), created, inputs.value());
        }
        None
    }

    fn create_end(&mut self, _: &mut CTX, _: &CreateInputs, outcome: &mut CreateOutcome) {
        self.leave(outcome.result.result);
    }

    fn log(&mut self, _: &mut CTX, log: Log) {
        self.record(log);
    }

    // revm's SELFDESTRUCT hook reports the last journal entry, which is an earlier transfer if the
    // contract is its own beneficiary.
    fn step(&mut self, interpreter: &mut Interpreter<EthInterpreter>, context: &mut CTX) {
        if interpreter.bytecode.opcode() != opcode::SELFDESTRUCT {
            return;
        }
        let Ok(beneficiary) = interpreter.stack.peek(0) else { return };
        let contract = interpreter.input.target_address();
        let account = context.journal().evm_state().get(&contract);
        let balance = account.map(|account| account.info.balance).unwrap_or_default();
        let beneficiary = Address::from_word(B256::from(beneficiary));
        self.destruction = Some((contract, beneficiary, balance));
    }

    fn step_end(&mut self, interpreter: &mut Interpreter<EthInterpreter>, _: &mut CTX) {
        let Some((contract, beneficiary, balance)) = self.destruction.take() else { return };
        if let Some(InterpreterAction::Return(end)) = interpreter.bytecode.action()
            && end.result == InstructionResult::SelfDestruct
        {
            self.transfer(contract, beneficiary, balance);
        }
    }
}
