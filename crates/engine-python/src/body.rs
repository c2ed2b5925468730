//! Blocks put together from simulated transactions, for Python.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::{Address, B256};
use foreblock_engine::body::Body as EngineBody;
use foreblock_engine::requests::deposit_requests;
use foreblock_engine::transaction::unsigned;
use pyo3::prelude::*;

use crate::codec::{Block, Header, Transaction, Withdrawal};
use crate::convert::Arg;
use crate::env::Message;
use crate::error::to_python;
use crate::outcome::Outcome;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Body>()?;
    module.add_function(wrap_pyfunction!(unsigned_transaction, module)?)
}

#[pyfunction]
fn unsigned_transaction(
    message: &Message,
    r#type: Arg<u8>,
    chain_id: Arg<u64>,
    nonce: Arg<u64>,
) -> PyResult<Transaction> {
    unsigned(&message.0, r#type.0, chain_id.0, nonce.0).map(Transaction).map_err(to_python)
}

/// The transactions of a block being put together, with what came of them.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Body(Mutex<EngineBody>);

impl Body {
    fn body(&self) -> MutexGuard<'_, EngineBody> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Body {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    #[pyo3(signature = (transaction, outcome, post_state = None))]
    fn push(&self, transaction: &Transaction, outcome: &Outcome, post_state: Option<Arg<B256>>) {
        self.body().push(&transaction.0, &outcome.0, post_state.map(|root| root.0));
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.body().gas_used()
    }

    fn deposit_requests(&self, contract: Arg<Address>) -> PyResult<Vec<u8>> {
        deposit_requests(self.body().logs(), contract.0).map(Into::into).map_err(to_python)
    }

    #[pyo3(signature = (header, withdrawals = None))]
    fn seal(
        &self,
        py: Python<'_>,
        header: &Header,
        withdrawals: Option<Vec<Py<Withdrawal>>>,
    ) -> PyResult<Block> {
        let withdrawals = withdrawals.map(|list| list.iter().map(|each| each.get().0).collect());
        let sealed = py.detach(|| self.body().seal(&header.0, withdrawals));
        sealed.map(Block).map_err(to_python)
    }

    fn __len__(&self) -> usize {
        self.body().len()
    }
}
