//! Python bindings of batches.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use alloy_primitives::B256;
use foreblock_engine::error::Error;
use foreblock_engine::store::{self, Parent};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::account::Changes;
use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;
use crate::fetched_state::FetchedState;
use crate::trie::NodeWrites;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Batch>()
}

/// `None` after a commit, even a failed one.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Batch(Mutex<Option<store::Batch>>);

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

impl Batch {
    pub fn new(batch: store::Batch) -> Self {
        Self(Mutex::new(Some(batch)))
    }

    pub fn take(&self) -> PyResult<store::Batch> {
        self.slot().take().ok_or_else(spent)
    }

    /// Restores a batch whose commit was declined.
    pub fn put_back(&self, batch: store::Batch) {
        *self.slot() = Some(batch);
    }

    fn slot(&self) -> MutexGuard<'_, Option<store::Batch>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn change<T>(&self, change: impl FnOnce(&mut store::Batch) -> T) -> PyResult<T> {
        self.slot().as_mut().map(change).ok_or_else(spent)
    }

    /// Like `change`, with the interpreter released.
    fn change_unattached<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut store::Batch) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| self.slot().as_mut().map(change)).ok_or_else(spent)
    }
}

fn spent() -> PyErr {
    to_python(Error::RefusedCommit("the batch was committed before".into()))
}

fn numbers(numbers: Vec<Arg<u64>>) -> Vec<u64> {
    numbers.into_iter().map(|number| number.0).collect()
}

fn rows_of(dict: Option<&Bound<'_, PyDict>>) -> PyResult<Rows> {
    let row = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((key.extract::<&[u8]>()?.to_vec(), value.extract::<&[u8]>()?.to_vec()))
    };
    dict.map_or_else(|| Ok(Rows::new()), |dict| dict.iter().map(row).collect())
}

#[pymethods]
impl Batch {
    #[getter]
    fn next(&self) -> PyResult<u64> {
        self.change(|batch| batch.next())
    }

    #[classattr]
    const FORMAT: u8 = store::COMMIT_FORMAT;

    #[getter]
    fn before(&self) -> PyResult<u64> {
        self.change(|batch| batch.before())
    }

    #[getter]
    fn after(&self) -> PyResult<u64> {
        self.change(|batch| batch.after())
    }

    #[getter]
    fn rewinds_to(&self) -> PyResult<Option<u64>> {
        self.change(|batch| batch.rewinds_to())
    }

    fn changes_rows(&self, prefix: PyBackedBytes) -> PyResult<bool> {
        self.change(|batch| batch.changes_rows(&prefix))
    }

    #[getter]
    fn writers_note<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.change(|batch| batch.writers_note().map(|note| PyBytes::new(py, note)))
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let body = py.detach(|| self.slot().as_ref().map(store::Batch::encode));
        Ok(PyBytes::new(py, &body.ok_or_else(spent)?.map_err(to_python)?))
    }

    #[staticmethod]
    fn decode(
        py: Python<'_>,
        body: PyBackedBytes,
        before: Arg<u64>,
        after: Arg<u64>,
    ) -> PyResult<Self> {
        py.detach(|| store::Batch::decode(&body, before.0, after.0))
            .map(Self::new)
            .map_err(to_python)
    }

    fn draw(&self) -> PyResult<u64> {
        self.change(store::Batch::draw)
    }

    #[pyo3(signature = (block, hash, changes, nodes = None, index = None))]
    fn append(
        &self,
        py: Python<'_>,
        block: Arg<u64>,
        hash: Arg<B256>,
        changes: &Changes,
        nodes: Option<&NodeWrites>,
        index: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let index = rows_of(index)?;
        let (changes, nodes) = (changes.0.clone(), nodes.map(|nodes| nodes.0.clone()));
        self.change_unattached(py, |batch| {
            let number = batch.append(block.0, hash.0, changes, index);
            if let Some(nodes) = nodes {
                batch.nodes(block.0, nodes);
            }
            number
        })
    }

    #[pyo3(signature = (block, hash, root, epoch, index = None))]
    fn begin_at(
        &self,
        block: Arg<u64>,
        hash: Arg<B256>,
        root: Arg<B256>,
        epoch: Arg<u64>,
        index: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let index = rows_of(index)?;
        self.change(|batch| batch.begin_at(block.0, hash.0, root.0, epoch.0, index))
    }

    #[pyo3(signature = (block, hash, root, epoch, index = None))]
    fn rebase(
        &self,
        block: Arg<u64>,
        hash: Arg<B256>,
        root: Arg<B256>,
        epoch: Arg<u64>,
        index: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let index = rows_of(index)?;
        self.change(|batch| batch.rebase(block.0, hash.0, root.0, epoch.0, index))
    }

    fn learn(&self, py: Python<'_>, learned: &FetchedState) -> PyResult<()> {
        self.change_unattached(py, |batch| batch.learn(learned.0.clone()))
    }

    #[pyo3(signature = (
        block, index, hash, changes, *, on_block = None, parent = None,
        parent_hash = None, rows = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each a fact of the partial block")]
    fn extend(
        &self,
        py: Python<'_>,
        block: Arg<u64>,
        index: Arg<u64>,
        hash: Arg<B256>,
        changes: &Changes,
        on_block: Option<Arg<u64>>,
        parent: Option<Arg<u64>>,
        parent_hash: Option<Arg<B256>>,
        rows: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        let parent = match (on_block, parent, parent_hash) {
            (Some(block), None, None) => Parent::Sealed(block.0),
            (None, Some(partial), None) => Parent::Partial(partial.0),
            (None, Some(partial), Some(hash)) => Parent::Stacked(partial.0, hash.0),
            _ => {
                return Err(invalid(
                    "a partial stands on on_block, on parent, or on parent with parent_hash",
                ));
            }
        };
        let (changes, rows) = (changes.0.clone(), rows_of(rows)?);
        self.change_unattached(py, |batch| {
            batch.extend(block.0, index.0, hash.0, parent, changes, rows)
        })
    }

    #[pyo3(signature = (partial, hash, nodes = None))]
    fn seal(
        &self,
        partial: Arg<u64>,
        hash: Arg<B256>,
        nodes: Option<Pair<Arg<u64>, Py<NodeWrites>>>,
    ) -> PyResult<()> {
        self.change(|batch| {
            batch.seal(partial.0, hash.0);
            if let Some(Pair(block, nodes)) = nodes {
                batch.nodes(block.0, nodes.get().0.clone());
            }
        })
    }

    fn drop(&self, partials: Vec<Arg<u64>>, reason: Arg<String>) -> PyResult<()> {
        self.change(|batch| batch.drop_partials(numbers(partials), reason.0))
    }

    fn revive(&self, partials: Vec<Arg<u64>>) -> PyResult<()> {
        self.change(|batch| batch.revive(numbers(partials)))
    }

    fn forget(&self, partials: Vec<Arg<u64>>) -> PyResult<()> {
        self.change(|batch| batch.forget(numbers(partials)))
    }

    fn rewind(&self, block: Arg<u64>) -> PyResult<()> {
        self.change(|batch| batch.rewind(block.0))
    }

    fn pending(&self, partial: Option<Arg<u64>>) -> PyResult<()> {
        self.change(|batch| batch.pending(partial.map(|partial| partial.0)))
    }

    fn safe(&self, block: Arg<u64>) -> PyResult<()> {
        self.change(|batch| batch.safe(block.0))
    }

    fn finalized(&self, block: Arg<u64>) -> PyResult<()> {
        self.change(|batch| batch.finalized(block.0))
    }

    fn note(&self, note: &[u8]) -> PyResult<()> {
        self.change(|batch| batch.note(note.to_vec()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.change(|batch| batch.put(key.to_vec(), value.to_vec()))?.map_err(to_python)
    }

    fn delete(&self, key: &[u8]) -> PyResult<()> {
        self.change(|batch| batch.delete(key.to_vec()))?.map_err(to_python)
    }

    fn put_local(&self, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.change(|batch| batch.put_local(key.to_vec(), value.to_vec()))?.map_err(to_python)
    }

    fn fold_all(&self) -> PyResult<()> {
        self.change(store::Batch::fold_all)
    }
}
