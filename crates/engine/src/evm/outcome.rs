//! The outcome of a run.
//!
//! Reverts and VM failures are outcomes like success. The failure texts are those that clients of
//! Ethereum nodes expect (execution.md §3.5) and must not change.

use std::borrow::Cow;

use alloy_primitives::{Address, Bytes, Log};
use op_revm::OpHaltReason;
use revm::context_interface::result::{
    ExecutionResult, HaltReason, OutOfGasError, Output, ResultGas,
};

use crate::evm::{instructions, machine::Ran, transfers::Collected};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    /// The gas charged: after refunds, at least the data floor.
    pub gas_used: u64,
    /// The gas before refunds, at least the data floor: the run fails with a lower gas limit.
    pub max_gas_used: u64,
    /// The return data, the code of a created contract, or the revert data.
    pub output: Bytes,
    /// The surviving logs, as in a receipt.
    pub logs: Vec<Log>,
    /// The contract created by a successful creation.
    pub created: Option<Address>,
    /// The indices of the logs, if they were collected.
    pub collected: Option<Collected>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Success,
    Revert,
    Halt(Cow<'static, str>),
}

impl Outcome {
    /// Success without any effect.
    pub(crate) fn nothing() -> Self {
        Self {
            status: Status::Success,
            gas_used: 0,
            max_gas_used: 0,
            output: Bytes::new(),
            logs: Vec::new(),
            created: None,
            collected: None,
        }
    }

    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// The collected logs with their indices; `None` if they were not collected.
    pub fn collected_logs(&self) -> Option<impl ExactSizeIterator<Item = (u64, &Log)>> {
        let collected = self.collected.as_ref()?;
        let logs = collected.with_transfers.as_ref().unwrap_or(&self.logs);
        Some(collected.indices.iter().copied().zip(logs))
    }

    pub(crate) fn new(
        result: ExecutionResult<OpHaltReason>,
        mut collected: Option<Collected>,
        undefined_opcode: Option<u8>,
    ) -> Self {
        if let Some(collected) = &mut collected
            && !result.is_success()
        {
            collected.indices.clear();
            collected.with_transfers = collected.with_transfers.take().map(|_| Vec::new());
        }
        let with = |gas: ResultGas| Self {
            status: Status::Success,
            gas_used: gas.tx_gas_used(),
            max_gas_used: gas.total_gas_spent().max(gas.floor_gas()),
            output: Bytes::new(),
            logs: Vec::new(),
            created: None,
            collected,
        };
        match result {
            ExecutionResult::Success { gas, output: Output::Call(output), logs, .. } => {
                Self { output, logs, ..with(gas) }
            }
            // revm returns this for a creation whose sender's nonce cannot be incremented.
            ExecutionResult::Success { gas, output: Output::Create(_, None), .. } => {
                Self { status: Status::Halt(NONCE_OVERFLOW.into()), ..with(gas) }
            }
            ExecutionResult::Success {
                gas, output: Output::Create(output, created), logs, ..
            } => Self { output, logs, created, ..with(gas) },
            ExecutionResult::Revert { gas, output, .. } => {
                Self { status: Status::Revert, output, ..with(gas) }
            }
            ExecutionResult::Halt { reason, gas, .. } => {
                Self { status: Status::Halt(text(reason, undefined_opcode)), ..with(gas) }
            }
        }
    }
}

const NONCE_OVERFLOW: &str = "nonce uint64 overflow";

fn text(reason: OpHaltReason, undefined_opcode: Option<u8>) -> Cow<'static, str> {
    use HaltReason::*;
    let OpHaltReason::Base(reason) = reason else { return "failed deposit".into() };
    match reason {
        OutOfGas(OutOfGasError::InvalidOperand) => "gas uint64 overflow".into(),
        OutOfGas(_) => "out of gas".into(),
        OpcodeNotFound | NotActivated => match undefined_opcode {
            Some(code) => format!("invalid opcode: {}", instructions::name(code)).into(),
            None => "invalid opcode".into(),
        },
        InvalidFEOpcode => "invalid opcode: INVALID".into(),
        InvalidJump => "invalid jump destination".into(),
        StackUnderflow => "stack underflow".into(),
        // Only opcodes that push one item can exceed the stack limit.
        StackOverflow => "stack limit reached 1024 (1023)".into(),
        OutOfOffset => "return data out of bounds".into(),
        CreateCollision => "contract address collision".into(),
        PrecompileError => "precompile failed".into(),
        PrecompileErrorWithContext(why) => precompile_text(why),
        NonceOverflow => NONCE_OVERFLOW.into(),
        CreateContractSizeLimit => "max code size exceeded".into(),
        CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        OverflowPayment => "balance overflow".into(),
        StateChangeDuringStaticCall | CallNotAllowedInsideStatic => "write protection".into(),
        OutOfFunds => "insufficient balance for transfer".into(),
        CallTooDeep => "max call depth exceeded".into(),
    }
}

/// Translates revm's text to geth's; texts without a counterpart are unchanged.
pub(crate) fn precompile_text(why: String) -> Cow<'static, str> {
    match why.as_str() {
        // In geth, inputs of this size run out of gas (EIP-7823).
        "Modexp limit all input sizes." => "out of gas".into(),
        "wrong final indicator flag for blake2" => "invalid final flag".into(),
        "bn254 invalid pair length" => "bad elliptic curve pairing size".into(),
        "mismatched blob version" => "mismatched versioned hash".into(),
        "verifying blob kzg proof failed" => "error verifying kzg proof".into(),
        "bls12-381 fp 64 top bytes of input are not zero" => {
            "invalid field element top bytes".into()
        }
        "bls12-381 g1 point not in correct subgroup" => {
            "g1 point is not on correct subgroup".into()
        }
        "bls12-381 g2 point not in correct subgroup" => {
            "g2 point is not on correct subgroup".into()
        }
        "wrong input length for blake2" | "invalid blob input length" => {
            "invalid input length".into()
        }
        text if text.starts_with("bls12-381") && text.ends_with("input length error") => {
            "invalid input length".into()
        }
        _ => why.into(),
    }
}

impl From<Ran> for Outcome {
    fn from(ran: Ran) -> Self {
        Self::new(ran.result, ran.collected, ran.undefined_opcode)
    }
}
