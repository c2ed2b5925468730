//! Upper bounds on the duration of the steps of a run, in nanoseconds.
//!
//! They decide when to check the clock and which steps not to start; no result depends on them.
//! They were measured on the machine named in `docs/performance.md` and rounded up; `make check
//! NAME=abuse` verifies the resulting limits for each kind of step. Opcodes that are not listed
//! take about one nanosecond per gas and are counted by gas (`deadline`).

use alloy_primitives::{Address, U256};
use revm::precompile::u64_to_address;

use crate::message::Message;

/// 256-bit division and remainder.
pub(crate) const DIVIDE: u64 = 60;
/// ADDMOD and MULMOD.
pub(crate) const MODULAR: u64 = 100;
/// A slot, balance or code size that the run has already loaded.
pub(crate) const WARM: u64 = 150;
/// A lookup in the store: an account, a slot, a block hash.
pub(crate) const LOOKUP: u64 = 2_500;
/// A call or creation, excluding copies and including the code before its first jump.
pub(crate) const FRAME: u64 = 10_000;

/// The most that any instruction takes per unit of remaining gas; hashing reaches it.
pub(crate) const MOST_FOR_GAS: u64 = 32;

/// EXP: squarings and multiplications per byte of the exponent.
pub(crate) fn power(exponent: &U256) -> u64 {
    100 + 200 * exponent.byte_len() as u64
}

pub(crate) fn hash(bytes: u64) -> u64 {
    300_u64.saturating_add(bytes.saturating_mul(3))
}

pub(crate) fn copy(bytes: u64) -> u64 {
    50 + bytes / 4
}

/// Growth of memory by zeroed bytes.
pub(crate) fn growth(bytes: u64) -> u64 {
    bytes / 3
}

/// Loaded code: it is copied, and may run without a jump.
pub(crate) fn code(bytes: usize) -> u64 {
    1_000 + 3 * bytes as u64 / 2
}

/// Init code: hashed, analysed and executed.
pub(crate) fn creation(bytes: u64) -> u64 {
    hash(bytes).saturating_add(bytes.saturating_mul(3)).saturating_add(FRAME)
}

/// The work of a message before its first instruction: recovering signers, counting data, warming
/// addresses and slots.
pub(crate) fn message(message: &Message) -> u64 {
    let slots: usize = message.access_list.iter().map(|item| 1 + item.storage_keys.len()).sum();
    let fixed = RECOVERY * message.authorization_list.len() as u64 + WARM * slots as u64;
    let data = message.data.len() as u64;
    fixed + if message.to.is_none() { creation(data) } else { data }
}

/// Recovering the signer of one signature.
const RECOVERY: u64 = 60_000;

/// Time per unit of gas of a precompile.
pub(crate) fn precompile(address: &Address) -> u64 {
    match *address {
        ECRECOVER => 20,
        SHA256 | RIPEMD160 => 15,
        IDENTITY => 4,
        P256VERIFY => 90,
        // Pairings, curve operations, modexp and the rest were measured at 5 to 22.
        _ => 35,
    }
}

const ECRECOVER: Address = u64_to_address(1);
const SHA256: Address = u64_to_address(2);
const RIPEMD160: Address = u64_to_address(3);
const IDENTITY: Address = u64_to_address(4);
const P256VERIFY: Address = u64_to_address(0x100);
