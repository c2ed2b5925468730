//! Slots and their values, read from JSON at once: an override may bring a hundred thousand.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::{Arg, Integer, invalid};
use crate::hex;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Slots>()?;
    module.add_function(wrap_pyfunction!(read_slots, module)?)
}

/// Slots with their values; of a slot that is there twice the last value counts.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Slots(Vec<(U256, U256)>);

impl Slots {
    fn map(&self) -> BTreeMap<U256, U256> {
        self.0.iter().copied().collect()
    }
}

#[pymethods]
impl Slots {
    #[new]
    fn new(slots: BTreeMap<Slot, Slot>) -> Self {
        Self(slots.into_iter().map(|(slot, value)| (slot.0, value.0)).collect())
    }

    fn items(&self) -> Vec<(Integer, Integer)> {
        self.map().into_iter().map(|(slot, value)| (Integer(slot), Integer(value))).collect()
    }

    fn __len__(&self) -> usize {
        self.map().len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0 || self.map() == other.map()
    }
}

/// What `Overlay.set` takes: a dict, or slots that were made before.
pub struct SlotsArgument(pub Vec<(U256, U256)>);

impl<'py> FromPyObject<'_, 'py> for SlotsArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.cast::<Slots>() {
            Ok(slots) => Ok(Self(slots.get().0.clone())),
            Err(_) => Ok(Self(Slots::new(value.extract()?).0)),
        }
    }
}

/// A slot or its value, in a dict.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(U256);

impl<'py> FromPyObject<'_, 'py> for Slot {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(value.extract::<Arg<U256>>()?.0))
    }
}

#[pyfunction]
#[pyo3(signature = (json, /))]
fn read_slots(json: PyBuffer<u8>) -> PyResult<Option<Slots>> {
    let Some(text) = json.as_slice_ptr() else {
        return Err(invalid("the text must lie in one piece"));
    };
    // SAFETY: the buffer keeps its bytes in place, and nobody writes to them: the interpreter,
    // which every writer needs, is not released while they are read.
    Ok(parse(unsafe { text.as_ref() }).map(Slots))
}

/// Quote, prefix, digits and quote of a word.
const WORD_TEXT: usize = 68;

/// An object of words, written without escapes; `None` for everything else.
fn parse(text: &[u8]) -> Option<Vec<(U256, U256)>> {
    let mut rest = punctuation(text, b'{')?;
    let mut slots = Vec::with_capacity(rest.len() / (2 * WORD_TEXT));
    if let Some(end) = punctuation(rest, b'}') {
        return space(end).is_empty().then_some(slots);
    }
    loop {
        let (slot, after) = word(rest)?;
        let (value, after) = word(punctuation(after, b':')?)?;
        slots.push((slot, value));
        match punctuation(after, b',') {
            Some(more) => rest = more,
            None => return space(punctuation(after, b'}')?).is_empty().then_some(slots),
        }
    }
}

fn word(text: &[u8]) -> Option<(U256, &[u8])> {
    let (quoted, rest) = space(text).split_at_checked(WORD_TEXT)?;
    let text = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some((U256::from_be_bytes(hex::fixed::<32>(text)?), rest))
}

fn punctuation(text: &[u8], sign: u8) -> Option<&[u8]> {
    space(text).strip_prefix(&[sign])
}

/// What follows the white space of JSON, RFC 8259.
fn space(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let count = text.iter().take_while(|byte| is_space(byte)).count();
    &text[count..]
}
