//! Calls that say no more than who calls whom with what, read from their texts.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, Bytes, U256};
use foreblock_engine::body::PlainCall;
use foreblock_engine::message::Message;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::convert::{Arg, Integer};
use crate::hex;

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

    #[pyo3(signature = (sender, to, value, data, gas, /))]
    fn read(
        &self,
        sender: Option<&Bound<'_, PyString>>,
        to: Option<&Bound<'_, PyString>>,
        value: Option<&Bound<'_, PyString>>,
        data: Option<&Bound<'_, PyString>>,
        gas: Option<&Bound<'_, PyString>>,
    ) -> PyResult<bool> {
        let read = Texts {
            sender: sender.map(|text| text.to_str()).transpose()?,
            to: to.map(|text| text.to_str()).transpose()?,
            value: value.map(|text| text.to_str()).transpose()?,
            data: data.map(|text| text.to_str()).transpose()?,
            gas: gas.map(|text| text.to_str()).transpose()?,
        }
        .read();
        let is_call = read.is_some();
        self.calls().extend(read);
        Ok(is_call)
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

/// What JSON says of a call.
struct Texts<'a> {
    sender: Option<&'a str>,
    to: Option<&'a str>,
    value: Option<&'a str>,
    data: Option<&'a str>,
    gas: Option<&'a str>,
}

impl Texts<'_> {
    fn read(&self) -> Option<PlainCall> {
        let message = Message {
            from: optional(self.sender, hex::fixed)?.map(Address::new).unwrap_or_default(),
            to: optional(self.to, hex::fixed)?.map(Address::new),
            value: optional(self.value, |text| hex::quantity(text, 256))?.unwrap_or_default(),
            data: optional(self.data, hex::data)?.unwrap_or_default().into(),
            ..Message::default()
        };
        let gas = optional(self.gas, |text| hex::quantity(text, 64))?;
        Some(PlainCall { message, gas: gas.map(|gas| gas.saturating_to()) })
    }
}

/// What is read of a text that is there; `None` when it cannot be read.
fn optional<T>(text: Option<&str>, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => read(text.as_bytes()).map(Some),
    }
}
