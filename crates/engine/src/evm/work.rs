//! What the parts of a run take at most, in nanoseconds.
//!
//! Estimates from above, for deciding when to look at the clock and what not to begin;
//! no result depends on them. They were measured on the machine that
//! `docs/performance.md` names and rounded up; `make check NAME=abuse` holds the whole to its
//! promise, kind by kind. Opcodes that are not here take about a
//! nanosecond for each gas they cost, and are counted by that (`deadline`).

use alloy_primitives::{Address, U256};
use revm::precompile::u64_to_address;

use crate::evm::message::Message;

/// Division and remainder of 256 bits.
pub(crate) const DIVIDE: u64 = 60;
/// ADDMOD and MULMOD.
pub(crate) const MODULAR: u64 = 100;
/// A slot, a balance or a size that is known to the run already.
pub(crate) const WARM: u64 = 150;
/// What is looked up in the store: an account, a slot, a hash of a block.
pub(crate) const LOOKUP: u64 = 2_500;
/// A call or a creation without what it copies; the code it runs before its first jump.
pub(crate) const FRAME: u64 = 10_000;

/// What an instruction takes for each gas that is left, at most: hashing does.
pub(crate) const MOST_FOR_GAS: u64 = 32;

/// EXP: squarings and products for each byte of the exponent.
pub(crate) fn power(exponent: &U256) -> u64 {
    100 + 200 * exponent.byte_len() as u64
}

pub(crate) fn hash(bytes: u64) -> u64 {
    300_u64.saturating_add(bytes.saturating_mul(3))
}

pub(crate) fn copy(bytes: u64) -> u64 {
    50 + bytes / 4
}

/// Memory that a frame gets anew, all zeros.
pub(crate) fn growth(bytes: u64) -> u64 {
    bytes / 3
}

/// Code that was looked up: it is copied, and may be run without a jump.
pub(crate) fn code(bytes: usize) -> u64 {
    1_000 + 3 * bytes as u64 / 2
}

/// Code that is about to create a contract: hashed, analysed and run.
pub(crate) fn creation(bytes: u64) -> u64 {
    hash(bytes).saturating_add(bytes.saturating_mul(3)).saturating_add(FRAME)
}

/// What a message takes before its first instruction: signers are recovered, data is
/// counted, addresses and slots are made warm.
pub(crate) fn message(message: &Message) -> u64 {
    let slots: usize = message.access_list.iter().map(|item| 1 + item.storage_keys.len()).sum();
    let fixed = RECOVERY * message.authorization_list.len() as u64 + WARM * slots as u64;
    let data = message.data.len() as u64;
    fixed + if message.to.is_none() { creation(data) } else { data }
}

/// To recover the signer of a signature.
const RECOVERY: u64 = 60_000;

/// A precompile, for each gas that it costs.
pub(crate) fn precompile(address: &Address) -> u64 {
    match *address {
        ECRECOVER => 20,
        SHA256 | RIPEMD160 => 15,
        IDENTITY => 4,
        P256VERIFY => 90,
        // Pairings, curves, powers and the rest take 5 to 22.
        _ => 35,
    }
}

const ECRECOVER: Address = u64_to_address(1);
const SHA256: Address = u64_to_address(2);
const RIPEMD160: Address = u64_to_address(3);
const IDENTITY: Address = u64_to_address(4);
const P256VERIFY: Address = u64_to_address(0x100);
