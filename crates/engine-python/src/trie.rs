//! Python bindings of state tries and list roots.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256, Bytes};
use foreblock_engine::error::Result;
use foreblock_engine::store::{self, BranchTrie, HeadTrie};
use foreblock_engine::trie::{self, NodeWrites as EngineWrites};
use foreblock_engine::witness::SparseTrie;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::account::Changes;
use crate::convert::{Arg, Integer};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NodeWrites>()?;
    module.add_class::<ProofsNeeded>()?;
    module.add_class::<StateTrie>()
}

/// Computes a hash with the interpreter released.
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

/// The trie of a state with changes applied.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct StateTrie(Mutex<Opened>);

enum Opened {
    /// At the latest block; its nodes are to be written.
    Head(HeadTrie),
    Branch(BranchTrie),
    /// Of a witness or a recording.
    Sparse(SparseTrie),
}

impl StateTrie {
    pub fn at_head(store: Arc<store::Store>, root: Option<B256>) -> PyResult<Self> {
        Self::of(HeadTrie::open_at(store, root).map(Opened::Head))
    }

    pub fn behind(store: Arc<store::Store>, block: u64, root: B256) -> Self {
        Self(Mutex::new(Opened::Head(HeadTrie::open_behind(store, block, root))))
    }

    pub fn of_state(state: &store::State, rebuild: bool, root: Option<B256>) -> PyResult<Self> {
        let opened = match rebuild {
            true => BranchTrie::rebuild(state),
            false => BranchTrie::open_under(state, root),
        };
        Self::of(opened.map(Opened::Branch))
    }

    pub fn sparse(trie: SparseTrie) -> Self {
        Self(Mutex::new(Opened::Sparse(trie)))
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
            Opened::Sparse(trie) => trie.apply(&changes.0),
        };
        py.detach(apply).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || match &mut *self.opened() {
            Opened::Head(trie) => trie.root(),
            Opened::Branch(trie) => trie.root(),
            Opened::Sparse(trie) => trie.root(),
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
            Opened::Sparse(trie) => trie.storage_root(&address.0),
        })
    }

    fn storage_root_after<'py>(
        &self,
        py: Python<'py>,
        address: Arg<Address>,
        changes: &Changes,
    ) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || match &*self.opened() {
            Opened::Head(trie) => trie.storage_root_after(&address.0, &changes.0),
            Opened::Branch(trie) => trie.storage_root_after(&address.0, &changes.0),
            Opened::Sparse(trie) => trie.storage_root_after(&address.0, &changes.0),
        })
    }

    fn needs(&self, py: Python<'_>, changes: &Changes) -> PyResult<ProofsNeeded> {
        let find = || match &*self.opened() {
            Opened::Head(trie) => trie.needs(&changes.0),
            Opened::Branch(trie) => trie.needs(&changes.0),
            Opened::Sparse(trie) => trie.needs(&changes.0),
        };
        py.detach(find).map(ProofsNeeded).map_err(to_python)
    }

    #[pyo3(signature = (nodes, after = None))]
    fn fill(&self, py: Python<'_>, nodes: Vec<Arg<Bytes>>, after: Option<Arg<B256>>) {
        let after = after.map(|root| root.0);
        let nodes: Vec<_> = nodes.into_iter().map(|node| node.0).collect();
        py.detach(|| match &mut *self.opened() {
            Opened::Head(trie) => trie.fill(&nodes, after),
            Opened::Branch(trie) => trie.fill(&nodes, after),
            Opened::Sparse(trie) => trie.fill(&nodes, after),
        });
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<NodeWrites>> {
        let take = || match &mut *self.opened() {
            Opened::Head(trie) => trie.take().map(Some),
            Opened::Branch(_) | Opened::Sparse(_) => Ok(None),
        };
        let writes = py.detach(take).map_err(to_python)?;
        Ok(writes.map(|writes| NodeWrites(Arc::new(writes))))
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct ProofsNeeded(trie::ProofsNeeded);

impl ProofsNeeded {
    fn keys<'py>(py: Python<'py>, keys: &trie::Keys) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (address, slots) in keys {
            let slots: Vec<_> = slots.iter().copied().map(Integer).collect();
            dict.set_item(PyBytes::new(py, address.as_slice()), slots)?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl ProofsNeeded {
    #[getter]
    fn before<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Self::keys(py, &self.0.before)
    }

    #[getter]
    fn after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Self::keys(py, &self.0.after)
    }

    /// A brute-force search, which takes time.
    fn preimages_for_paths<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = py.detach(|| self.0.preimages_for_paths());
        found.map(|keys| Self::keys(py, &keys)).transpose()
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }
}
