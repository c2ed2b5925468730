//! Unsigned transactions, as returned by eth_simulateV1.
//!
//! They are encoded and hashed like signed ones with a zero signature. A legacy one also has `v` =
//! 0, which is never valid, so it cannot be decoded.

use alloy_consensus::{TxLegacy, transaction::RlpEcdsaEncodableTx};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Bytes, Signature, U256, keccak256};
use alloy_rlp::{EMPTY_LIST_CODE, EMPTY_STRING_CODE, Encodable, Header};

use super::typed::{Typed, typed};
use super::{Envelope, Signed, Transaction};
use crate::error::{Error, Result};
use crate::message::Message;

const ACCESS_LIST: u8 = 1;
const DYNAMIC_FEE: u8 = 2;

/// Converts the message to a transaction of type `tx_type` (0, 2, 3 or 4) with this nonce.
///
/// Message fields that the type does not have are ignored.
///
/// # Errors
///
/// `InvalidArgument` for other types, or for a contract creation if the type does not support it.
pub fn unsigned(message: &Message, tx_type: u8, chain_id: u64, nonce: u64) -> Result<Transaction> {
    let envelope = envelope(message, tx_type, chain_id, nonce)?;
    let raw = encode(&envelope);
    let hash = keccak256(&raw);
    Ok(Transaction { envelope: Envelope::Unsigned(envelope), hash, sender: message.from, raw })
}

/// The encoding of the same transaction, without computing its hash.
///
/// # Errors
///
/// `InvalidArgument` for other types, or for a contract creation if the type does not support it.
pub fn encode_unsigned(message: &Message, tx_type: u8, chain_id: u64, nonce: u64) -> Result<Bytes> {
    match tx_type == DYNAMIC_FEE && message.access_list.is_empty() {
        true => Ok(encode_dynamic_fee(message, chain_id, nonce)),
        false => Ok(encode(&envelope(message, tx_type, chain_id, nonce)?)),
    }
}

/// The encoding without an access list, as of most calls, in two passes over the fields.
fn encode_dynamic_fee(message: &Message, chain_id: u64, nonce: u64) -> Bytes {
    // The access list and the parts of the signature.
    const END: [u8; 4] = [EMPTY_LIST_CODE, EMPTY_STRING_CODE, EMPTY_STRING_CODE, EMPTY_STRING_CODE];
    let (max_fee, max_priority_fee) = message.fees.caps();
    let Message { gas, value, data, .. } = message;
    let numbers = [chain_id.into(), nonce.into(), max_priority_fee, max_fee, u128::from(*gas)];
    let to = message.to.as_ref().map_or(&[][..], |to| to.as_slice());
    let lengths = numbers.iter().map(Encodable::length).sum::<usize>();
    let payload_length = lengths + to.length() + value.length() + data.length() + END.len();
    let header = Header { list: true, payload_length };
    let mut out = Vec::with_capacity(1 + header.length_with_payload());
    out.push(DYNAMIC_FEE);
    header.encode(&mut out);
    numbers.iter().for_each(|number| number.encode(&mut out));
    to.encode(&mut out);
    value.encode(&mut out);
    data.encode(&mut out);
    out.extend_from_slice(&END);
    out.into()
}

fn envelope(message: &Message, tx_type: u8, chain_id: u64, nonce: u64) -> Result<Signed> {
    if tx_type == ACCESS_LIST {
        return Err(Error::invalid("no call makes a transaction of type 1"));
    }
    let mut typed = typed(message, tx_type, chain_id, nonce)?;
    if let Typed::Legacy(legacy) = &mut typed {
        legacy.chain_id = None;
    }
    Ok(typed.into_envelope(Signature::new(U256::ZERO, U256::ZERO, false)))
}

fn encode(envelope: &Signed) -> Bytes {
    match envelope {
        Signed::Legacy(legacy) => encode_legacy(legacy.tx()),
        typed => typed.encoded_2718().into(),
    }
}

fn encode_legacy(transaction: &TxLegacy) -> Bytes {
    const ZERO: u8 = 0;
    let payload_length = transaction.rlp_encoded_fields_length() + 3 * ZERO.length();
    let mut out = Vec::with_capacity(payload_length + 9);
    Header { list: true, payload_length }.encode(&mut out);
    transaction.rlp_encode_fields(&mut out);
    [ZERO; 3].iter().for_each(|zero| zero.encode(&mut out));
    out.into()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256, b256, hex};
    use proptest::{array, collection::vec, prelude::*};

    use super::*;
    use crate::{codec::transaction::decode, message::Fees};

    fn message() -> Message {
        Message {
            from: Address::repeat_byte(0xc0),
            to: Some(Address::repeat_byte(0xc1)),
            value: U256::from(1000),
            data: Bytes::from_static(&[1, 2]),
            gas: 21_000,
            ..Message::default()
        }
    }

    proptest! {
        #[test]
        fn a_plain_call_is_encoded_as_the_transaction_it_is_shown_as(
            to in any::<Option<[u8; 20]>>(),
            value in any::<[u64; 4]>(),
            data in vec(any::<u8>(), 0..80),
            numbers in array::uniform4(any::<u64>()),
            shift in 0..64u32,
            caps in any::<Option<(u128, u128)>>(),
        ) {
            let [gas, nonce, chain_id, _] = numbers.map(|number| number >> shift);
            let fees = match caps {
                Some((fee, tip)) => Fees::Dynamic {
                    max_fee_per_gas: fee >> shift,
                    max_priority_fee_per_gas: tip >> (2 * shift),
                },
                None => Fees::Legacy { gas_price: u128::from(numbers[3]) },
            };
            let (to, value) = (to.map(Address::new), U256::from_limbs(value) >> (4 * shift));
            let message = Message { to, value, data: data.into(), gas, fees, ..message() };
            let shown = unsigned(&message, DYNAMIC_FEE, chain_id, nonce).expect("a transaction");
            prop_assert_eq!(
                encode_unsigned(&message, DYNAMIC_FEE, chain_id, nonce), Ok(shown.raw)
            );
        }
    }

    #[test]
    fn a_legacy_one_ends_in_three_zeros() {
        let made = unsigned(&message(), 0, 1, 7).expect("a transaction");
        let list = hex!(
            "e3 07 80 825208 94c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1 8203e8 820102 80 80 80"
        );
        assert_eq!(made.raw, list[..].to_vec());
        assert_eq!(made.hash, keccak256(list));
        assert_eq!((made.v(), made.fields().chain_id()), (0, None));
        assert!(decode(&made.raw).is_err());
    }

    #[test]
    fn a_creation_with_no_fields_has_the_hash_that_is_published_for_it() {
        // Case ethSimulate-no-fields-call of the public suite.
        let empty = Message { gas: 50_000_000, ..Message::default() };
        let made = unsigned(&empty, 2, 3503995874084926, 0).expect("a transaction");
        assert_eq!(made.fields().ty(), 2);
        assert_eq!(made.hash, NO_FIELDS);
    }

    const NO_FIELDS: B256 =
        b256!("0xaab6995ceb3fb6183ef81e8cdaa904e2c96f3907215d19771607e47dec9f8c14");

    #[test]
    fn what_needs_a_recipient_is_refused_without_one() {
        let create = Message { to: None, ..message() };
        assert!(unsigned(&create, 2, 1, 0).is_ok());
        assert!(unsigned(&create, 3, 1, 0).is_err());
        assert!(unsigned(&create, 4, 1, 0).is_err());
        assert!(unsigned(&message(), 1, 1, 0).is_err());
    }
}
