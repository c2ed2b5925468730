//! Python bindings of the outcomes of calls and transactions.

use std::sync::Arc;

use foreblock_engine::evm::outcome::{Outcome as EngineOutcome, Status};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::codec::{LogFields, log_fields, log_tuple};
use crate::hex;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Outcome>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Outcome(pub Arc<EngineOutcome>);

impl From<EngineOutcome> for Outcome {
    fn from(outcome: EngineOutcome) -> Self {
        Self(Arc::new(outcome))
    }
}

#[pymethods]
impl Outcome {
    #[getter]
    fn status(&self) -> &'static str {
        match self.0.status {
            Status::Success => "success",
            Status::Revert => "revert",
            Status::Halt(_) => "halt",
        }
    }

    #[getter]
    fn halt(&self) -> Option<&str> {
        match &self.0.status {
            Status::Halt(why) => Some(why),
            _ => None,
        }
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.0.gas_used
    }

    #[getter]
    fn max_gas_used(&self) -> u64 {
        self.0.max_gas_used
    }

    #[getter]
    fn output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.output)
    }

    /// The output as a JSON string. Saves two copies in Python.
    #[getter]
    fn quoted_output<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hex::quoted_data(py, &self.0.output)
    }

    #[getter]
    fn logs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        log_tuple(py, &self.0.logs)
    }

    /// The logs with their indices, if they were collected.
    #[getter]
    fn collected<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<(u64, LogFields<'py>)>>> {
        let Some(logs) = self.0.collected_logs() else { return Ok(None) };
        let one = |(index, log)| Ok((index, log_fields(py, log)?));
        logs.map(one).collect::<PyResult<_>>().map(Some)
    }

    fn __repr__(&self) -> String {
        let status = match &self.0.status {
            Status::Halt(why) => format!("halt: {why}"),
            _ => self.status().to_owned(),
        };
        format!("Outcome({status}, gas_used={})", self.0.gas_used)
    }
}
