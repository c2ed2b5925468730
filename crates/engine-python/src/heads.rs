//! Python bindings of the heads of a commit, its log row, and partial blocks.

use std::sync::Arc;

use alloy_primitives::B256;
use foreblock_engine::store::{self, Start, Status};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Arg;
use crate::fetched_state::StateBase;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Heads>()?;
    module.add_class::<LogRow>()?;
    module.add_class::<Partial>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Heads(pub Arc<store::Heads>);

type NumberAndHash<'py> = Option<(u64, Bound<'py, PyBytes>)>;

fn number_and_hash<'py>(py: Python<'py>, head: &Option<store::BlockRef>) -> NumberAndHash<'py> {
    head.map(|head| (head.number, PyBytes::new(py, head.hash.as_slice())))
}

#[pymethods]
impl Heads {
    #[getter]
    fn store_id<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.store_id)
    }

    #[getter]
    fn commit(&self) -> u64 {
        self.0.commit
    }

    #[getter]
    fn base(&self) -> StateBase {
        StateBase(self.0.anchor)
    }

    #[getter]
    fn latest<'py>(&self, py: Python<'py>) -> NumberAndHash<'py> {
        number_and_hash(py, &self.0.latest)
    }

    #[getter]
    fn safe<'py>(&self, py: Python<'py>) -> NumberAndHash<'py> {
        number_and_hash(py, &self.0.safe)
    }

    #[getter]
    fn finalized<'py>(&self, py: Python<'py>) -> NumberAndHash<'py> {
        number_and_hash(py, &self.0.finalized)
    }

    #[getter]
    fn earliest(&self) -> u64 {
        self.0.earliest
    }

    #[getter]
    fn folded(&self) -> u64 {
        self.0.folded
    }

    #[getter]
    fn nodes(&self) -> Option<u64> {
        self.0.nodes
    }

    #[getter]
    fn nodes_earliest(&self) -> u64 {
        self.0.nodes_earliest
    }

    #[getter]
    fn format(&self) -> u8 {
        self.0.format()
    }

    #[getter]
    fn pending(&self) -> Option<u64> {
        self.0.pending
    }

    #[getter]
    fn note<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.note)
    }

    fn __repr__(&self) -> String {
        let latest = self.0.latest.map(|latest| latest.number);
        format!("Heads(commit={}, latest={latest:?}, pending={:?})", self.0.commit, self.0.pending)
    }
}

#[pyclass(frozen, eq, hash, module = "foreblock._engine")]
#[derive(PartialEq, Hash)]
pub struct LogRow(pub store::LogRow);

#[pymethods]
impl LogRow {
    #[new]
    fn new(epoch: Arg<u64>, link: Arg<B256>, sequence: Arg<u64>) -> Self {
        Self(store::LogRow { epoch: epoch.0, link: link.0, sequence: sequence.0 })
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch
    }

    #[getter]
    fn link<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.link.as_slice())
    }

    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    fn __repr__(&self) -> String {
        let store::LogRow { epoch, link, sequence } = self.0;
        format!("LogRow(epoch={epoch}, link={link}, sequence={sequence})")
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Partial(pub store::Partial);

#[pymethods]
impl Partial {
    #[getter]
    fn block(&self) -> u64 {
        self.0.block
    }

    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.hash.as_slice())
    }

    #[getter]
    fn parent_hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.parent_hash.as_slice())
    }

    /// The partial block that its block is based on, `None` if that is a sealed block.
    #[getter]
    fn stacked_on(&self) -> Option<u64> {
        match self.0.start {
            Start::Sealed(_) => None,
            Start::Partial(number) => Some(number),
        }
    }

    #[getter]
    fn status(&self) -> &'static str {
        match self.0.status {
            Status::Live => "live",
            Status::Sealed => "sealed",
            Status::Dropped { .. } | Status::Rewound => "dropped",
        }
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        match &self.0.status {
            Status::Dropped { reason } => Some(reason),
            Status::Rewound => Some("rewound"),
            Status::Live | Status::Sealed => None,
        }
    }
}
