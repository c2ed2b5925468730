//! Transactions that name their sender instead of being signed, for development chains.
//!
//! Such a transaction is of type 2. Its signature has an even parity, the sender as `r`, and 0 as
//! `s`. No valid signature has `s` = 0, so a signed transaction is never mistaken for one. Only
//! `decode_named` accepts the named sender.

use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Bytes, Signature, U160, U256, keccak256};

use super::envelope::{Envelope, Transaction};
use super::typed::typed;
use crate::error::Result;
use crate::message::Message;

const DYNAMIC_FEE: u8 = 2;

/// Encodes the message as a named transaction with this nonce.
///
/// # Errors
///
/// `InvalidArgument` if the message cannot be a transaction of type 2.
pub fn named(message: &Message, chain_id: u64, nonce: u64) -> Result<Transaction> {
    let r = U256::from(U160::from_be_bytes(message.from.into_array()));
    let typed = typed(message, DYNAMIC_FEE, chain_id, nonce)?;
    let envelope = typed.into_envelope(Signature::new(r, U256::ZERO, false));
    let raw: Bytes = envelope.encoded_2718().into();
    let hash = keccak256(&raw);
    Ok(Transaction { envelope: Envelope::Unsigned(envelope), hash, sender: message.from, raw })
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;

    use super::*;
    use crate::codec::transaction::{Signed, decode, decode_known, decode_named, named_sender};

    fn message(from: Address) -> Message {
        Message { from, to: Some(Address::repeat_byte(1)), gas: 21_000, ..Message::default() }
    }

    #[test]
    fn a_named_sender_is_believed_by_who_is_told_to() {
        for byte in [0x00, 0x01, 0xff] {
            let mut from = Address::repeat_byte(byte);
            from[19] = 0xaa;
            let made = named(&message(from), 7, 3).expect("a transaction");
            assert_eq!(decode_named(&made.raw), Ok(made.clone()));
            assert_eq!(decode_known(&made.raw, from), Ok(made.clone()));
            assert!(decode(&made.raw).is_err());
            assert_eq!((made.sender, made.fields().nonce()), (from, 3));
        }
    }

    #[test]
    fn nothing_else_names_a_sender() {
        let made = named(&message(Address::repeat_byte(9)), 7, 3).expect("a transaction");
        let Envelope::Unsigned(Signed::Eip1559(dynamic)) = &made.envelope else { panic!() };
        let r = dynamic.signature().r();
        let other = |r: U256, s: u64, parity| {
            let signature = Signature::new(r, U256::from(s), parity);
            Signed::new_unhashed(dynamic.tx().clone().into(), signature)
        };
        assert!(named_sender(&other(r, 0, false)).is_some());
        assert!(named_sender(&other(r, 1, false)).is_none());
        assert!(named_sender(&other(r, 0, true)).is_none());
        assert!(named_sender(&other(r + (U256::from(1) << 160), 0, false)).is_none());
        let legacy = typed(&message(Address::ZERO), 0, 7, 3).expect("a transaction");
        let legacy = legacy.into_envelope(Signature::new(r, U256::ZERO, false));
        assert!(named_sender(&legacy).is_none());
        assert!(decode_named(&legacy.encoded_2718()).is_err());
    }
}
