//! Python bindings of witnesses and recordings.

use alloy_primitives::{B256, Bytes};
use foreblock_engine::deadline::Limits;
use foreblock_engine::evm::overlay::Overlay as EngineOverlay;
use foreblock_engine::{store, witness};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::codec::Header;
use crate::convert::{Arg, limits};
use crate::error::to_python;
use crate::overlay::Overlay;
use crate::trie::StateTrie;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Witness>()?;
    module.add_class::<Recording>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Witness(witness::Witness);

#[pymethods]
impl Witness {
    #[new]
    fn new(py: Python<'_>, header: &Header, texts: Vec<Arg<Bytes>>) -> Self {
        let texts: Vec<_> = texts.into_iter().map(|text| text.0).collect();
        Self(py.detach(|| witness::Witness::new(&header.0, texts)))
    }

    fn overlay(&self) -> Overlay {
        Overlay::of(EngineOverlay::new(self.0.state()))
    }

    fn trie(&self) -> StateTrie {
        StateTrie::sparse(self.0.trie())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Recording(witness::Recording);

impl Recording {
    pub fn of(
        py: Python<'_>,
        state: &store::State,
        root: Option<B256>,
        limits: Limits,
    ) -> PyResult<Self> {
        let begin = || witness::Recording::new(state.clone(), root, limits);
        py.detach(begin).map(Self).map_err(to_python)
    }
}

#[pymethods]
impl Recording {
    fn overlay(&self) -> Overlay {
        Overlay::of(EngineOverlay::new(self.0.state()))
    }

    fn trie(&self) -> StateTrie {
        StateTrie::sparse(self.0.trie())
    }

    #[pyo3(signature = (*, timeout_us = None, step_us = None))]
    fn recorded<'py>(
        &self,
        py: Python<'py>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Needed<'py>> {
        let limits = limits(timeout_us, step_us);
        let needed = py.detach(|| self.0.recorded(limits)).map_err(to_python)?;
        let texts = |texts: &[Bytes]| texts.iter().map(|text| PyBytes::new(py, text)).collect();
        Ok((texts(&needed.nodes), texts(&needed.codes), texts(&needed.keys), needed.blocks))
    }
}

type Texts<'py> = Vec<Bound<'py, PyBytes>>;

/// The nodes, the codes, the keys, and the numbers of the blocks whose hashes were read.
type Needed<'py> = (Texts<'py>, Texts<'py>, Texts<'py>, Vec<u64>);
