//! Hex text to values, strictly: what a JSON-RPC parameter may look like.
//!
//! Each function gives `None` for a text that is not what it reads. Who asked knows the
//! place of the text and words the refusal; a good text must cost next to nothing.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use alloy_primitives::U256;

use crate::convert::Integer;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_address, module)?)?;
    module.add_function(wrap_pyfunction!(read_hash, module)?)?;
    module.add_function(wrap_pyfunction!(read_data, module)?)?;
    module.add_function(wrap_pyfunction!(read_quantity, module)?)
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_address<'py>(text: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    fixed::<20>(text)
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_hash<'py>(text: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    fixed::<32>(text)
}

#[pyfunction]
#[pyo3(signature = (text, /))]
fn read_data<'py>(text: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let Some(digits) = digits(text.to_str()?) else { return Ok(None) };
    if digits.len() % 2 == 1 {
        return Ok(None);
    }
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
fn read_quantity(text: &Bound<'_, PyString>, bits: usize) -> PyResult<Option<Integer>> {
    Ok(digits(text.to_str()?).and_then(|digits| quantity(digits, bits)).map(Integer))
}

fn quantity(digits: &[u8], bits: usize) -> Option<U256> {
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

fn fixed<'py, const N: usize>(
    text: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut bytes = [0_u8; N];
    match digits(text.to_str()?) {
        Some(digits) if digits.len() == 2 * N && decode(digits, &mut bytes) => {
            Ok(Some(PyBytes::new(text.py(), &bytes)))
        }
        _ => Ok(None),
    }
}

/// What follows the prefix.
fn digits(text: &str) -> Option<&[u8]> {
    let text = text.as_bytes();
    text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))
}

/// Whether all of them are digits, of either case; `bytes` is half as long.
fn decode(digits: &[u8], bytes: &mut [u8]) -> bool {
    alloy_primitives::hex::decode_to_slice(digits, bytes).is_ok()
}
