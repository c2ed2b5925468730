//! Slots and their values, read from JSON at once: an override may bring a hundred thousand.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use foreblock_engine::params::slots::parse;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::convert::{Arg, Integer};
use crate::json_text::reading;

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
    Ok(reading(&json, parse)?.map(Slots))
}
