//! Strict parsing of hex in JSON-RPC parameters.
//!
//! The prefix is 0x or 0X, digits are of either case. Errors are readable texts.

use alloy_primitives::{Address, B256, U256, hex};

/// Parses a number of at most `bits` bits (up to 256) without leading zeros.
///
/// # Errors
/// The reason as text.
pub fn quantity(text: &[u8], bits: usize) -> Result<U256, String> {
    parse_quantity(text, bits).ok_or_else(|| match text {
        b"" => "empty hex string".into(),
        b"0x" | b"0X" => {
            format!("hex string \"{}\" without digits", String::from_utf8_lossy(text))
        }
        _ => wrong_digits(text).unwrap_or_else(|| match text[2] {
            b'0' => "hex number with leading zero digits".into(),
            _ => format!("hex number > {bits} bits"),
        }),
    })
}

fn parse_quantity(text: &[u8], bits: usize) -> Option<U256> {
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

/// Parses a number of at most 64 bits.
///
/// # Errors
/// The reason as text.
pub fn number(text: &[u8]) -> Result<u64, String> {
    quantity(text, 64).map(|number| number.saturating_to())
}

/// Parses an address of 20 bytes.
///
/// # Errors
/// The reason as text.
pub fn address(text: &[u8]) -> Result<Address, String> {
    fixed(text).map(Address::new).ok_or_else(|| wrong_length(text, 20, "an address"))
}

/// Parses a hash of 32 bytes.
///
/// # Errors
/// The reason as text.
pub fn hash(text: &[u8]) -> Result<B256, String> {
    fixed(text).map(B256::new).ok_or_else(|| wrong_length(text, 32, "a hash"))
}

/// Parses any number of bytes; none for an empty text, as in geth.
///
/// # Errors
/// The reason as text.
pub fn data(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; data_length(text)?];
    match bytes.is_empty() || decode(&text[2..], &mut bytes) {
        true => Ok(bytes),
        false => Err("invalid hex string".into()),
    }
}

/// The number of bytes that the digits encode.
///
/// # Errors
/// The reason as text.
pub fn data_length(text: &[u8]) -> Result<usize, String> {
    match digits(text) {
        None if text.is_empty() => Ok(0),
        Some(digits) if digits.len() % 2 == 0 => Ok(digits.len() / 2),
        _ => Err(wrong_digits(text).unwrap_or_else(|| "hex string of odd length".into())),
    }
}

/// Parses a storage slot: at most 32 bytes, as a number or a hash.
///
/// # Errors
/// The reason as text.
pub fn slot(text: &[u8]) -> Result<U256, String> {
    if let Some(why) = wrong_digits(text) {
        return Err(why);
    }
    let digits = &text[2..];
    let mut padded = [b'0'; 64];
    let Some(first) = padded.len().checked_sub(digits.len()) else {
        return Err("storage key too long (want at most 32 bytes)".into());
    };
    padded[first..].copy_from_slice(digits);
    let mut bytes = [0_u8; 32];
    decode(&padded, &mut bytes);
    Ok(U256::from_be_bytes(bytes))
}

/// Parses exactly `N` bytes.
pub fn fixed<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digits = digits(text)?;
    let mut bytes = [0_u8; N];
    (digits.len() == 2 * N && decode(digits, &mut bytes)).then_some(bytes)
}

/// Decodes the digits into `bytes`. Returns false if a digit is invalid or the length does not
/// match.
pub fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    // Without the length check, the decoder would accept a second prefix.
    digits.len() == 2 * bytes.len() && hex::decode_to_slice(digits, bytes).is_ok()
}

fn digits(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))
}

fn wrong_digits(text: &[u8]) -> Option<String> {
    match digits(text) {
        None => Some("hex string without 0x prefix".into()),
        Some(digits) if !digits.iter().all(u8::is_ascii_hexdigit) => {
            Some("invalid hex string".into())
        }
        Some(_) => None,
    }
}

fn wrong_length(text: &[u8], size: usize, what: &str) -> String {
    let wrong = if text.is_empty() { None } else { wrong_digits(text) };
    wrong.unwrap_or_else(|| {
        let digits = text.len().saturating_sub(2);
        format!("hex string has length {digits}, want {} for {what}", 2 * size)
    })
}
