//! Hex text to values, strictly: what a JSON-RPC parameter may look like; and back.
//!
//! Each function that reads gives `None` for a text that is not what it reads. Who asked knows the
//! place of the text and words the refusal; a good text must cost next to nothing.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use alloy_primitives::{U256, hex};

use crate::convert::{Integer, invalid};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_address, module)?)?;
    module.add_function(wrap_pyfunction!(read_hash, module)?)?;
    module.add_function(wrap_pyfunction!(read_data, module)?)?;
    module.add_function(wrap_pyfunction!(read_quantity, module)?)
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_address<'py>(text: &Bound<'py, PyString>) -> Option<Bound<'py, PyBytes>> {
    fixed::<20>(bytes_of(text)?).map(|bytes| PyBytes::new(text.py(), &bytes))
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_hash<'py>(text: &Bound<'py, PyString>) -> Option<Bound<'py, PyBytes>> {
    fixed::<32>(bytes_of(text)?).map(|bytes| PyBytes::new(text.py(), &bytes))
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_data<'py>(text: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(digits) = bytes_of(text).and_then(even_digits) else { return Ok(None) };
    let mut valid = true;
    let bytes = PyBytes::new_with(text.py(), digits.len() / 2, |bytes| {
        valid = decode(digits, bytes);
        Ok(())
    })?;
    Ok(valid.then_some(bytes))
}

/// At most `bits` wide, 256 at most.
#[pyfunction]
#[pyo3(signature = (text, bits, /))]
fn read_quantity(text: &Bound<'_, PyString>, bits: usize) -> Option<Integer> {
    quantity(bytes_of(text)?, bits).map(Integer)
}

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

/// The text as it is compared; half a surrogate pair, which a str may hold, is none.
pub fn bytes_of<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    text.to_str().ok().map(str::as_bytes)
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

/// Bytes as JSON has them.
pub fn quoted_data<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 2 * data.len() + 4, |text| {
        let (prefix, rest) = text.split_at_mut(3);
        let (digits, quote) = rest.split_at_mut(2 * data.len());
        prefix.copy_from_slice(b"\"0x");
        quote.copy_from_slice(b"\"");
        hex::encode_to_slice(data, digits).map_err(|error| invalid(error.to_string()))
    })
}

fn even_digits(text: &[u8]) -> Option<&[u8]> {
    digits(text).filter(|digits| digits.len() % 2 == 0)
}

/// What follows the prefix.
fn digits(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))
}

/// Whether all of them are digits, of either case; `bytes` is half as long.
fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    hex::decode_to_slice(digits, bytes).is_ok()
}
