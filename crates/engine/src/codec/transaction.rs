//! Transactions: decoding, sender recovery and hashing.
//!
//! A decoded `Transaction` was in canonical EIP-2718 encoding and its sender was recovered, so
//! `raw`, `hash`, `envelope` and `sender` are always consistent. A simulated transaction
//! (`unsigned`) has the sender given by the caller. Types 0 to 4, the L2 deposit (0x7e) and the
//! post-execution transaction (0x7d) are supported.
//!
//! Validity within a block (chain id, nonce, fees, blob count, activation of the type) is checked
//! by execution. Blob transactions have no sidecar, as in blocks.

mod decode;
mod decoding;
mod envelope;
mod named;
#[cfg(test)]
mod tests;
mod typed;
mod unsigned;

pub use alloy_eips::eip7702::SignedAuthorization;
pub use op_alloy_consensus::TxDeposit;

pub use decode::{
    check, decode, decode_at, decode_known, decode_named, decode_one, deposit, post_exec_of,
};
pub use decoding::{Decoding, decode_all};
pub(crate) use envelope::named_sender;
pub use envelope::{DEPOSIT_TYPE, Envelope, POST_EXEC_TYPE, Signed, Transaction};
pub use named::named;
pub(crate) use typed::typed;
pub use unsigned::{encode_unsigned, unsigned};
