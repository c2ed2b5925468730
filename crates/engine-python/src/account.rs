//! Python bindings of accounts and of changes.

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use foreblock_engine::state::{AccountState, Changes as EngineChanges};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::{Arg, Integer, Pair};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Account>()?;
    module.add_class::<Changes>()
}

#[pyclass(frozen, module = "foreblock._engine", from_py_object)]
#[derive(Clone, Copy)]
pub struct Account(pub AccountState);

#[pymethods]
impl Account {
    #[new]
    #[pyo3(signature = (*, nonce = Arg(0), balance = Arg(U256::ZERO), code_hash = None, generation = Arg(0)))]
    fn new(
        nonce: Arg<u64>,
        balance: Arg<U256>,
        code_hash: Option<Arg<B256>>,
        generation: Arg<u64>,
    ) -> Self {
        Self(AccountState {
            nonce: nonce.0,
            balance: balance.0,
            code_hash: code_hash.map_or(KECCAK256_EMPTY, |hash| hash.0),
            generation: generation.0,
        })
    }

    #[getter]
    fn nonce(&self) -> u64 {
        self.0.nonce
    }

    #[getter]
    fn balance(&self) -> Integer {
        Integer(self.0.balance)
    }

    #[getter]
    fn code_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.code_hash.as_slice())
    }

    #[getter]
    fn generation(&self) -> u64 {
        self.0.generation
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        let AccountState { nonce, balance, code_hash, generation } = self.0;
        format!(
            "Account(nonce={nonce}, balance={balance}, code_hash={code_hash}, generation={generation})"
        )
    }
}

/// An element of the argument of `Store.load`.
pub fn account_argument(pair: &Bound<'_, PyAny>) -> PyResult<(Address, AccountState)> {
    let Pair(address, account): Pair<Arg<Address>, Account> = pair.extract()?;
    Ok((address.0, account.0))
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Changes(pub Arc<EngineChanges>);

type Change<'py> = (Bound<'py, PyBytes>, Option<Account>, Option<Account>, Bound<'py, PyDict>);

#[pymethods]
impl Changes {
    fn __len__(&self) -> usize {
        self.0.accounts.len()
    }

    #[getter]
    fn entries(&self) -> usize {
        self.0.accounts.values().map(|change| 1 + change.slots.len()).sum()
    }

    fn touches(&self, address: Arg<Address>) -> bool {
        self.0.accounts.contains_key(&address.0)
    }

    fn merge(&self, later: &Self) -> Self {
        let mut merged = EngineChanges::clone(&self.0);
        merged.merge(EngineChanges::clone(&later.0));
        Self(Arc::new(merged))
    }

    #[getter]
    fn accounts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Change<'py>>> {
        let change = |(address, change): (&Address, &foreblock_engine::state::AccountChange)| {
            let slots = PyDict::new(py);
            for (slot, value) in &change.slots {
                slots.set_item(Integer(*slot), Integer(*value))?;
            }
            let address = PyBytes::new(py, address.as_slice());
            Ok((address, change.before.map(Account), change.after.map(Account), slots))
        };
        self.0.accounts.iter().map(change).collect()
    }
}
