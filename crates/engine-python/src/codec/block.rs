//! Blocks and withdrawals.

use alloy_primitives::{Address, Bytes};
use foreblock_engine as engine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::header::Header;
use crate::convert::Arg;
use crate::error::to_python;

/// A block: header, raw transactions, uncles, withdrawals.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct Block(pub engine::codec::block::Block);

#[pymethods]
impl Block {
    #[new]
    #[pyo3(signature = (header, transactions = vec![], uncles = vec![], withdrawals = None))]
    fn new(
        header: &Bound<'_, Header>,
        transactions: Vec<Arg<Bytes>>,
        uncles: Vec<Py<Header>>,
        withdrawals: Option<Vec<Py<Withdrawal>>>,
    ) -> PyResult<Self> {
        let transactions: Vec<Bytes> = transactions.into_iter().map(|raw| raw.0).collect();
        for (index, raw) in transactions.iter().enumerate() {
            engine::codec::transaction::check(raw)
                .map_err(|error| to_python(error.at_index(index)))?;
        }
        let uncles = uncles.iter().map(|uncle| uncle.get().0.clone()).collect();
        let withdrawals =
            withdrawals.map(|list| list.iter().map(|withdrawal| withdrawal.get().0).collect());
        let header = header.get().0.clone();
        Ok(Self(engine::codec::block::Block::new(header, transactions, uncles, withdrawals)))
    }

    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    #[getter]
    fn header(&self) -> Header {
        Header(self.0.header.clone())
    }

    #[getter]
    fn hash(&self) -> [u8; 32] {
        self.0.hash.0
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size
    }

    #[getter]
    fn transactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.transactions.iter().map(|raw| &raw[..]))
    }

    #[getter]
    fn uncles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.uncles.iter().cloned().map(Header))
    }

    #[getter]
    fn withdrawals<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let withdrawals = self.0.withdrawals.as_ref();
        withdrawals.map(|list| PyTuple::new(py, list.iter().copied().map(Withdrawal))).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<Block {} {}>", self.0.header.number, self.0.hash)
    }
}

/// A withdrawal from the consensus layer.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct Withdrawal(pub engine::codec::block::Withdrawal);

#[pymethods]
impl Withdrawal {
    #[new]
    fn new(
        index: Arg<u64>,
        validator_index: Arg<u64>,
        address: Arg<Address>,
        amount: Arg<u64>,
    ) -> Self {
        Self(engine::codec::block::Withdrawal {
            index: index.0,
            validator_index: validator_index.0,
            address: address.0,
            amount: amount.0,
        })
    }

    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }

    #[getter]
    fn validator_index(&self) -> u64 {
        self.0.validator_index
    }

    #[getter]
    fn address(&self) -> [u8; 20] {
        self.0.address.into_array()
    }

    #[getter]
    fn amount(&self) -> u64 {
        self.0.amount
    }
}
