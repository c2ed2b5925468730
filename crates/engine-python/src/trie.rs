//! The state trie at the head and the roots of growing lists, for Python.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256};
use foreblock_engine::error::Result;
use foreblock_engine::store::{self, HeadTrie, Store};
use foreblock_engine::trie::NodeWrites as EngineWrites;
use foreblock_engine::trie::ordered_root;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Arg;
use crate::error::to_python;
use crate::state::Changes;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NodeWrites>()?;
    module.add_class::<GrowingRoot>()?;
    module.add_class::<BranchTrie>()?;
    module.add_class::<StateTrie>()
}

/// The bytes of a hash that is found with the interpreter released.
fn hashed(
    py: Python<'_>,
    find: impl FnOnce() -> Result<B256> + Send,
) -> PyResult<Bound<'_, PyBytes>> {
    let hash = py.detach(find).map_err(to_python)?;
    Ok(PyBytes::new(py, hash.as_slice()))
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct NodeWrites(pub Arc<EngineWrites>);

#[pymethods]
impl NodeWrites {
    fn __len__(&self) -> usize {
        self.0.nodes.len()
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct StateTrie(Mutex<HeadTrie>);

impl StateTrie {
    pub fn open(store: Arc<Store>) -> PyResult<Self> {
        HeadTrie::open(store).map(|trie| Self(Mutex::new(trie))).map_err(to_python)
    }

    fn trie(&self) -> MutexGuard<'_, HeadTrie> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl StateTrie {
    fn apply(&self, py: Python<'_>, changes: &Changes) -> PyResult<()> {
        py.detach(|| self.trie().apply(&changes.0)).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.trie().root())
    }

    fn storage_root<'py>(
        &self,
        py: Python<'py>,
        address: Arg<Address>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.trie().storage_root(&address.0))
    }

    fn take(&self, py: Python<'_>) -> PyResult<NodeWrites> {
        let writes = py.detach(|| self.trie().take()).map_err(to_python)?;
        Ok(NodeWrites(Arc::new(writes)))
    }
}

/// The state trie of one state, and after changes above it.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BranchTrie(Mutex<store::BranchTrie>);

impl BranchTrie {
    pub fn open(state: &store::State, rebuild: bool) -> PyResult<Self> {
        let open = if rebuild { store::BranchTrie::rebuild } else { store::BranchTrie::open };
        open(state).map(|trie| Self(Mutex::new(trie))).map_err(to_python)
    }

    fn trie(&self) -> MutexGuard<'_, store::BranchTrie> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl BranchTrie {
    fn apply(&self, py: Python<'_>, changes: &Changes) -> PyResult<()> {
        py.detach(|| self.trie().apply(&changes.0)).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.trie().root())
    }

    fn storage_root<'py>(
        &self,
        py: Python<'py>,
        address: Arg<Address>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.trie().storage_root(&address.0))
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct GrowingRoot(Mutex<ordered_root::GrowingRoot>);

impl GrowingRoot {
    fn list(&self) -> MutexGuard<'_, ordered_root::GrowingRoot> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl GrowingRoot {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn push(&self, item: &[u8]) -> PyResult<()> {
        self.list().push(item.to_vec()).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let root = py.detach(|| self.list().root());
        PyBytes::new(py, root.as_slice())
    }

    fn __len__(&self) -> usize {
        self.list().len()
    }
}
