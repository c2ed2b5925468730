//! JSON of headers, numbers, bytes and texts.
//!
//! All functions append to a buffer, because a block contains hundreds of numbers and hashes.

use alloy_primitives::{U256, hex};

use crate::codec::{block::Withdrawal, header::Header};

/// Writes the members of a block object that derive from its header, without braces. `size` is that
/// of the block.
pub fn header(out: &mut Vec<u8>, header: &Header, size: Option<usize>) {
    member(out, b"\"number\":", |out| quantity(out, header.number));
    member(out, b",\"hash\":", |out| data(out, header.hash()));
    member(out, b",\"parentHash\":", |out| data(out, header.parent_hash));
    member(out, b",\"nonce\":", |out| data(out, header.nonce));
    member(out, b",\"sha3Uncles\":", |out| data(out, header.ommers_hash));
    member(out, b",\"logsBloom\":", |out| data(out, header.logs_bloom));
    member(out, b",\"transactionsRoot\":", |out| data(out, header.transactions_root));
    member(out, b",\"stateRoot\":", |out| data(out, header.state_root));
    member(out, b",\"receiptsRoot\":", |out| data(out, header.receipts_root));
    member(out, b",\"miner\":", |out| data(out, header.beneficiary));
    member(out, b",\"difficulty\":", |out| wide_quantity(out, header.difficulty));
    member(out, b",\"mixHash\":", |out| data(out, header.mix_hash));
    member(out, b",\"extraData\":", |out| data(out, &header.extra_data));
    optional(out, b",\"size\":", size.map(|size| size as u64), quantity);
    member(out, b",\"gasLimit\":", |out| quantity(out, header.gas_limit));
    member(out, b",\"gasUsed\":", |out| quantity(out, header.gas_used));
    member(out, b",\"timestamp\":", |out| quantity(out, header.timestamp));
    optional(out, b",\"timestampMs\":", header.timestamp_ms(), quantity);
    optional(out, b",\"baseFeePerGas\":", header.base_fee_per_gas, quantity);
    optional(out, b",\"withdrawalsRoot\":", header.withdrawals_root, data);
    optional(out, b",\"blobGasUsed\":", header.blob_gas_used, quantity);
    optional(out, b",\"excessBlobGas\":", header.excess_blob_gas, quantity);
    optional(out, b",\"parentBeaconBlockRoot\":", header.parent_beacon_block_root, data);
    optional(out, b",\"requestsHash\":", header.requests_hash, data);
}

pub fn withdrawal(out: &mut Vec<u8>, withdrawal: &Withdrawal) {
    member(out, b"{\"index\":", |out| quantity(out, withdrawal.index));
    member(out, b",\"validatorIndex\":", |out| quantity(out, withdrawal.validator_index));
    member(out, b",\"address\":", |out| data(out, withdrawal.address));
    member(out, b",\"amount\":", |out| quantity(out, withdrawal.amount));
    out.push(b'}');
}

/// Writes an array, each item by `item`.
pub fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (place, each) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        item(out, each);
    }
    out.push(b']');
}

/// Writes bytes as a quoted hex string.
pub fn data(out: &mut Vec<u8>, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    out.extend_from_slice(b"\"0x");
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    // Fails only if the lengths differ.
    let _ = hex::encode_to_slice(bytes, &mut out[start..]);
    out.push(b'"');
}

/// Writes a number as a quoted hex quantity.
pub fn quantity(out: &mut Vec<u8>, number: u64) {
    wide_quantity(out, U256::from(number));
}

/// Like `quantity`, for numbers of up to 256 bits.
pub fn wide_quantity(out: &mut Vec<u8>, number: U256) {
    let mut digits = hex::Buffer::<32>::new();
    let digits = digits.format(&number.to_be_bytes()).as_bytes();
    let first = (number.leading_zeros() / 4).min(digits.len() - 1);
    out.extend_from_slice(b"\"0x");
    out.extend_from_slice(&digits[first..]);
    out.push(b'"');
}

/// Writes a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\r' => out.extend_from_slice(b"\\r"),
            control if (control as u32) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", control as u32).as_bytes());
            }
            other => {
                let mut buffer = [0; 4];
                out.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

pub(crate) fn member(out: &mut Vec<u8>, name: &[u8], value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(name);
    value(out);
}

pub(crate) fn optional<T>(
    out: &mut Vec<u8>,
    name: &[u8],
    value: Option<T>,
    write: impl FnOnce(&mut Vec<u8>, T),
) {
    if let Some(value) = value {
        member(out, name, |out| write(out, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn quantities_have_no_leading_zeros_and_zero_has_one_digit() {
        assert_eq!(text(|out| quantity(out, 0)), "\"0x0\"");
        assert_eq!(text(|out| quantity(out, 0x0fed)), "\"0xfed\"");
        assert_eq!(text(|out| quantity(out, u64::MAX)), "\"0xffffffffffffffff\"");
        let widest = format!("\"0x{}\"", "f".repeat(64));
        assert_eq!(text(|out| wide_quantity(out, U256::MAX)), widest);
    }

    #[test]
    fn data_has_two_digits_a_byte() {
        assert_eq!(text(|out| data(out, [])), "\"0x\"");
        assert_eq!(text(|out| data(out, [0, 0xab])), "\"0x00ab\"");
    }

    #[test]
    fn strings_are_escaped() {
        let written = text(|out| string(out, "a\"b\\c\u{8}\t\n\u{c}\r\u{1}é"));
        assert_eq!(written, r#""a\"b\\c\b\t\n\f\r\u0001é""#);
    }

    #[test]
    fn arrays_have_commas_between_their_items() {
        assert_eq!(text(|out| array(out, [] as [u64; 0], quantity)), "[]");
        assert_eq!(text(|out| array(out, [1, 2], quantity)), "[\"0x1\",\"0x2\"]");
    }
}
