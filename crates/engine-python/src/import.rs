//! Python bindings of the import of a state dump. It runs with the interpreter released.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::B256;
use foreblock_engine::error::Error;
use foreblock_engine::store::import::{ImportOptions, ImportStats, Progress};
use foreblock_engine::store::{self};
use pyo3::prelude::*;

use crate::convert::Arg;
use crate::error::to_python;
use crate::store::Store;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StateImport>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct StateImport {
    store: Arc<store::Store>,
    plan: ImportOptions,
    progress: Progress,
    imported: Mutex<ImportStats>,
}

#[pymethods]
impl StateImport {
    #[new]
    #[pyo3(signature = (store, block, root, folder, *, memory))]
    fn new(
        store: &Store,
        block: Arg<u64>,
        root: Arg<B256>,
        folder: Arg<String>,
        memory: Arg<usize>,
    ) -> PyResult<Self> {
        let folder = PathBuf::from(folder.0);
        let plan = ImportOptions { block: block.0, root: root.0, folder, memory: memory.0 };
        let (store, progress) = (store.opened()?, Progress::default());
        Ok(Self { store, plan, progress, imported: Mutex::default() })
    }

    #[classattr]
    #[expect(non_snake_case, reason = "a constant of the class")]
    fn STAGES() -> [&'static str; 4] {
        Progress::STAGES
    }

    fn run(&self, py: Python<'_>, path: Arg<String>) -> PyResult<()> {
        let imported = py.detach(|| {
            let unreadable = |error: std::io::Error| Error::BadState {
                line: 0,
                why: format!("cannot be read: {error}"),
            };
            let dump = File::open(&path.0).map_err(unreadable)?;
            let length = dump.metadata().map_err(unreadable)?.len();
            self.store.import_state(dump, length, &self.plan, &self.progress)
        });
        let imported = imported.map_err(to_python)?;
        *self.imported.lock().unwrap_or_else(PoisonError::into_inner) = imported;
        Ok(())
    }

    fn adopt_nodes(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store.adopt_nodes(self.plan.block)).map_err(to_python)
    }

    #[getter]
    fn progress(&self) -> (&'static str, u64, u64) {
        self.progress.get()
    }

    #[getter]
    fn accounts(&self) -> u64 {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner).accounts
    }

    #[getter]
    fn slots(&self) -> u64 {
        self.imported.lock().unwrap_or_else(PoisonError::into_inner).slots
    }

    fn stop(&self) {
        self.progress.stop();
    }
}
