//! Fuzzes the hex parsers: data, words and numbers.

use alloy_primitives::U256;
use foreblock_engine::params::hex;

pub fn run(text: &[u8]) {
    let digits = digits(text);
    let bytes = digits.and_then(bytes);
    let data = if text.is_empty() { Some(Vec::new()) } else { bytes.clone() };
    assert_eq!(hex::data(text).ok(), data);
    let word = bytes.as_ref().and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok());
    assert_eq!(hex::fixed::<32>(text), word);
    let address = bytes.and_then(|bytes| <[u8; 20]>::try_from(bytes.as_slice()).ok());
    assert_eq!(hex::fixed::<20>(text), address);
    for bits in [8, 64, 256] {
        assert_eq!(
            hex::quantity(text, bits).ok(),
            digits.and_then(|digits| quantity(digits, bits))
        );
    }
}

/// The text after the prefix, if all of it is ASCII.
fn digits(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).filter(|rest| rest.is_ascii())
}

/// Parses whole bytes.
pub fn bytes(digits: &str) -> Option<Vec<u8>> {
    if digits.len() % 2 == 1 {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| byte(&digits[at..at + 2])).collect()
}

fn byte(pair: &str) -> Option<u8> {
    // `from_str_radix` would accept a sign.
    pair.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u8::from_str_radix(pair, 16).ok()
}

/// Parses a number without leading zeros.
pub fn quantity(digits: &str, bits: usize) -> Option<U256> {
    let is_short = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
    let all = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_short || !all || digits.len() > 64 {
        return None;
    }
    let number = U256::from_str_radix(digits, 16).ok()?;
    (number.bit_len() <= bits).then_some(number)
}
