//! Calls that say no more than who calls whom with what, read from their texts.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, Bytes, U256};
use foreblock_engine::evm::message::Message;
use foreblock_engine::params::plain_calls::parse;
use foreblock_engine::simulate::body::PlainCall;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, Integer};
use crate::json_text::reading;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PlainCalls>()
}

/// Calls that a block can run at once. They are only ever added to.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct PlainCalls(Mutex<Vec<PlainCall>>);

type Call<'py> =
    (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, Integer, Bound<'py, PyBytes>, Option<u64>);

impl PlainCalls {
    pub fn calls(&self) -> MutexGuard<'_, Vec<PlainCall>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl PlainCalls {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    #[pyo3(signature = (sender, to, value, data, gas = None))]
    fn add(
        &self,
        sender: Arg<Address>,
        to: Option<Arg<Address>>,
        value: Arg<U256>,
        data: Arg<Bytes>,
        gas: Option<Arg<u64>>,
    ) {
        let (from, to) = (sender.0, to.map(|to| to.0));
        let message = Message { from, to, value: value.0, data: data.0, ..Message::default() };
        self.calls().push(PlainCall { message, gas: gas.map(|gas| gas.0) });
    }

    #[staticmethod]
    #[pyo3(signature = (json, /))]
    fn read(json: PyBuffer<u8>) -> PyResult<Option<Self>> {
        Ok(reading(&json, parse)?.map(|calls| Self(Mutex::new(calls))))
    }

    #[pyo3(signature = (json, /))]
    fn read_more(&self, json: PyBuffer<u8>) -> PyResult<bool> {
        let read = reading(&json, parse)?;
        let are_calls = read.is_some();
        self.calls().extend(read.into_iter().flatten());
        Ok(are_calls)
    }

    fn __len__(&self) -> usize {
        self.calls().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Arg<usize>) -> PyResult<Call<'py>> {
        let calls = self.calls();
        let Some(PlainCall { message, gas }) = calls.get(index.0) else {
            return Err(PyIndexError::new_err(format!("there are {} calls", calls.len())));
        };
        Ok((
            PyBytes::new(py, message.from.as_slice()),
            message.to.map(|to| PyBytes::new(py, to.as_slice())),
            Integer(message.value),
            PyBytes::new(py, &message.data),
            *gas,
        ))
    }
}
