//! Execution of messages, with or without keeping their effects, and of a block's system calls.
//!
//! The caller has already validated the message in the order that determines which error is
//! reported; what revm still rejects is returned as `Error::InvalidMessage`. Checks that do not
//! apply to unsigned messages are disabled: a sender may have code, and the gas cap of a
//! transaction does not apply. The balance is always checked: revm's options to skip balance and
//! fee checks are not used, because they create ether.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use op_revm::{L1BlockInfo, OpTransaction};

use crate::{
    deadline::Limits,
    error::{Error, Result},
    evm::{
        env::Env,
        machine::{
            self, Checks, Ethereum, EthereumInput, Failure, Optimism, OptimismInput, Ran, Setup,
        },
        outcome::Outcome,
        overlay::{Overlay, Override},
        precompiles::PrecompileOverrides,
        transfers::Collect,
        work,
    },
    message::Message,
    missing_keys::Missed,
};

#[derive(Debug, Clone)]
pub struct Options {
    pub limits: Limits,
    pub precompiles: Option<Arc<PrecompileOverrides>>,
    /// Collect the logs with their indices.
    pub collect: Option<Collect>,
    /// Disabled only for a message without a price in a block with a base fee.
    pub check_base_fee: bool,
    /// Disabled in eth_call.
    pub check_block_gas_limit: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            precompiles: None,
            collect: None,
            check_base_fee: true,
            check_block_gas_limit: false,
        }
    }
}

/// Executes a message and leaves the overlay unchanged.
///
/// The fee recipients are not observable after the call, so the Ethereum handler is used for both
/// rule sets.
///
/// # Errors
///
/// `InvalidMessage` if the message cannot start, `DeadlineExceeded` at its limits, or the error of
/// a state read. Nothing is changed in these cases.
pub fn call(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
) -> Result<Outcome> {
    options.limits.check_step(work::message(message))?;
    let transaction = EthereumInput::Transaction(env.transaction(message)?);
    let setup = setup(env, message, options);
    machine::run::<Ethereum>(overlay, setup, transaction).map(Outcome::from).map_err(refusal)
}

/// Executes a message and commits its effects to the overlay.
///
/// # Errors
///
/// `InvalidMessage` if the message cannot start, `DeadlineExceeded` at its limits, or the error of
/// a state read. Nothing is changed in these cases.
pub fn run(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
) -> Result<Outcome> {
    run_collecting(overlay, env, message, options, None)
}

/// `run` for one of several messages. If state is missing, its keys are added to `missing`, the
/// overlay still keeps the effects, and the outcome is not valid.
///
/// # Errors
///
/// As `run`. `StateMissing` if the run did not end, or if `missing` is `None`.
pub(crate) fn run_collecting(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
    missing: Option<&mut Missed>,
) -> Result<Outcome> {
    options.limits.check_step(work::message(message))?;
    let transaction = env.transaction(message)?;
    let nonce = match (overlay.account_or_default(&message.from), &missing) {
        // The run will record this key too.
        (Err(Error::StateMissing(_)), Some(_)) => None,
        (read, _) => read?.map(|account| account.nonce),
    };
    let setup = setup(env, message, options);
    let ran = if env.rules.is_optimism() && message.is_priced() {
        let transaction = OpTransaction {
            base: transaction,
            // There is no signed encoding, hence no L1 fee.
            enveloped_tx: Some(Bytes::new()),
            deposit: Default::default(),
        };
        let input = OptimismInput { transaction, l1: Some(free_of_charge()) };
        machine::run::<Optimism>(overlay, setup, input)
    } else {
        machine::run::<Ethereum>(overlay, setup, EthereumInput::Transaction(transaction))
    };
    let ran = match (ran, missing) {
        (Err(Failure::MissingState(keys, Ok(ran))), Some(missing)) => {
            let Ran { result, state, collected, undefined_opcode, .. } = *ran;
            missing.keys_mut().merge((*keys).clone());
            overlay.commit_unknown(state, *keys);
            return Ok(Outcome::new(result, collected, undefined_opcode));
        }
        (ran, _) => ran.map_err(refusal)?,
    };
    let Ran { result, state, collected, undefined_opcode, .. } = ran;
    overlay.commit(state);
    if nonce == Some(u64::MAX) && message.to.is_some() {
        // Other clients wrap an unchecked nonce; revm leaves it unchanged.
        overlay.apply(message.from, &Override { nonce: Some(0), ..Override::default() })?;
    }
    Ok(Outcome::new(result, collected, undefined_opcode))
}

/// Executes a system call: caller 0xff…fe, 30 million gas, no fees. Returns `None` without effect
/// if the address has no code.
///
/// # Errors
///
/// `InvalidMessage` if the call cannot start, `DeadlineExceeded` at its limits, or the error of a
/// state read. Nothing is changed in these cases.
pub fn system_call(
    overlay: &mut Overlay,
    env: &Env,
    contract: Address,
    data: Bytes,
    limits: Limits,
    precompiles: Option<Arc<PrecompileOverrides>>,
) -> Result<Option<Outcome>> {
    match overlay.account(&contract)? {
        Some(account) if account.has_code() => {}
        _ => return Ok(None),
    }
    let setup = Setup { env, checks: UNCHECKED, limits, precompiles, collect: None };
    let input = EthereumInput::system(contract, data);
    let ran = machine::run::<Ethereum>(overlay, setup, input).map_err(refusal)?;
    let Ran { result, state, collected, undefined_opcode, .. } = ran;
    overlay.commit(state);
    Ok(Some(Outcome::new(result, collected, undefined_opcode)))
}

const UNCHECKED: Checks = Checks {
    nonce: false,
    sender_code: false,
    gas_cap: false,
    block_gas_limit: false,
    base_fee: false,
};

pub(crate) fn setup<'a>(env: &'a Env, message: &Message, options: Options) -> Setup<'a> {
    let Options { limits, precompiles, collect, check_base_fee, check_block_gas_limit } = options;
    let checks = Checks {
        nonce: message.nonce.is_some(),
        base_fee: check_base_fee,
        block_gas_limit: check_block_gas_limit,
        ..UNCHECKED
    };
    Setup { env, checks, limits, precompiles, collect }
}

/// The operator fee values must be set to zero: without an encoding op-revm charges no operator
/// fee, but would refund its unused part.
fn free_of_charge() -> L1BlockInfo {
    L1BlockInfo {
        operator_fee_scalar: Some(U256::ZERO),
        operator_fee_constant: Some(U256::ZERO),
        ..L1BlockInfo::default()
    }
}

pub(crate) fn refusal(failure: Failure) -> Error {
    match failure {
        Failure::Refused(why) => Error::InvalidMessage(why),
        Failure::Broken(error) => error,
        Failure::MissingState(missing, _) => Error::StateMissing(missing),
    }
}

#[cfg(test)]
mod tests;
