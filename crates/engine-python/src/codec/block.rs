//! Blocks and withdrawals. A withdrawal is a tuple in Python.

use alloy_primitives::{Address, Bytes};
use foreblock_engine as engine;
use foreblock_engine::codec::block::Withdrawal;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::header::Header;
use crate::convert::{Arg, Quad};
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
        withdrawals: Option<Vec<WithdrawalTuple>>,
    ) -> PyResult<Self> {
        let transactions: Vec<Bytes> = transactions.into_iter().map(|raw| raw.0).collect();
        for (index, raw) in transactions.iter().enumerate() {
            engine::codec::transaction::check(raw)
                .map_err(|error| to_python(error.at_index(index)))?;
        }
        let uncles = uncles.iter().map(|uncle| uncle.get().0.clone()).collect();
        let withdrawals = withdrawals.map(withdrawals_of);
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
        withdrawals.map(|list| PyTuple::new(py, list.iter().map(withdrawal_fields))).transpose()
    }

    fn __repr__(&self) -> String {
        format!("<Block {} {}>", self.0.header.number, self.0.hash)
    }
}

/// A withdrawal from the consensus layer: index, index of the validator, address, amount.
pub type WithdrawalTuple = Quad<Arg<u64>, Arg<u64>, Arg<Address>, Arg<u64>>;

pub fn withdrawals_of(given: Vec<WithdrawalTuple>) -> Vec<Withdrawal> {
    let one = |Quad(index, validator, address, amount): WithdrawalTuple| Withdrawal {
        index: index.0,
        validator_index: validator.0,
        address: address.0,
        amount: amount.0,
    };
    given.into_iter().map(one).collect()
}

pub fn withdrawal_fields(withdrawal: &Withdrawal) -> (u64, u64, [u8; 20], u64) {
    let Withdrawal { index, validator_index, address, amount } = *withdrawal;
    (index, validator_index, address.into_array(), amount)
}
