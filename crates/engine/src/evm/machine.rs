//! The EVMs of a thread, reused between runs.
//!
//! Creating an EVM costs more than most calls, so each thread keeps a few, one for each recently
//! used rule set and fork. An EVM keeps its fork for its lifetime: instruction table, gas costs,
//! precompiles and warm addresses all derive from it. Every other field is set before a run and
//! cleared after it, so an idle EVM holds no state and no run can observe an earlier one.
//!
//! An EVM returns to the stock only after a run that completed or that revm rejected before it
//! began. After a stop, a store failure or a panic it is dropped.
//!
//! A traced run uses a kept EVM too, with its recorder in place of the collector (`trace`).
//!
//! There are two kinds. `Ethereum` uses revm's own handler. It runs Ethereum, and with Optimism's
//! precompiles also Optimism runs whose fee payments are zero or discarded. `Optimism` uses the
//! handler with deposits, fee vaults and L1 fees.

mod ethereum;
mod optimism;

use std::{
    any::Any,
    cell::RefCell,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::LocalKey,
};

use op_revm::OpHaltReason;
use revm::{
    Context, Journal,
    context::{BlockEnv, CfgEnv, Evm, JournalTr, Transaction},
    context_interface::{
        result::{EVMError, ExecutionResult},
        transaction::TransactionError,
    },
    handler::{EthFrame, instructions::EthInstructions},
    interpreter::interpreter::EthInterpreter,
    primitives::hardfork::SpecId,
    state::EvmState,
};

use crate::{
    deadline::{Limits, Spent, Watch},
    error::{Error, Result},
    evm::{
        database::Database,
        env::Env,
        hashed::HashedPairs,
        instructions,
        overlay::Overlay,
        precompiles::{ForkPrecompiles, PrecompileOverrides},
        rules::Rules,
        transfers::{Collect, Collected, Collector, LogIndices},
    },
    missing_keys::{Missed, MissingKeys},
};

pub(crate) use ethereum::{Ethereum, EthereumInput};
pub(crate) use optimism::{Optimism, OptimismInput};

/// Maximum number of EVMs of one kind kept per thread. A simulation rarely crosses a fork.
const STOCK: usize = 4;
/// An EVM that has grown beyond these limits is dropped instead of kept: a frame owns 32 kB of
/// stack, and memory and journal never shrink.
const KEPT_DEPTH: usize = 64;
const KEPT_MEMORY: usize = 1 << 20;
const KEPT_INPUT: usize = 1 << 17;
const KEPT_ENTRIES: usize = 1 << 14;
/// Maximum memory of all frames of a run together. Two billion gas cannot reach it, so it affects
/// no real block, only calls with excessive gas.
const MEMORY_LIMIT: u64 = 1 << 30;

/// Selects the checks that revm performs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checks {
    pub(crate) nonce: bool,
    /// EIP-3607: a sender must not have code.
    pub(crate) sender_code: bool,
    /// EIP-7825: the gas limit of one transaction.
    pub(crate) gas_cap: bool,
    pub(crate) block_gas_limit: bool,
    pub(crate) base_fee: bool,
}

/// The parameters of a run other than its state and input.
pub(crate) struct Setup<'a> {
    pub(crate) env: &'a Env,
    pub(crate) checks: Checks,
    pub(crate) limits: Limits,
    pub(crate) precompiles: Option<Arc<PrecompileOverrides>>,
    pub(crate) collect: Option<Collect>,
}

/// The result of a run. Its effects are only in `state`; nothing is committed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: ExecutionResult<OpHaltReason>,
    pub(crate) state: EvmState,
    pub(crate) collected: Option<Collected>,
    pub(crate) log_indices: LogIndices,
    pub(crate) undefined_opcode: Option<u8>,
    pub(crate) spent: Spent,
}

/// The reason a run has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// revm did not start: the transaction or message is invalid here.
    Refused(String),
    Broken(Error),
    /// Part of the state is unknown. The result was computed with defaults: it is not an outcome
    /// and serves only to collect further keys. `Err` if the run did not end, with the reason if it
    /// was stopped.
    MissingState(Box<MissingKeys>, Result<Box<Ran>, Option<Error>>),
}

/// Runs `input` on the overlay and leaves the overlay unchanged.
pub(crate) fn run<M: Stocked>(
    overlay: &mut Overlay,
    setup: Setup<'_>,
    input: M::Input,
) -> Result<Ran, Failure> {
    let rules = setup.env.rules;
    let machine = take::<M>(rules).map_err(Failure::Broken)?;
    let collect = setup.collect;
    let mut collector = collect.filter(|collect| collect.transfers).map(Collector::new);
    let (ran, machine) = run_in(machine, overlay, setup, input, collector.as_mut());
    if let Some(machine) = machine {
        keep(rules, machine);
    }
    let mut ran = ran?;
    ran.collected = collect.map(|_| match collector {
        Some(collector) => collector.into_collected(),
        None => mem::take(&mut ran.log_indices).collected(ran.result.logs().len()),
    });
    Ok(ran)
}

/// Runs `input` under an inspector and returns the inspector with its recordings.
pub(crate) fn trace<M: Inspected>(
    overlay: &mut Overlay,
    setup: Setup<'_>,
    input: M::Input,
    mut inspector: M::Inspector,
) -> (Result<Ran, Failure>, M::Inspector) {
    let rules = setup.env.rules;
    let machine = match take::<M::Kept>(rules) {
        Ok(kept) => Box::new(M::inspecting(*kept)),
        Err(error) => return (Err(Failure::Broken(error)), inspector),
    };
    let (ran, machine) = run_in(machine, overlay, setup, input, Some(&mut inspector));
    if let Some(machine) = machine {
        keep(rules, Box::new(machine.kept()));
    }
    (ran, inspector)
}

/// Returns the machine as well if it may be used again.
fn run_in<M: Machine>(
    mut machine: Box<M>,
    overlay: &mut Overlay,
    setup: Setup<'_>,
    mut input: M::Input,
    mut inspector: Option<&mut M::Inspector>,
) -> (Result<Ran, Failure>, Option<Box<M>>) {
    let inspect = inspector.is_some();
    exchange(machine.evm(), overlay, M::transaction(&mut input), inspector.as_deref_mut());
    load(machine.evm(), setup);
    // After a panic only the overlay is used, and runs only read it.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let result = machine.execute(&mut input, inspect);
        (result, machine.evm().ctx.journaled_state.finalize())
    }));
    let evm = machine.evm();
    let is_small = is_small(evm);
    exchange(evm, overlay, M::transaction(&mut input), inspector);
    evm.precompiles.overrides = None;
    let (watch, missing, hashed, log_indices) = evm.ctx.journaled_state.database.end();
    if let Some(missing) = all_missing(overlay, missing, hashed) {
        return (Err(Failure::of_missing(missing, ended.ok(), watch)), None);
    }
    let (result, state) = match ended {
        Ok(ended) => ended,
        Err(panic) => return (Err(Failure::Broken(panicked(panic.as_ref()))), None),
    };
    let completed = matches!(result, Ok(_) | Err(EVMError::Transaction(_)));
    let is_kept = completed && is_small && watch.deepest <= KEPT_DEPTH;
    let ran = match result {
        Err(error) => Err(failure(error, &watch)),
        Ok(result) => {
            let (undefined_opcode, spent) = (watch.undefined_opcode, watch.spent());
            Ok(Ran { result, state, collected: None, log_indices, undefined_opcode, spent })
        }
    };
    (ran, is_kept.then_some(machine))
}

/// The keys missed by a run, together with those missing from its overlay.
fn all_missing(
    overlay: &Overlay,
    mut missing: Missed,
    hashed: Option<HashedPairs>,
) -> Option<Box<MissingKeys>> {
    if missing.is_empty() && overlay.missing().is_empty() {
        return None;
    }
    let keys = missing.keys_mut();
    hashed.unwrap_or_default().explain(keys);
    if let Some(below) = overlay.missing().keys() {
        keys.merge(below.clone());
    }
    missing.into_keys()
}

type Ended = (Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>>, EvmState);

impl Failure {
    fn of_missing(missing: Box<MissingKeys>, ended: Option<Ended>, watch: Watch) -> Self {
        let ran = match ended {
            Some((Ok(result), state)) => {
                let (undefined_opcode, spent) = (watch.undefined_opcode, watch.spent());
                let log_indices = LogIndices::default();
                Ok(Box::new(Ran {
                    result,
                    state,
                    collected: None,
                    log_indices,
                    undefined_opcode,
                    spent,
                }))
            }
            _ => Err(watch.error()),
        };
        Self::MissingState(missing, ran)
    }
}

/// One kind of EVM.
pub(crate) trait Machine: Sized + 'static {
    type Input;
    type Transaction: Transaction;
    type Spec;
    type Chain;
    type Inspector;

    fn new(rules: Rules) -> Result<Self>;
    fn evm(&mut self) -> &mut MachineEvm<Self>;
    fn transaction(input: &mut Self::Input) -> &mut Self::Transaction;

    /// Executes the transaction of the EVM, which is that of `input`.
    fn execute(
        &mut self,
        input: &mut Self::Input,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>>;
}

type MachineEvm<M> = Inner<
    <M as Machine>::Transaction,
    <M as Machine>::Spec,
    <M as Machine>::Chain,
    <M as Machine>::Inspector,
>;

/// An EVM that is kept for the next run.
pub(crate) trait Stocked: Machine<Inspector = Collector> {
    fn stock() -> &'static LocalKey<Stock<Self>>;
}

/// A kept EVM with another inspector.
pub(crate) trait Inspected: Machine {
    type Kept: Stocked<Input = Self::Input>;

    fn inspecting(kept: Self::Kept) -> Self;
    fn kept(self) -> Self::Kept;
}

/// The idle EVMs of a thread, most recently used last.
pub(crate) type Stock<M> = RefCell<Vec<(Rules, Box<M>)>>;

/// A kept EVM of these rules, or a new one.
fn take<M: Stocked>(rules: Rules) -> Result<Box<M>> {
    let kept = M::stock().with_borrow_mut(|stock| {
        let at = stock.iter().rposition(|(kept, _)| *kept == rules)?;
        Some(stock.remove(at).1)
    });
    match kept {
        Some(machine) => Ok(machine),
        None => M::new(rules).map(Box::new),
    }
}

fn keep<M: Stocked>(rules: Rules, machine: Box<M>) {
    M::stock().with_borrow_mut(|stock| {
        if stock.len() >= STOCK {
            stock.remove(0);
        }
        stock.push((rules, machine));
    });
}

fn failure(error: EVMError<Error, String>, watch: &Watch) -> Failure {
    match error {
        EVMError::Transaction(why) => Failure::Refused(why),
        EVMError::Header(why) => Failure::Broken(Error::Execution(why.to_string())),
        EVMError::Database(error) => Failure::Broken(error),
        EVMError::Custom(why) => Failure::Broken(watch.error().unwrap_or(Error::Execution(why))),
        EVMError::CustomAny(why) => {
            Failure::Broken(watch.error().unwrap_or_else(|| Error::Execution(why.to_string())))
        }
    }
}

pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::Execution(format!("the EVM panicked: {}", text.unwrap_or("no message")))
}

/// The EVM type that both kinds share, generic over transaction, fork and chain.
type Inner<TX, SPEC, CHAIN, I> = Evm<
    Ctx<TX, SPEC, CHAIN>,
    I,
    EthInstructions<EthInterpreter, Ctx<TX, SPEC, CHAIN>>,
    ForkPrecompiles,
    EthFrame<EthInterpreter>,
>;
type Ctx<TX, SPEC, CHAIN> = Context<BlockEnv, TX, CfgEnv<SPEC>, Database, Journal<Database>, CHAIN>;

fn new_inner<TX, SPEC, CHAIN, I>(rules: Rules, spec: SPEC) -> Inner<TX, SPEC, CHAIN, I>
where
    TX: Transaction + Default,
    SPEC: Into<SpecId> + Clone + Default + PartialEq,
    CHAIN: Default,
    I: Default,
{
    let mut context = Ctx::new(Database::default(), spec);
    context.cfg.memory_limit = MEMORY_LIMIT;
    let precompiles = ForkPrecompiles::new(rules);
    // Set once here; otherwise the journal would use the list of the first run's provider.
    context.journaled_state.warm_precompiles(precompiles.fork().addresses_set().clone());
    let instructions = instructions::table(rules.spec_id());
    Evm::new_with_inspector(context, I::default(), instructions, precompiles)
}

/// Exchanges what an EVM holds for what a run provides, in place: these are hundreds of bytes. An
/// idle EVM holds empty values.
fn exchange<TX, SPEC, CHAIN, I>(
    evm: &mut Inner<TX, SPEC, CHAIN, I>,
    overlay: &mut Overlay,
    transaction: &mut TX,
    inspector: Option<&mut I>,
) {
    mem::swap(&mut evm.ctx.journaled_state.database.overlay, overlay);
    mem::swap(&mut evm.ctx.tx, transaction);
    if let Some(inspector) = inspector {
        mem::swap(&mut evm.inspector, inspector);
    }
}

fn load<TX, SPEC, CHAIN, I>(evm: &mut Inner<TX, SPEC, CHAIN, I>, setup: Setup<'_>) {
    let Setup { env, checks, limits, precompiles, collect } = setup;
    evm.ctx.block.clone_from(&env.block);
    let cfg = &mut evm.ctx.cfg;
    cfg.chain_id = env.chain_id;
    cfg.max_blobs_per_tx = env.max_blobs_per_transaction;
    cfg.limit_contract_code_size = env.max_code_size;
    cfg.disable_nonce_check = !checks.nonce;
    cfg.disable_eip3607 = !checks.sender_code;
    cfg.disable_block_gas_limit = !checks.block_gas_limit;
    cfg.disable_base_fee = !checks.base_fee;
    cfg.tx_gas_limit_cap = match checks.gas_cap {
        true => env.max_transaction_gas,
        false => Some(u64::MAX),
    };
    evm.precompiles.overrides = precompiles;
    let next_log = collect.map_or(0, |collect| collect.next_index);
    evm.ctx.journaled_state.database.begin(limits, next_log);
}

fn is_small<TX: Transaction, SPEC, CHAIN, I>(evm: &Inner<TX, SPEC, CHAIN, I>) -> bool {
    // After a panic the buffer may still be borrowed; the EVM is then dropped anyway.
    let memory = evm.ctx.local.shared_memory_buffer.try_borrow();
    let memory = memory.map_or(usize::MAX, |buffer| buffer.capacity());
    let journal = &evm.ctx.journaled_state.inner;
    let entries = journal.journal.capacity().max(journal.transient_storage.capacity());
    memory <= KEPT_MEMORY && evm.ctx.tx.input().len() <= KEPT_INPUT && entries <= KEPT_ENTRIES
}

/// Converts the transaction error to text and keeps all other errors.
fn in_words<T: TransactionError + ToString>(error: EVMError<Error, T>) -> EVMError<Error, String> {
    match error {
        EVMError::Transaction(why) => EVMError::Transaction(why.to_string()),
        EVMError::Header(why) => EVMError::Header(why),
        EVMError::Database(error) => EVMError::Database(error),
        EVMError::Custom(why) => EVMError::Custom(why),
        EVMError::CustomAny(why) => EVMError::CustomAny(why),
    }
}

#[cfg(test)]
mod tests;
