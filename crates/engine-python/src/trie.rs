//! State tries and the roots of growing lists, for Python.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256};
use foreblock_engine::error::Result;
use foreblock_engine::store::{BranchTrie, HeadTrie, State, Store};
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

/// The state trie of one state, and after changes above it.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct StateTrie(Mutex<Opened>);

enum Opened {
    /// At the latest block; its nodes are to be written.
    Head(HeadTrie),
    Branch(BranchTrie),
}

impl StateTrie {
    pub fn at_head(store: Arc<Store>) -> PyResult<Self> {
        Self::of(HeadTrie::open(store).map(Opened::Head))
    }

    pub fn of_state(state: &State, rebuild: bool) -> PyResult<Self> {
        let open = if rebuild { BranchTrie::rebuild } else { BranchTrie::open };
        Self::of(open(state).map(Opened::Branch))
    }

    fn of(opened: Result<Opened>) -> PyResult<Self> {
        opened.map(|opened| Self(Mutex::new(opened))).map_err(to_python)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl StateTrie {
    fn apply(&self, py: Python<'_>, changes: &Changes) -> PyResult<()> {
        let apply = || match &mut *self.opened() {
            Opened::Head(trie) => trie.apply(&changes.0),
            Opened::Branch(trie) => trie.apply(&changes.0),
        };
        py.detach(apply).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || match &mut *self.opened() {
            Opened::Head(trie) => trie.root(),
            Opened::Branch(trie) => trie.root(),
        })
    }

    fn storage_root<'py>(
        &self,
        py: Python<'py>,
        address: Arg<Address>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || match &mut *self.opened() {
            Opened::Head(trie) => trie.storage_root(&address.0),
            Opened::Branch(trie) => trie.storage_root(&address.0),
        })
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<NodeWrites>> {
        let take = || match &mut *self.opened() {
            Opened::Head(trie) => trie.take().map(Some),
            Opened::Branch(_) => Ok(None),
        };
        let writes = py.detach(take).map_err(to_python)?;
        Ok(writes.map(|writes| NodeWrites(Arc::new(writes))))
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
