//! Transaction fields as attributes. The stub documents them.

use std::hash::{Hash, Hasher};

use alloy_eips::eip7702::Authorization as UnsignedAuthorization;
use alloy_primitives::{Address, U256};
use foreblock_engine::codec::transaction as engine;
use foreblock_engine::codec::transaction_json::{Place, fragment};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::header::Header;
use crate::convert::{Arg, Integer, Pair};

/// The index of a transaction, and gas.
type Refunds = Vec<(u64, u64)>;

/// A decoded transaction with its sender.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq)]
pub struct Transaction(pub engine::Transaction);

impl Hash for Transaction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

#[pymethods]
impl Transaction {
    #[getter]
    fn hash(&self) -> [u8; 32] {
        self.0.hash.0
    }

    #[getter]
    fn sender(&self) -> [u8; 20] {
        self.0.sender.into_array()
    }

    #[getter]
    fn raw(&self) -> &[u8] {
        &self.0.raw
    }

    #[getter]
    fn r#type(&self) -> u8 {
        self.0.fields().ty()
    }

    #[getter]
    fn chain_id(&self) -> Option<u64> {
        self.0.fields().chain_id()
    }

    #[getter]
    fn nonce(&self) -> u64 {
        self.0.fields().nonce()
    }

    #[getter]
    fn gas_limit(&self) -> u64 {
        self.0.fields().gas_limit()
    }

    #[getter]
    fn to(&self) -> Option<[u8; 20]> {
        self.0.to().map(|to| to.into_array())
    }

    #[getter]
    fn value(&self) -> Integer {
        Integer(self.0.fields().value())
    }

    #[getter]
    fn input(&self) -> &[u8] {
        self.0.fields().input()
    }

    #[getter]
    fn gas_price(&self) -> Option<Integer> {
        match self.0.deposit() {
            Some(_) => Some(Integer(U256::ZERO)),
            None => self.0.fields().gas_price().map(Integer::from),
        }
    }

    #[getter]
    fn max_fee_per_gas(&self) -> Option<Integer> {
        let fields = self.0.fields();
        fields.is_dynamic_fee().then(|| fields.max_fee_per_gas().into())
    }

    #[getter]
    fn max_priority_fee_per_gas(&self) -> Option<Integer> {
        self.0.fields().max_priority_fee_per_gas().map(Integer::from)
    }

    #[pyo3(signature = (base_fee_per_gas))]
    fn effective_gas_price(&self, base_fee_per_gas: Option<Arg<u64>>) -> Integer {
        self.0.fields().effective_gas_price(base_fee_per_gas.map(|fee| fee.0)).into()
    }

    #[getter]
    fn access_list<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(list) = self.0.fields().access_list() else { return Ok(None) };
        let items: Vec<_> = list
            .iter()
            .map(|item| {
                let keys = PyTuple::new(py, item.storage_keys.iter().map(|key| key.0))?;
                Ok((item.address.into_array(), keys))
            })
            .collect::<PyResult<_>>()?;
        PyTuple::new(py, items).map(Some)
    }

    #[getter]
    fn blob_versioned_hashes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let hashes = self.0.fields().blob_versioned_hashes();
        hashes.map(|hashes| PyTuple::new(py, hashes.iter().map(|hash| hash.0))).transpose()
    }

    #[getter]
    fn max_fee_per_blob_gas(&self) -> Option<u128> {
        self.0.fields().max_fee_per_blob_gas()
    }

    #[getter]
    fn authorization_list<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let list = self.0.fields().authorization_list();
        list.map(|list| PyTuple::new(py, list.iter().cloned().map(Authorization))).transpose()
    }

    /// The version, the block number and the refunds of a post-execution transaction.
    #[getter]
    fn post_exec(&self) -> Option<(u8, u64, Refunds)> {
        let payload = self.0.post_exec()?;
        let entries = payload.gas_refund_entries.iter();
        let refunds = entries.map(|entry| (entry.index, entry.gas_refund)).collect();
        Some((payload.version, payload.block_number, refunds))
    }

    #[pyo3(signature = (header, index, deposit = None))]
    fn fragment(
        &self,
        header: &Header,
        index: Arg<u64>,
        deposit: Option<Pair<Arg<u64>, Arg<u64>>>,
    ) -> Vec<u8> {
        let deposit = deposit.map(|Pair(nonce, version)| (nonce.0, version.0));
        let place = Place { header: &header.0, index: index.0, deposit };
        let mut out = Vec::with_capacity(1024 + 2 * self.0.raw.len());
        fragment(&mut out, &self.0, &place);
        out
    }

    fn __repr__(&self) -> String {
        format!("<Transaction {}>", self.0.hash)
    }
}

/// One entry of a set-code transaction's authorization list.
#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct Authorization(pub engine::SignedAuthorization);

#[pymethods]
impl Authorization {
    #[new]
    fn new(
        chain_id: Arg<U256>,
        address: Arg<Address>,
        nonce: Arg<u64>,
        y_parity: Arg<u8>,
        r: Arg<U256>,
        s: Arg<U256>,
    ) -> Self {
        let inner =
            UnsignedAuthorization { chain_id: chain_id.0, address: address.0, nonce: nonce.0 };
        Self(engine::SignedAuthorization::new_unchecked(inner, y_parity.0, r.0, s.0))
    }
}
