//! Receipts and logs, created by execution or by Python. A log is a tuple in Python.

use alloy_primitives::{Address, B256, Bytes, Log};
use foreblock_engine::codec::receipt::{self as engine, ReceiptOutcome};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::convert::{Arg, Triple, invalid};

/// A log of a transaction: address, topics, data.
type LogTuple = Triple<Arg<Address>, Vec<Arg<B256>>, Arg<Bytes>>;

fn log(Triple(address, topics, data): LogTuple) -> PyResult<Log> {
    let topics: Vec<B256> = topics.into_iter().map(|topic| topic.0).collect();
    let count = topics.len();
    Log::new(address.0, topics, data.0)
        .ok_or_else(|| invalid(format!("a log has at most 4 topics, not {count}")))
}

pub type LogFields<'py> = ([u8; 20], Bound<'py, PyTuple>, Bound<'py, PyBytes>);

pub fn log_fields<'py>(py: Python<'py>, log: &Log) -> PyResult<LogFields<'py>> {
    let topics = PyTuple::new(py, log.topics().iter().map(|topic| topic.0))?;
    Ok((log.address.into_array(), topics, PyBytes::new(py, &log.data.data)))
}

pub fn log_tuple<'py>(py: Python<'py>, logs: &[Log]) -> PyResult<Bound<'py, PyTuple>> {
    let logs = logs.iter().map(|log| log_fields(py, log)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, logs)
}

/// A receipt in consensus encoding.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct Receipt(pub engine::Receipt);

#[pymethods]
impl Receipt {
    #[new]
    #[pyo3(signature = (
        *, r#type, cumulative_gas_used, status = None, post_state = None, logs = vec![],
        deposit_nonce = None, deposit_receipt_version = None,
    ))]
    fn new(
        r#type: Arg<u8>,
        cumulative_gas_used: Arg<u64>,
        status: Option<bool>,
        post_state: Option<Arg<B256>>,
        logs: Vec<LogTuple>,
        deposit_nonce: Option<Arg<u64>>,
        deposit_receipt_version: Option<Arg<u64>>,
    ) -> PyResult<Self> {
        let outcome = match (status, post_state) {
            (Some(success), None) => ReceiptOutcome::Status(success),
            (None, Some(root)) => ReceiptOutcome::PostState(root.0),
            _ => return Err(invalid("a receipt has either a status or a post state")),
        };
        Ok(Self(engine::Receipt {
            tx_type: r#type.0,
            outcome,
            cumulative_gas_used: cumulative_gas_used.0,
            logs: logs.into_iter().map(log).collect::<PyResult<_>>()?,
            deposit_nonce: deposit_nonce.map(|nonce| nonce.0),
            deposit_receipt_version: deposit_receipt_version.map(|version| version.0),
        }))
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    #[getter]
    fn status(&self) -> Option<bool> {
        match self.0.outcome {
            ReceiptOutcome::Status(success) => Some(success),
            ReceiptOutcome::PostState(_) => None,
        }
    }

    #[getter]
    fn post_state(&self) -> Option<[u8; 32]> {
        match self.0.outcome {
            ReceiptOutcome::Status(_) => None,
            ReceiptOutcome::PostState(root) => Some(root.0),
        }
    }

    #[getter]
    fn cumulative_gas_used(&self) -> u64 {
        self.0.cumulative_gas_used
    }

    #[getter]
    fn logs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        log_tuple(py, &self.0.logs)
    }

    #[getter]
    fn deposit_nonce(&self) -> Option<u64> {
        self.0.deposit_nonce
    }

    #[getter]
    fn deposit_receipt_version(&self) -> Option<u64> {
        self.0.deposit_receipt_version
    }
}
