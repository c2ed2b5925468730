//! Run messages: calls that keep nothing, runs that do, and the system calls of a block.
//!
//! The caller has already judged the message in the order that decides which error
//! wins; what revm still refuses comes back as `Error::InvalidMessage`. Checks that
//! make no sense for a message nobody signed are off: a sender may have code, and the
//! gas limit of one transaction does not apply. The balance is always checked. revm's
//! ways around that and around fees are not used, because they make ether.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes, U256};
use op_revm::{L1BlockInfo, OpTransaction};

use crate::{
    error::{Error, Result},
    evm::{
        deadline::Limits,
        env::Env,
        machine::{
            self, Checks, Ethereum, EthereumInput, Failure, Optimism, OptimismInput, Ran, Setup,
        },
        message::Message,
        outcome::Outcome,
        overlay::{Overlay, Override},
        precompiles::PrecompileOverrides,
        transfers::Collect,
        work,
    },
    missing_keys::Missed,
};

#[derive(Debug, Clone)]
pub struct Options {
    pub limits: Limits,
    pub precompiles: Option<Arc<PrecompileOverrides>>,
    /// Collect the logs with their indices.
    pub collect: Option<Collect>,
    /// Off only for a message without a price in a block with a base fee.
    pub check_base_fee: bool,
    /// Off in eth_call.
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

/// The outcome of a message; the overlay stays as it is.
///
/// Nothing after the call can see who received its fees, so the handler of Ethereum
/// does for both rule sets.
///
/// # Errors
///
/// `InvalidMessage` when it cannot begin, `DeadlineExceeded` at its limits, or what reading
/// the state failed with. Nothing has changed then.
pub fn call(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
) -> Result<Outcome> {
    options.limits.check_step(work::message(message))?;
    let transaction = EthereumInput::Transaction(message.transaction(env)?);
    let setup = setup(env, message, options);
    machine::run::<Ethereum>(overlay, setup, transaction).map(Outcome::from).map_err(refusal)
}

/// The outcome of a message; its effects are kept in the overlay.
///
/// # Errors
///
/// `InvalidMessage` when it cannot begin, `DeadlineExceeded` at its limits, or what reading
/// the state failed with. Nothing has changed then.
pub fn run(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
) -> Result<Outcome> {
    run_collecting(overlay, env, message, options, None)
}

/// The same for one of several messages: what is not known is added to `missing`, the overlay
/// keeps what came of it all the same, and the outcome counts for nothing.
///
/// # Errors
///
/// As `run`; `StateMissing` where it came to nothing at all, or without `missing`.
pub(crate) fn run_collecting(
    overlay: &mut Overlay,
    env: &Env,
    message: &Message,
    options: Options,
    missing: Option<&mut Missed>,
) -> Result<Outcome> {
    options.limits.check_step(work::message(message))?;
    let transaction = message.transaction(env)?;
    let nonce = match (overlay.account_or_default(&message.from), &missing) {
        // The run will miss it too.
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
        // An unchecked nonce wraps in other clients; revm leaves it where it was.
        overlay.apply(message.from, &Override { nonce: Some(0), ..Override::default() })?;
    }
    Ok(Outcome::new(result, collected, undefined_opcode))
}

/// A call by the system itself: its caller is 0xff…fe, its gas 30 million, it pays
/// nothing. `None`, and nothing done, when there is no code at the address.
///
/// # Errors
///
/// `InvalidMessage` when it cannot begin, `DeadlineExceeded` at its limits, or what reading
/// the state failed with. Nothing has changed then.
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
    let input = EthereumInput::System { contract, data };
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

/// The operator's values must be there and zero: without an encoding op-revm takes no
/// operator fee, but would refund the unused part of one.
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
