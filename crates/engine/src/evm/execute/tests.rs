//! Messages on both rule sets.

mod forks;
mod messages;
mod precompiles;
mod stops;
mod transfers;

use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use revm::bytecode::opcode as op;

use super::*;
use crate::{
    evm::{
        outcome::Status,
        rules::Rules,
        transfers::{TRANSFER_ADDRESS, TRANSFER_TOPIC},
    },
    message::Fees,
    testing::{
        Asm, ETHER, ETHEREUM_FORKS, MemoryState, OPTIMISM_FORKS, addr, env, env_with, ethereum,
        fields, init_code, optimism, precompile,
    },
};

const SENDER: Address = Address::repeat_byte(0x11);
const CONTRACT: Address = Address::repeat_byte(0xc0);
const GAS: u64 = 5_000_000;

fn message(to: Address) -> Message {
    Message { from: SENDER, to: Some(to), gas: GAS, ..Message::default() }
}

fn state(code: impl Into<Bytes>) -> MemoryState {
    MemoryState::default().fund(SENDER, 100 * ETHER).contract(CONTRACT, code)
}

fn call_code(rules: Rules, code: impl Into<Bytes>) -> Outcome {
    let mut overlay = state(code).overlay();
    call(&mut overlay, &env(rules), &message(CONTRACT), Options::default()).expect("runs")
}

fn halt(outcome: &Outcome) -> &str {
    match &outcome.status {
        Status::Halt(text) => text,
        other => panic!("expected a halt, found {other:?}"),
    }
}

fn word(outcome: &Outcome) -> U256 {
    assert_eq!(outcome.status, Status::Success);
    U256::from_be_slice(&outcome.output)
}

fn all_rules() -> Vec<(&'static str, Rules)> {
    let ethereum = ETHEREUM_FORKS.map(|fork| (fork, ethereum(fork)));
    let optimism = OPTIMISM_FORKS.map(|fork| (fork, optimism(fork)));
    ethereum.into_iter().chain(optimism).collect()
}
