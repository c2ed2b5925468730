//! Python bindings of the outcomes of calls and transactions.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use foreblock_engine::codec::receipt::ReceiptOutcome;
use foreblock_engine::evm::outcome::{Outcome as EngineOutcome, Status};
use foreblock_engine::evm::transact::Executed as EngineExecuted;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::codec::{Log, Receipt};
use crate::convert::{Arg, Integer};
use crate::hex;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Outcome>()?;
    module.add_class::<Executed>()
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
        PyTuple::new(py, self.0.logs.iter().cloned().map(Log))
    }

    /// The logs with their indices, if they were collected.
    #[getter]
    fn collected(&self) -> Option<Vec<(u64, Log)>> {
        let collected = self.0.collected.as_ref()?;
        Some(collected.logs.iter().map(|(index, log)| (*index, Log(log.clone()))).collect())
    }

    fn __repr__(&self) -> String {
        let status = match &self.0.status {
            Status::Halt(why) => format!("halt: {why}"),
            _ => self.status().to_owned(),
        };
        format!("Outcome({status}, gas_used={})", self.0.gas_used)
    }
}

/// An executed transaction of a block.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Executed {
    pub executed: Arc<EngineExecuted>,
    pub tx_type: u8,
}

#[pymethods]
impl Executed {
    #[getter]
    fn gas_used(&self) -> u64 {
        self.executed.outcome.gas_used
    }

    #[getter]
    fn logs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.executed.outcome.logs.iter().cloned().map(Log))
    }

    #[getter]
    fn created<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        Some(PyBytes::new(py, self.executed.outcome.created?.as_slice()))
    }

    #[getter]
    fn l1_fee(&self) -> Integer {
        Integer(self.executed.optimism.map_or(U256::ZERO, |fees| fees.l1_fee))
    }

    #[getter]
    fn operator_fee(&self) -> Integer {
        Integer(self.executed.optimism.map_or(U256::ZERO, |fees| fees.operator_fee))
    }

    #[getter]
    fn da_footprint(&self) -> u64 {
        self.executed.optimism.map_or(0, |fees| fees.da_footprint)
    }

    #[pyo3(signature = (cumulative_gas_used, *, post_state = None, deposit_receipt_version = None))]
    fn receipt(
        &self,
        cumulative_gas_used: Arg<u64>,
        post_state: Option<Arg<B256>>,
        deposit_receipt_version: Option<Arg<u64>>,
    ) -> Receipt {
        let outcome = match post_state {
            Some(root) => ReceiptOutcome::PostState(root.0),
            None => ReceiptOutcome::Status(self.executed.outcome.is_success()),
        };
        let version = deposit_receipt_version.map(|version| version.0);
        Receipt(self.executed.receipt(self.tx_type, cumulative_gas_used.0, outcome, version))
    }
}
