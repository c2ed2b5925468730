//! Calls that say no more than who calls whom with what, read from their texts.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, Bytes, U256};
use foreblock_engine::body::PlainCall;
use foreblock_engine::json_text::Text;
use foreblock_engine::message::Message;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, Integer};
use crate::hex;
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

/// An array of call objects; `None` for everything else.
pub fn parse(text: &[u8]) -> Option<Vec<PlainCall>> {
    let mut text = Text::new(text);
    let mut calls = Vec::new();
    text.list(*b"[]", |text| {
        calls.push(Texts::parse(text)?.read()?);
        Some(())
    })?;
    text.end()?;
    Some(calls)
}

/// What JSON says of a call.
#[derive(Default)]
struct Texts<'a> {
    sender: Option<&'a [u8]>,
    to: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
    gas: Option<&'a [u8]>,
}

impl<'a> Texts<'a> {
    /// The texts of an object that says nothing twice and nothing else; null says nothing.
    fn parse(text: &mut Text<'a>) -> Option<Self> {
        let mut texts = Self::default();
        text.list(*b"{}", |text| {
            let field = match text.string()? {
                b"from" => &mut texts.sender,
                b"to" => &mut texts.to,
                b"value" => &mut texts.value,
                b"data" | b"input" => &mut texts.data,
                b"gas" => &mut texts.gas,
                _ => return None,
            };
            text.sign(b':')?;
            match text.word(b"null") {
                None => field.replace(text.string()?).is_none().then_some(()),
                Some(()) => field.is_none().then_some(()),
            }
        })?;
        Some(texts)
    }

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
fn optional<T>(text: Option<&[u8]>, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => read(text).map(Some),
    }
}
