//! Python bindings of the contract ABI.

use alloy_primitives::U256;
use foreblock_engine::abi::{self, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::convert::Integer;
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_call, module)?)?;
    module.add_function(wrap_pyfunction!(decode_output, module)?)?;
    module.add_function(wrap_pyfunction!(revert_reason, module)?)
}

#[pyfunction]
fn encode_call(signature: &str, arguments: Vec<String>) -> PyResult<Vec<u8>> {
    abi::encode_call(signature, &arguments).map_err(to_python)
}

#[pyfunction]
fn decode_output<'py>(
    py: Python<'py>,
    signature: &str,
    output: &[u8],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    all_to_python(py, abi::decode_output(signature, output).map_err(to_python)?)
}

#[pyfunction]
fn revert_reason(output: &[u8]) -> String {
    abi::revert_reason(output).unwrap_or_default()
}

fn all_to_python(py: Python<'_>, values: Vec<Value>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    values.into_iter().map(|value| value_to_python(py, value)).collect()
}

fn value_to_python(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    let bytes = |data: &[u8]| Ok(PyBytes::new(py, data).into_any());
    match value {
        Value::Bool(is_set) => Ok(is_set.into_pyobject(py)?.to_owned().into_any()),
        Value::Int(number, _) => {
            let size = Integer(number.unsigned_abs()).into_pyobject(py)?;
            if number.is_negative() { size.neg() } else { Ok(size) }
        }
        Value::Uint(number, _) => Integer(number).into_pyobject(py),
        Value::FixedBytes(word, size) => bytes(&word[..size.min(U256::BYTES)]),
        Value::Address(address) => bytes(address.as_slice()),
        Value::Function(function) => bytes(function.as_slice()),
        Value::Bytes(data) => bytes(&data),
        Value::String(text) => Ok(text.into_pyobject(py)?.into_any()),
        Value::Array(values) | Value::FixedArray(values) => {
            Ok(PyList::new(py, all_to_python(py, values)?)?.into_any())
        }
        Value::Tuple(values) => Ok(PyTuple::new(py, all_to_python(py, values)?)?.into_any()),
    }
}
