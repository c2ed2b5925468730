//! Hex text to values of Python, and back. The engine reads; what it cannot read is `None`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use alloy_primitives::hex;
use foreblock_engine::params::hex::{decode, even_digits, fixed, quantity};

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

/// The text as it is compared; half a surrogate pair, which a str may hold, is none.
pub fn bytes_of<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    text.to_str().ok().map(str::as_bytes)
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
