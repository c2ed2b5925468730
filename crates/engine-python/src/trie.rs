//! Python bindings of state tries and list roots.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256, Bytes};
use foreblock_engine::error::Result;
use foreblock_engine::store::{self, BranchTrie, HeadNodes, HeadTrie, StateNodes};
use foreblock_engine::trie::{self, NodeReader, NodeSource, NodeWrites as EngineWrites};
use foreblock_engine::witness::{SparseNodes, SparseTrie};
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
pub struct StateTrie(Mutex<trie::StateTrie<Nodes>>);

enum Nodes {
    /// After the latest block; changed nodes are to be written.
    Head(HeadNodes),
    Branch(StateNodes),
    /// Of a witness or a recording.
    Sparse(SparseNodes),
}

impl NodeSource for Nodes {
    fn with_nodes<T>(&self, read: impl FnOnce(&dyn NodeReader) -> Result<T>) -> Result<T> {
        match self {
            Self::Head(nodes) => nodes.with_nodes(read),
            Self::Branch(nodes) => nodes.with_nodes(read),
            Self::Sparse(nodes) => nodes.with_nodes(read),
        }
    }
}

impl StateTrie {
    pub fn at_head(store: Arc<store::Store>, root: Option<B256>) -> PyResult<Self> {
        let trie = HeadTrie::open_at(store, root).map_err(to_python)?;
        Ok(Self::of(trie, Nodes::Head))
    }

    pub fn behind(store: Arc<store::Store>, block: u64, root: B256) -> Self {
        Self::of(HeadTrie::open_behind(store, block, root), Nodes::Head)
    }

    pub fn of_state(state: &store::State, rebuild: bool, root: Option<B256>) -> PyResult<Self> {
        let opened = match rebuild {
            true => BranchTrie::rebuild(state),
            false => BranchTrie::open_under(state, root),
        };
        Ok(Self::of(opened.map_err(to_python)?, Nodes::Branch))
    }

    pub fn sparse(trie: SparseTrie) -> Self {
        Self::of(trie, Nodes::Sparse)
    }

    fn of<N>(trie: trie::StateTrie<N>, wrap: impl FnOnce(N) -> Nodes) -> Self {
        Self(Mutex::new(trie.map_source(wrap)))
    }

    fn opened(&self) -> MutexGuard<'_, trie::StateTrie<Nodes>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl StateTrie {
    fn apply(&self, py: Python<'_>, changes: &Changes) -> PyResult<()> {
        py.detach(|| self.opened().apply(&changes.0)).map_err(to_python)
    }

    fn root<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.opened().root())
    }

    fn storage_root<'py>(
        &self,
        py: Python<'py>,
        address: Arg<Address>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        hashed(py, || self.opened().storage_root(&address.0))
    }

    fn needs(&self, py: Python<'_>, changes: &Changes) -> PyResult<ProofsNeeded> {
        py.detach(|| self.opened().needs(&changes.0)).map(ProofsNeeded).map_err(to_python)
    }

    #[pyo3(signature = (nodes, after = None))]
    fn fill(&self, py: Python<'_>, nodes: Vec<Arg<Bytes>>, after: Option<Arg<B256>>) {
        let after = after.map(|root| root.0);
        let nodes: Vec<_> = nodes.into_iter().map(|node| node.0).collect();
        py.detach(|| self.opened().fill(&nodes, after));
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<NodeWrites>> {
        let take = || {
            let mut trie = self.opened();
            matches!(trie.source(), Nodes::Head(_)).then(|| trie.take()).transpose()
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
