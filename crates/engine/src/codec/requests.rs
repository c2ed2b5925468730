//! Execution layer requests (EIP-7685): their hash, and deposits in logs (EIP-6110).
//!
//! Withdrawal and consolidation requests are the output of system calls and are not extracted here,
//! only hashed.

use alloy_primitives::{Address, B256, Bytes, Log, U256, b256};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The type byte of deposit requests (EIP-6110).
pub const DEPOSIT_REQUEST_TYPE: u8 = 0x00;

/// keccak("DepositEvent(bytes,bytes,bytes,bytes,bytes)"), EIP-6110.
pub const DEPOSIT_EVENT: B256 =
    b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");

/// The offset of each field's length word in the event data, and the field's length: public key,
/// withdrawal credentials, amount, signature, index (EIP-6110).
const DEPOSIT_FIELDS: [(usize, usize); 5] = [(160, 48), (256, 32), (320, 8), (384, 96), (512, 8)];

/// The length of the event data (EIP-6110).
const DEPOSIT_EVENT_LENGTH: usize = 576;

/// sha256 of the concatenated sha256 of each non-empty request (type byte, then data), in ascending
/// order of type.
pub fn requests_hash<T: AsRef<[u8]>>(requests: &[(u8, T)]) -> B256 {
    let mut requests: Vec<(u8, &[u8])> =
        requests.iter().map(|(kind, data)| (*kind, data.as_ref())).collect();
    requests.retain(|(_, data)| !data.is_empty());
    requests.sort_by_key(|(kind, _)| *kind);
    let mut all = Sha256::new();
    for (kind, data) in requests {
        all.update(Sha256::new().chain_update([kind]).chain_update(data).finalize());
    }
    B256::new(all.finalize().into())
}

/// The data of the block's deposit request: the concatenated deposits in its logs.
///
/// # Errors
///
/// `Undecodable` for a deposit event of the contract that violates the layout of EIP-6110. The
/// block is then invalid.
pub fn deposit_requests<'a>(
    logs: impl IntoIterator<Item = &'a Log>,
    contract: Address,
) -> Result<Bytes> {
    let mut data = Vec::new();
    for log in logs {
        if log.address == contract && log.topics().first() == Some(&DEPOSIT_EVENT) {
            append_deposit(&log.data.data, &mut data)?;
        }
    }
    Ok(data.into())
}

fn append_deposit(event: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if event.len() != DEPOSIT_EVENT_LENGTH {
        return Err(undecodable(format!(
            "{} bytes instead of {DEPOSIT_EVENT_LENGTH}",
            event.len()
        )));
    }
    for (index, (offset, length)) in DEPOSIT_FIELDS.into_iter().enumerate() {
        if word(event, 32 * index) != U256::from(offset) {
            return Err(undecodable(format!("field {index} is not at byte {offset}")));
        }
        if word(event, offset) != U256::from(length) {
            return Err(undecodable(format!("field {index} is not {length} bytes long")));
        }
        out.extend_from_slice(&event[offset + 32..offset + 32 + length]);
    }
    Ok(())
}

fn word(event: &[u8], at: usize) -> U256 {
    U256::from_be_slice(&event[at..at + 32])
}

fn undecodable(why: String) -> Error {
    Error::Undecodable { what: "deposit event", why }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{LogData, address, hex, keccak256};

    use super::*;

    const CONTRACT: Address = address!("00000000219ab540356cbb839cbe05303d7705fa");

    fn event(data: Vec<u8>) -> Log {
        Log { address: CONTRACT, data: LogData::new_unchecked(vec![DEPOSIT_EVENT], data.into()) }
    }

    /// The event data in ABI encoding: five byte strings.
    fn abi(fields: &[Vec<u8>; 5]) -> Vec<u8> {
        let mut offsets = Vec::new();
        let mut tail = Vec::new();
        for field in fields {
            offsets.extend(U256::from(160 + tail.len()).to_be_bytes::<32>());
            tail.extend(U256::from(field.len()).to_be_bytes::<32>());
            tail.extend(field);
            tail.resize(tail.len().next_multiple_of(32), 0);
        }
        [offsets, tail].concat()
    }

    fn deposit(first: u8) -> [Vec<u8>; 5] {
        [48, 32, 8, 96, 8].map(|length| (first..).take(length).collect())
    }

    fn parse(data: Vec<u8>) -> Result<Bytes> {
        deposit_requests(&[event(data)], CONTRACT)
    }

    #[test]
    fn the_event_has_the_hash_of_its_signature() {
        assert_eq!(DEPOSIT_EVENT, keccak256("DepositEvent(bytes,bytes,bytes,bytes,bytes)"));
    }

    #[test]
    fn deposits_are_joined_in_the_order_of_their_logs() {
        let logs = [event(abi(&deposit(1))), event(abi(&deposit(100)))];
        let expected = [deposit(1).concat(), deposit(100).concat()].concat();
        assert_eq!(deposit_requests(&logs, CONTRACT).unwrap(), expected);
    }

    #[test]
    fn other_contracts_and_other_events_are_not_deposits() {
        let mut elsewhere = event(abi(&deposit(1)));
        elsewhere.address = Address::ZERO;
        let mut other = event(vec![1, 2, 3]);
        other.data.topics_mut_unchecked()[0] = B256::ZERO;
        let mut anonymous = event(vec![]);
        anonymous.data.topics_mut_unchecked().clear();
        let logs = [elsewhere, other, anonymous];
        assert_eq!(deposit_requests(&logs, CONTRACT).unwrap(), Bytes::new());
    }

    #[test]
    fn an_event_laid_out_otherwise_is_refused() {
        let good = abi(&deposit(1));
        for length in [0, 575] {
            assert!(parse(good[..length].to_vec()).is_err());
        }
        assert!(parse([&good[..], &[0]].concat()).is_err());
        for word in [0, 32, 64, 96, 128, 160, 256, 320, 384, 512] {
            for byte in [word, word + 31] {
                let mut changed = good.clone();
                changed[byte] ^= 1;
                assert!(parse(changed).is_err(), "byte {byte}");
            }
        }
    }

    #[test]
    fn no_requests_hash_to_sha256_of_nothing() {
        let empty =
            B256::new(hex!("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        assert_eq!(requests_hash::<Bytes>(&[]), empty);
        assert_eq!(requests_hash(&[(0, b""), (1, b""), (2, b"")]), empty);
    }

    #[test]
    fn requests_hash_as_alloy_hashes_them() {
        let requests = [(2, b"two".as_slice()), (0, b"zero"), (1, b"")];
        let mut theirs = alloy_eips::eip7685::Requests::default();
        for (kind, data) in requests {
            theirs.push_request_with_type(kind, data.iter().copied());
        }
        assert_eq!(requests_hash(&requests), theirs.requests_hash());

        let sorted = [(0, b"zero".as_slice()), (2, b"two")];
        assert_eq!(requests_hash(&requests), requests_hash(&sorted));
    }
}
