//! Python bindings of the store and its views.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use alloy_primitives::B256;
use foreblock_engine::error::Error;
use foreblock_engine::store::{self, Mode, Options, Retention};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::account::{Changes, account_argument};
use crate::batch::Batch;
use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;
use crate::fetched_state::FetchedState;
use crate::heads::{Heads, LogRow, Partial};
use crate::state::State;
use crate::trie::{NodeWrites, StateTrie};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Store>()?;
    module.add_class::<View>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Store {
    opened: Mutex<Option<Arc<store::Store>>>,
    last_heads: Mutex<Option<Py<Heads>>>,
    #[pyo3(get)]
    path: String,
}

impl Store {
    fn slot(&self) -> MutexGuard<'_, Option<Arc<store::Store>>> {
        self.opened.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn opened(&self) -> PyResult<Arc<store::Store>> {
        self.slot().clone().ok_or_else(|| to_python(Error::StoreClosed))
    }

    /// A view if it is available immediately. Does not call Python, so it can be used while a lock
    /// is held.
    pub fn view_now(&self) -> Option<store::View> {
        let store = self.slot().clone()?;
        if store.is_busy() { None } else { store.view().ok() }
    }

    /// The Python object for these heads, shared by all views of a transaction.
    fn heads(&self, py: Python<'_>, heads: &Arc<store::Heads>) -> PyResult<Py<Heads>> {
        let mut last = self.last_heads.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match &*last {
            Some(known) if Arc::ptr_eq(&known.get().0, heads) => Ok(known.clone_ref(py)),
            _ => {
                let made = Py::new(py, Heads(heads.clone()))?;
                *last = Some(made.clone_ref(py));
                Ok(made)
            }
        }
    }
}

/// Name, rows, pages and depth.
type TableSize = (&'static str, usize, usize, u32);

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (
        path, *, write = false, map_size = None, max_readers = None,
        keep_states = None, keep_partials = None, keep_nodes = None, sync = true
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn new(
        py: Python<'_>,
        path: Arg<String>,
        write: bool,
        map_size: Option<Arg<usize>>,
        max_readers: Option<Arg<u32>>,
        keep_states: Option<Arg<u64>>,
        keep_partials: Option<Arg<u64>>,
        keep_nodes: Option<Arg<u64>>,
        sync: bool,
    ) -> PyResult<Self> {
        let defaults = Options::new(if write { Mode::Write } else { Mode::Read });
        let kept = defaults.retention;
        let options = Options {
            map_size: map_size.map_or(defaults.map_size, |it| it.0),
            max_readers: max_readers.map_or(defaults.max_readers, |it| it.0),
            retention: Retention {
                states: keep_states.map(|it| it.0),
                partials: keep_partials.map_or(kept.partials, |it| it.0),
                nodes: keep_nodes.map_or(kept.nodes, |it| it.0),
            },
            sync,
            ..defaults
        };
        let path = path.0;
        let opened = py.detach(|| store::Store::open(Path::new(&path), &options));
        let opened = Mutex::new(Some(Arc::new(opened.map_err(to_python)?)));
        Ok(Self { opened, last_heads: Mutex::default(), path })
    }

    fn view(&self, py: Python<'_>) -> PyResult<View> {
        let store = self.opened()?;
        let view = if store.is_busy() { py.detach(|| store.view()) } else { store.view() };
        let view = view.map_err(to_python)?;
        Ok(View { heads: self.heads(py, view.heads())?, view })
    }

    #[pyo3(signature = (learned))]
    fn set_fallback_state(&self, learned: Option<&FetchedState>) -> PyResult<()> {
        self.opened()?.set_fallback_state(learned.map(|learned| learned.0.clone()));
        Ok(())
    }

    fn learn(&self, py: Python<'_>, learned: &FetchedState) -> PyResult<usize> {
        let store = self.opened()?;
        py.detach(|| store.learn(&learned.0)).map_err(to_python)
    }

    fn batch(&self) -> PyResult<Batch> {
        self.opened()?.batch().map(Batch::new).map_err(to_python)
    }

    #[pyo3(signature = (batch, log = None, ask = None))]
    fn commit(
        &self,
        py: Python<'_>,
        batch: &Batch,
        log: Option<&LogRow>,
        ask: Option<Py<PyAny>>,
    ) -> PyResult<Heads> {
        let (store, slot) = (self.opened()?, batch);
        let mut batch = slot.take()?;
        let log = log.map(|row| row.0);
        let mut raised = None;
        let agree = || match &ask {
            None => Ok(()),
            Some(ask) => match Python::attach(|py| ask.call0(py)?.is_truthy(py)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(Error::CommitDeclined),
                Err(failure) => {
                    raised = Some(failure);
                    Err(Error::CommitDeclined)
                }
            },
        };
        let done = py.detach(|| store.commit_if(&mut batch, log.as_ref(), agree));
        if matches!(done, Err(Error::CommitDeclined)) {
            slot.put_back(batch);
        }
        let heads = done.map_err(|error| raised.unwrap_or_else(|| to_python(error)))?;
        Ok(Heads(Arc::new(heads)))
    }

    fn commit_all(
        &self,
        py: Python<'_>,
        batches: Vec<PyRef<'_, Batch>>,
        rows: Vec<PyRef<'_, LogRow>>,
    ) -> PyResult<Heads> {
        let store = self.opened()?;
        if batches.len() != rows.len() {
            let why = format!("{} batches and {} rows", batches.len(), rows.len());
            return Err(to_python(Error::invalid(why)));
        }
        let placed = batches.iter().zip(&rows);
        let taken: PyResult<_> = placed.map(|(batch, row)| Ok((batch.take()?, row.0))).collect();
        let taken: Vec<_> = taken?;
        let heads = py.detach(|| store.commit_all(taken)).map_err(to_python)?;
        Ok(Heads(Arc::new(heads)))
    }

    fn put_note(&self, py: Python<'_>, commit: Arg<u64>, note: PyBackedBytes) -> PyResult<()> {
        let store = self.opened()?;
        py.detach(|| store.put_note(commit.0, &note)).map_err(to_python)
    }

    #[pyo3(signature = (entries, seconds = 0.0))]
    fn maintain(&self, py: Python<'_>, entries: Arg<usize>, seconds: f64) -> PyResult<usize> {
        let store = self.opened()?;
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|why| to_python(Error::invalid(format!("{seconds} seconds: {why}"))))?;
        py.detach(|| store.maintain_within(entries.0, time)).map_err(to_python)
    }

    #[pyo3(signature = (block))]
    fn hold(&self, block: Option<Arg<u64>>) -> PyResult<()> {
        self.opened()?.hold(block.map(|it| it.0)).map_err(to_python)
    }

    /// Writes rows that affect no response.
    fn put_rows(
        &self,
        py: Python<'_>,
        put: Vec<Pair<PyBackedBytes, PyBackedBytes>>,
        deleted: Vec<PyBackedBytes>,
    ) -> PyResult<()> {
        let store = self.opened()?;
        let put: Vec<(&[u8], &[u8])> = put.iter().map(|Pair(key, row)| (&**key, &**row)).collect();
        let deleted: Vec<&[u8]> = deleted.iter().map(|key| &**key).collect();
        py.detach(|| store.put_rows(&put, &deleted)).map_err(to_python)
    }

    fn load(&self, py: Python<'_>, accounts: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let store = self.opened()?;
        let accounts = accounts.iter().map(account_argument).collect::<PyResult<Vec<_>>>()?;
        py.detach(|| store.load(&accounts)).map_err(to_python)
    }

    fn put_ancestor_hashes(
        &self,
        py: Python<'_>,
        hashes: Vec<Pair<Arg<u64>, Arg<B256>>>,
    ) -> PyResult<()> {
        let store = self.opened()?;
        let hashes: Vec<_> = hashes.iter().map(|Pair(number, hash)| (number.0, hash.0)).collect();
        py.detach(|| store.put_ancestor_hashes(&hashes)).map_err(to_python)
    }

    #[pyo3(signature = (*, root = None))]
    fn trie(&self, py: Python<'_>, root: Option<Arg<B256>>) -> PyResult<StateTrie> {
        let (store, root) = (self.opened()?, root.map(|root| root.0));
        py.detach(|| StateTrie::at_head(store, root))
    }

    fn trie_behind(&self, block: Arg<u64>, root: Arg<B256>) -> PyResult<StateTrie> {
        Ok(StateTrie::behind(self.opened()?, block.0, root.0))
    }

    fn keep_nodes(
        &self,
        py: Python<'_>,
        block: Arg<u64>,
        hash: Arg<B256>,
        nodes: &NodeWrites,
    ) -> PyResult<bool> {
        let store = self.opened()?;
        py.detach(|| store.keep_nodes(block.0, hash.0, nodes.0.clone())).map_err(to_python)
    }

    fn drop_stale_snapshot(&self) -> PyResult<()> {
        self.opened()?.drop_stale_snapshot();
        Ok(())
    }

    #[getter]
    fn reader_slots(&self) -> PyResult<(u32, u32)> {
        self.opened()?.reader_slots().map_err(to_python)
    }

    fn clear_stale_readers(&self) -> PyResult<usize> {
        self.opened()?.clear_stale_readers().map_err(to_python)
    }

    fn copy(&self, py: Python<'_>, to: Arg<String>) -> PyResult<()> {
        let store = self.opened()?;
        py.detach(|| store.copy(Path::new(&to.0))).map_err(to_python)
    }

    /// Writes to a descriptor that stays open until this returns.
    fn copy_to(&self, py: Python<'_>, to: Arg<u32>) -> PyResult<()> {
        let store = self.opened()?;
        let to = i32::try_from(to.0).map_err(|_| invalid(format!("{} is no descriptor", to.0)))?;
        // SAFETY: it is not negative, and the caller keeps it open during the call. The system
        // rejects a closed one when it is duplicated.
        let to = unsafe { BorrowedFd::borrow_raw(to) };
        py.detach(|| store.copy_to(to)).map_err(to_python)
    }

    #[getter]
    fn map_size(&self) -> PyResult<usize> {
        self.opened()?.map_size().map_err(to_python)
    }

    #[getter]
    fn file_bytes(&self) -> PyResult<u64> {
        self.opened()?.file_bytes().map_err(to_python)
    }

    #[getter]
    fn used_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let store = self.opened()?;
        py.detach(|| store.used_bytes()).map_err(to_python)
    }

    fn sizes(&self, py: Python<'_>) -> PyResult<(u32, usize, usize, Vec<TableSize>)> {
        let store = self.opened()?;
        let file = py.detach(|| store.sizes()).map_err(to_python)?;
        let table = |it: store::TableSize| (it.name, it.rows, it.pages, it.depth);
        let tables = file.tables.into_iter().map(table).collect();
        Ok((file.page_bytes, file.pages, file.free_pages, tables))
    }

    fn close(&self, py: Python<'_>) {
        let taken = self.slot().take();
        if let Some(store) = taken {
            // A read that `close` waits for may need the interpreter to finish.
            py.detach(|| store.close());
        }
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.close(py);
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct View {
    pub(crate) view: store::View,
    // Stored as an object, so that access needs no call.
    #[pyo3(get)]
    heads: Py<Heads>,
}

type Row<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl View {
    fn sealed<'py>(
        &self,
        py: Python<'py>,
        block: Arg<u64>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u64)>> {
        let sealed = self.view.sealed(block.0).map_err(to_python)?;
        Ok(sealed.map(|sealed| (PyBytes::new(py, sealed.hash.as_slice()), sealed.delta)))
    }

    fn partial(&self, number: Arg<u64>) -> PyResult<Option<Partial>> {
        Ok(self.view.partial(number.0).map_err(to_python)?.map(Partial))
    }

    #[getter]
    fn log_row(&self) -> PyResult<Option<LogRow>> {
        Ok(self.view.log_row().map_err(to_python)?.map(LogRow))
    }

    #[getter]
    fn garbage_len(&self) -> PyResult<u64> {
        self.view.garbage_len().map_err(to_python)
    }

    fn row<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let row = self.view.row(key).map_err(to_python)?;
        Ok(row.map(|row| PyBytes::new(py, &row)))
    }

    fn rows<'py>(
        &self,
        py: Python<'py>,
        prefix: &[u8],
        limit: Arg<usize>,
    ) -> PyResult<Vec<Row<'py>>> {
        let row = |key: &[u8], value: &[u8]| (PyBytes::new(py, key), PyBytes::new(py, value));
        self.view.rows(prefix, limit.0, row).map_err(to_python)
    }

    fn keys<'py>(
        &self,
        py: Python<'py>,
        prefix: &[u8],
        limit: Arg<usize>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.view.rows(prefix, limit.0, |key, _| PyBytes::new(py, key)).map_err(to_python)
    }

    fn state(&self, block: Arg<u64>) -> PyResult<State> {
        self.view.state(block.0).map(State).map_err(to_python)
    }

    fn state_of_partial(&self, number: Arg<u64>) -> PyResult<State> {
        self.view.state_of_partial(number.0).map(State).map_err(to_python)
    }

    fn changes(&self, py: Python<'_>, block: Arg<u64>) -> PyResult<Changes> {
        let changes = py.detach(|| self.view.changes(block.0)).map_err(to_python)?;
        Ok(Changes(Arc::new(changes)))
    }

    #[pyo3(signature = (number, since = None))]
    fn changes_of_partial(
        &self,
        py: Python<'_>,
        number: Arg<u64>,
        since: Option<Arg<u64>>,
    ) -> PyResult<Changes> {
        let since = since.map(|earlier| earlier.0);
        let changes = py.detach(|| self.view.changes_of_partial(number.0, since));
        Ok(Changes(Arc::new(changes.map_err(to_python)?)))
    }

    fn close(&self) {
        self.view.close();
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) {
        self.close();
    }
}
