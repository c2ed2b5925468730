//! Commands that are put off, for Python: the queue that takes them, and the fast path over it.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foreblock_engine::fast_path::put_off::{NAMES, Queue, Window};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::{Arg, invalid};
use crate::fast_path::{FastPath, joined};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CommandQueue>()?;
    module.add_class::<CommandPath>()
}

type Taken<'py> = (Vec<Bound<'py, PyBytes>>, Vec<(&'static str, usize)>);

#[pyclass(frozen, module = "foreblock._engine")]
pub struct CommandQueue(Mutex<Queue>);

#[pymethods]
impl CommandQueue {
    #[new]
    #[pyo3(signature = (path, /))]
    fn new(path: PathBuf) -> PyResult<Self> {
        Ok(Self(Mutex::new(Queue::new(&path)?)))
    }

    #[pyo3(signature = (batch, command, /))]
    fn add(&self, batch: Arg<u64>, command: &[u8]) -> PyResult<()> {
        Ok(self.queue().add(batch.0, command)?)
    }

    fn begin(&self) {
        self.queue().begin();
    }

    #[pyo3(signature = (batch, *, commands, accounts, snapshots, next_snapshot, waiting))]
    fn open(
        &self,
        batch: Arg<u64>,
        commands: Arg<usize>,
        accounts: bool,
        snapshots: Arg<usize>,
        next_snapshot: Arg<u64>,
        waiting: Vec<Arg<u64>>,
    ) {
        self.queue().open(Window {
            batch: batch.0,
            commands: commands.0,
            snapshots: snapshots.0,
            accounts,
            next_snapshot: next_snapshot.0,
            waiting: waiting.into_iter().map(|id| id.0).collect(),
        });
    }

    fn close(&self) {
        self.queue().close();
    }

    #[pyo3(signature = (headers, /))]
    fn set_headers(&self, headers: &[u8]) {
        self.queue().set_headers(headers);
    }

    #[getter]
    fn count(&self) -> usize {
        self.queue().count()
    }

    fn take<'py>(&self, py: Python<'py>) -> Taken<'py> {
        let taken = self.queue().take();
        let commands = taken.commands.iter().map(|each| PyBytes::new(py, each)).collect();
        (commands, taken.names.iter().map(|&(name, times)| (NAMES[name], times)).collect())
    }
}

impl CommandQueue {
    /// Nothing of Python runs under this lock but the making of bytes.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct CommandPath {
    over: Py<FastPath>,
    queue: Py<CommandQueue>,
    /// Rows of the meter, by the places of names.
    rows: [usize; NAMES.len()],
}

#[pymethods]
impl CommandPath {
    #[new]
    #[pyo3(signature = (over, queue, rows, /))]
    fn new(
        over: Py<FastPath>,
        queue: Py<CommandQueue>,
        rows: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let mut found = [0; NAMES.len()];
        for (row, name) in found.iter_mut().zip(NAMES) {
            let found = rows.get_item(name)?.ok_or_else(|| invalid("rows: one for each name"))?;
            *row = found.extract::<Arg<usize>>()?.0;
        }
        Ok(Self { over, queue, rows: found })
    }

    #[classattr]
    #[pyo3(name = "NAMES")]
    fn names() -> Vec<&'static str> {
        NAMES.to_vec()
    }

    #[pyo3(signature = (head, length, status, headers, /))]
    fn cache_head(&self, head: &[u8], length: Arg<usize>, status: &[u8], headers: &[u8]) {
        self.over.get().cache_head(head, length, status, headers);
    }

    fn clear_heads(&self) {
        self.over.get().clear_heads();
    }

    #[pyo3(signature = (data, date, /))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        date: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let over = self.over.get();
        let mut queue = self.queue.get().queue();
        if !queue.is_open() {
            drop(queue);
            return over.answer(py, data, date);
        }
        let begun = Instant::now();
        let answer = over.path.put_off(data, date, &mut queue, |parts, named| {
            let answer = joined(py, parts)?;
            over.count_one(self.rows[named], begun, data.len(), answer.as_bytes().len());
            Ok(answer)
        });
        answer.transpose()
    }
}
