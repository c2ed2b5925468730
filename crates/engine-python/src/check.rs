//! Python bindings of the store check. Its parts run with the interpreter released.

use foreblock_engine::error::Error;
use foreblock_engine::store::check::{Check, Damage};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Arg;
use crate::error::to_python;
use crate::store::View;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StoreCheck>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct StoreCheck(Check);

type Told<'py> = (&'static str, Bound<'py, PyBytes>, String);

#[pymethods]
impl StoreCheck {
    #[new]
    fn new(view: &View, first: Arg<u64>, roots: &[u8]) -> PyResult<Self> {
        let (roots, []) = roots.as_chunks::<32>() else {
            return Err(to_python(Error::invalid("a root has 32 bytes")));
        };
        let roots = roots.iter().map(Into::into).collect();
        Ok(Self(Check::new(view.view.clone(), first.0, roots)))
    }

    #[classattr]
    #[expect(non_snake_case, reason = "a constant of the class")]
    fn PARTS() -> [&'static str; 7] {
        Check::PARTS
    }

    fn run(&self, py: Python<'_>, part: Arg<String>) -> PyResult<()> {
        py.detach(|| self.0.run(&part.0)).map_err(to_python)
    }

    #[getter]
    fn progress(&self) -> (u64, u64) {
        self.0.progress.progress()
    }

    fn stop(&self) {
        self.0.progress.stop();
    }

    fn take<'py>(&self, py: Python<'py>) -> Vec<Told<'py>> {
        let as_tuple = |damage: Damage| (damage.table, PyBytes::new(py, &damage.key), damage.why);
        self.0.progress.take().into_iter().map(as_tuple).collect()
    }
}
