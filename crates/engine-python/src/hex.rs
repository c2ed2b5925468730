//! Conversion between hex strings and Python values. The caller names the position for errors.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use alloy_primitives::hex;
use foreblock_engine::params::hex as engine;

use crate::convert::{Class, Integer, invalid};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_address, module)?)?;
    module.add_function(wrap_pyfunction!(read_hash, module)?)?;
    module.add_function(wrap_pyfunction!(read_data, module)?)?;
    module.add_function(wrap_pyfunction!(read_slot, module)?)?;
    module.add_function(wrap_pyfunction!(read_quantity, module)?)
}

#[pyfunction]
#[pyo3(signature = (text, argument, path = "", /))]
fn read_address<'py>(
    text: &Bound<'py, PyString>,
    argument: usize,
    path: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, read) = (text.py(), reading(text, engine::address));
    read.map(|it| PyBytes::new(py, it.as_slice())).map_err(|why| bad(py, why, argument, path))
}

#[pyfunction]
#[pyo3(signature = (text, argument, path = "", /))]
fn read_hash<'py>(
    text: &Bound<'py, PyString>,
    argument: usize,
    path: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, read) = (text.py(), reading(text, engine::hash));
    read.map(|it| PyBytes::new(py, it.as_slice())).map_err(|why| bad(py, why, argument, path))
}

#[pyfunction]
#[pyo3(signature = (text, argument, path = "", /))]
fn read_data<'py>(
    text: &Bound<'py, PyString>,
    argument: usize,
    path: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let (py, read) = (text.py(), reading(text, engine::data));
    read.map(|it| PyBytes::new(py, &it)).map_err(|why| bad(py, why, argument, path))
}

#[pyfunction]
#[pyo3(signature = (text, argument, path = "", /))]
fn read_slot(text: &Bound<'_, PyString>, argument: usize, path: &str) -> PyResult<Integer> {
    let read = reading(text, engine::slot);
    read.map(Integer).map_err(|why| bad(text.py(), why, argument, path))
}

/// At most `bits` wide, 256 at most.
#[pyfunction]
#[pyo3(signature = (text, bits, argument, path = "", /))]
fn read_quantity(
    text: &Bound<'_, PyString>,
    bits: usize,
    argument: usize,
    path: &str,
) -> PyResult<Integer> {
    let read = reading(text, |text| engine::quantity(text, bits));
    read.map(Integer).map_err(|why| bad(text.py(), why, argument, path))
}

/// A lone surrogate, which a str may contain, is an invalid hex string.
fn reading<T>(
    text: &Bound<'_, PyString>,
    read: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, String> {
    text.to_str().map_or_else(|_| Err("invalid hex string".into()), |text| read(text.as_bytes()))
}

fn bad(py: Python<'_>, why: String, argument: usize, path: &str) -> PyErr {
    let made = Class(py).call("BadArgument", (why, argument, path));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// Bytes as a JSON string.
pub fn quoted_data<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 2 * data.len() + 4, |text| {
        let (prefix, rest) = text.split_at_mut(3);
        let (digits, quote) = rest.split_at_mut(2 * data.len());
        prefix.copy_from_slice(b"\"0x");
        quote.copy_from_slice(b"\"");
        hex::encode_to_slice(data, digits).map_err(|error| invalid(error.to_string()))
    })
}
