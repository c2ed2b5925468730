//! The EVMs of a thread, reused from run to run.
//!
//! Making an EVM costs more than most calls, so each thread keeps a few, one for each
//! rule set and fork it has met lately. An EVM belongs to its fork for life: table,
//! gas costs, precompiles and warm addresses are all made from it. Everything else is
//! put in before a run, every field of it, and taken out after it, so that an idle
//! EVM holds no state and the next run cannot see the one before.
//!
//! An EVM goes back to the stock only from a run that ended as runs do, or that revm
//! refused to begin. After a stop, a failing store or a panic it is dropped.
//!
//! A traced run has an EVM of its own, which is dropped after it (`trace`).
//!
//! Two kinds exist. `Ethereum` has revm's own handler and runs Ethereum and, with
//! Optimism's precompiles, whatever pays no fee on Optimism. `Optimism` has the
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
    error::{Error, Result},
    evm::{
        database::Database,
        deadline::{Limits, Watch},
        env::Env,
        hashed::HashedPairs,
        instructions,
        overlay::Overlay,
        precompiles::{ForkPrecompiles, PrecompileOverrides},
        rules::Rules,
        transfers::{Collect, Collected, Collector},
    },
    missing_keys::{Missed, MissingKeys},
};

pub(crate) use ethereum::{Ethereum, EthereumInput};
pub(crate) use optimism::{Optimism, OptimismInput};

/// EVMs of one kind that a thread keeps. A simulation rarely crosses a fork.
const STOCK: usize = 4;
/// An EVM that has grown beyond these is dropped instead of kept: a frame owns 32 kB
/// of stack, and neither memory nor journal are ever given back.
const KEPT_DEPTH: usize = 64;
const KEPT_MEMORY: usize = 1 << 20;
const KEPT_INPUT: usize = 1 << 17;
const KEPT_ENTRIES: usize = 1 << 14;
/// The most memory all frames of a run may hold together. Two thousand million gas
/// would not reach it, so no block is judged by it; absurd gas is.
const MEMORY_LIMIT: u64 = 1 << 30;

/// Which of revm's checks apply.
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

/// Everything a run needs besides its state and its input.
pub(crate) struct Setup<'a> {
    pub(crate) env: &'a Env,
    pub(crate) checks: Checks,
    pub(crate) limits: Limits,
    pub(crate) precompiles: Option<Arc<PrecompileOverrides>>,
    pub(crate) collect: Option<Collect>,
}

/// What a run gave. Its effects are in `state` and nowhere else yet.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: ExecutionResult<OpHaltReason>,
    pub(crate) state: EvmState,
    pub(crate) collected: Option<Collected>,
    pub(crate) undefined_opcode: Option<u8>,
    /// What the run has come to.
    pub(crate) watch: Watch,
}

/// Why a run gave nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// revm did not begin: the transaction or message is not valid here.
    Refused(String),
    Broken(Error),
    /// Some of the state is not known. What the run came to with defaults is for going on to
    /// collect, and no outcome; without an end it is why it was stopped, if it was.
    MissingState(Box<MissingKeys>, Result<Box<Ran>, Option<Error>>),
}

/// Runs `input` on the overlay, which is the same afterwards.
pub(crate) fn run<M: Stocked>(
    overlay: &mut Overlay,
    setup: Setup<'_>,
    input: M::Input,
) -> Result<Ran, Failure> {
    let rules = setup.env.rules;
    let mut machine = match take::<M>(rules) {
        Some(machine) => machine,
        None => Box::new(M::new(rules).map_err(Failure::Broken)?),
    };
    let collect = setup.collect;
    let collector = Collector::new(collect.unwrap_or_default());
    machine.load(mem::take(overlay), setup, collector);
    // Nothing in the machine is looked at after a panic but the overlay, which is
    // only read while it runs.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let result = machine.execute(input, collect.is_some());
        (result, machine.finalize())
    }));
    let (unloaded, collector) = machine.unload();
    let Database { overlay: below, watch, missing, hashed, .. } = unloaded.database;
    *overlay = below;
    if let Some(missing) = all_missing(overlay, missing, hashed) {
        return Err(Failure::of_missing(missing, ended.ok(), watch));
    }

    let (result, state) = ended.map_err(|panic| Failure::Broken(panicked(panic.as_ref())))?;
    match result {
        Ok(_) | Err(EVMError::Transaction(_)) if unloaded.small && watch.deepest <= KEPT_DEPTH => {
            keep(rules, machine);
        }
        _ => {}
    }
    let result = result.map_err(|error| failure(error, &watch))?;
    let collected = collect.map(|_| collector.into_collected());
    let undefined_opcode = watch.undefined_opcode;
    Ok(Ran { result, state, collected, undefined_opcode, watch })
}

/// Runs `input` under an inspector, which is given back with what it has seen.
pub(crate) fn trace<M: Machine>(
    overlay: &mut Overlay,
    setup: Setup<'_>,
    input: M::Input,
    inspector: M::Inspector,
) -> (Result<Ran, Failure>, M::Inspector) {
    let mut machine = match M::new(setup.env.rules) {
        Ok(machine) => machine,
        Err(error) => return (Err(Failure::Broken(error)), inspector),
    };
    machine.load(mem::take(overlay), setup, inspector);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let result = machine.execute(input, true);
        (result, machine.finalize())
    }));
    let (unloaded, inspector) = machine.unload();
    let Database { overlay: below, watch, missing, hashed, .. } = unloaded.database;
    *overlay = below;
    if let Some(missing) = all_missing(overlay, missing, hashed) {
        return (Err(Failure::of_missing(missing, ended.ok(), watch)), inspector);
    }
    let ran = match ended {
        Err(panic) => Err(Failure::Broken(panicked(panic.as_ref()))),
        Ok((Err(error), _)) => Err(failure(error, &watch)),
        Ok((Ok(result), state)) => {
            let undefined_opcode = watch.undefined_opcode;
            Ok(Ran { result, state, collected: None, undefined_opcode, watch })
        }
    };
    (ran, inspector)
}

/// What a run has missed, and what was not known of what it stands on.
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
                let undefined_opcode = watch.undefined_opcode;
                Ok(Box::new(Ran { result, state, collected: None, undefined_opcode, watch }))
            }
            _ => Err(watch.error()),
        };
        Self::MissingState(missing, ran)
    }
}

/// One kind of EVM.
pub(crate) trait Machine: Sized + 'static {
    type Input;
    type Inspector;

    fn new(rules: Rules) -> Result<Self>;
    fn load(&mut self, overlay: Overlay, setup: Setup<'_>, inspector: Self::Inspector);
    fn execute(
        &mut self,
        input: Self::Input,
        inspect: bool,
    ) -> Result<ExecutionResult<OpHaltReason>, EVMError<Error, String>>;
    fn finalize(&mut self) -> EvmState;
    fn unload(&mut self) -> (Unloaded, Self::Inspector);
}

/// One that is kept for the next run.
pub(crate) trait Stocked: Machine<Inspector = Collector> {
    fn stock() -> &'static LocalKey<Stock<Self>>;
}

/// What was in an EVM for the run that has ended.
pub(crate) struct Unloaded {
    database: Database,
    small: bool,
}

/// The idle EVMs of a thread, the one used last at the end.
pub(crate) type Stock<M> = RefCell<Vec<(Rules, Box<M>)>>;

fn take<M: Stocked>(rules: Rules) -> Option<Box<M>> {
    M::stock().with_borrow_mut(|stock| {
        let at = stock.iter().rposition(|(kept, _)| *kept == rules)?;
        Some(stock.remove(at).1)
    })
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

/// The part both kinds share, down to the types of transaction, fork and chain.
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
    // Set here once, or the journal would take the list of the first run's provider.
    context.journaled_state.warm_precompiles(precompiles.fork().addresses_set().clone());
    let instructions = instructions::table(rules.spec_id());
    Evm::new_with_inspector(context, I::default(), instructions, precompiles)
}

fn load_inner<TX: Transaction, SPEC, CHAIN, I>(
    evm: &mut Inner<TX, SPEC, CHAIN, I>,
    overlay: Overlay,
    setup: Setup<'_>,
    inspector: I,
) {
    let Setup { env, checks, limits, precompiles, .. } = setup;
    evm.ctx.block = env.block.clone();
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
    evm.inspector = inspector;
    evm.ctx.journaled_state.database = Database::new(overlay, Watch::new(limits));
}

fn unload_inner<TX, SPEC, CHAIN, I>(evm: &mut Inner<TX, SPEC, CHAIN, I>) -> (Unloaded, I)
where
    TX: Transaction + Default,
    I: Default,
{
    evm.precompiles.overrides = None;
    let tx = mem::take(&mut evm.ctx.tx);
    // After a panic the buffer may still be borrowed; then the EVM goes anyway.
    let memory = evm.ctx.local.shared_memory_buffer.try_borrow();
    let memory = memory.map_or(usize::MAX, |buffer| buffer.capacity());
    let journal = &mut evm.ctx.journaled_state;
    let entries = journal.inner.journal.capacity().max(journal.inner.transient_storage.capacity());
    let small = memory <= KEPT_MEMORY && tx.input().len() <= KEPT_INPUT && entries <= KEPT_ENTRIES;
    let database = mem::take(&mut journal.database);
    (Unloaded { database, small }, mem::take(&mut evm.inspector))
}

/// The transaction error as text, the rest as it is.
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
