//! Hex text to values, strictly: what a JSON-RPC parameter may look like.
//!
//! Each function gives `None` for a text that is not what it reads. Who asked knows the place of
//! the text and words the refusal; a good text must cost next to nothing.

use alloy_primitives::{U256, hex};

/// A number of at most so many bits, 256 at most.
pub fn quantity(text: &[u8], bits: usize) -> Option<U256> {
    let digits = digits(text)?;
    if digits.is_empty() || digits.len() > 64 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut padded = [b'0'; 64];
    padded[64 - digits.len()..].copy_from_slice(digits);
    let mut bytes = [0_u8; 32];
    if !decode(&padded, &mut bytes) {
        return None;
    }
    let number = U256::from_be_bytes(bytes);
    (number.bit_len() <= bits).then_some(number)
}

/// So many bytes: an address, a hash.
pub fn fixed<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digits = digits(text)?;
    let mut bytes = [0_u8; N];
    (digits.len() == 2 * N && decode(digits, &mut bytes)).then_some(bytes)
}

/// Any number of bytes.
pub fn data(text: &[u8]) -> Option<Vec<u8>> {
    let digits = even_digits(text)?;
    let mut bytes = vec![0; digits.len() / 2];
    decode(digits, &mut bytes).then_some(bytes)
}

/// The digits of whole bytes, after their prefix.
pub fn even_digits(text: &[u8]) -> Option<&[u8]> {
    digits(text).filter(|digits| digits.len() % 2 == 0)
}

/// What follows the prefix.
fn digits(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))
}

/// Whether all of them are digits, of either case; `bytes` is half as long.
pub fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    hex::decode_to_slice(digits, bytes).is_ok()
}
