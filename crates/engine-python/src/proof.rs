//! Python bindings of account and storage proofs.

use foreblock_engine::error::Error;
use foreblock_engine::store;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::account::Account;
use crate::convert::{Arg, Integer};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Proof>()
}

/// Nodes are converted on access, because there may be megabytes of them.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Proof(pub store::Proof);

fn nodes<'py>(py: Python<'py>, nodes: &[Vec<u8>]) -> Vec<Bound<'py, PyBytes>> {
    nodes.iter().map(|node| PyBytes::new(py, node)).collect()
}

#[pymethods]
impl Proof {
    #[getter]
    fn account(&self) -> Option<Account> {
        self.0.account.map(Account)
    }

    #[getter]
    fn account_nodes<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        nodes(py, &self.0.account_nodes)
    }

    #[getter]
    fn storage_root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.storage_root.as_slice())
    }

    fn slot<'py>(
        &self,
        py: Python<'py>,
        position: Arg<usize>,
    ) -> PyResult<(Integer, Vec<Bound<'py, PyBytes>>)> {
        let slot = self.0.slots.get(position.0);
        let missing = || to_python(Error::invalid("there is no slot at this position"));
        let (value, proof) = slot.ok_or_else(missing)?;
        Ok((Integer(*value), nodes(py, proof)))
    }

    fn __len__(&self) -> usize {
        self.0.slots.len()
    }
}
