//! Threads for long calls, for Python.

use std::os::fd::{AsRawFd, RawFd};

use foreblock_engine::execute::{self, Options};
use foreblock_engine::pool;
use pyo3::prelude::*;

use crate::convert::Arg;
use crate::env::{Env, Message, limits};
use crate::error::to_python;
use crate::outcome::Outcome;
use crate::overlay::{Overlay, Precompiles};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Pool>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Pool(pool::Pool);

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (*, threads, capacity, nice = Arg(10)))]
    fn new(threads: Arg<usize>, capacity: Arg<usize>, nice: Arg<u8>) -> PyResult<Self> {
        pool::Pool::new(threads.0, capacity.0, nice.0).map(Self).map_err(to_python)
    }

    #[pyo3(signature = (
        id, overlay, env, message, *, check_base_fee = true, check_block_gas_limit = false,
        precompiles = None, timeout_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn submit(
        &self,
        id: Arg<u64>,
        overlay: &Overlay,
        env: &Env,
        message: &Message,
        check_base_fee: bool,
        check_block_gas_limit: bool,
        precompiles: Option<&Precompiles>,
        timeout_us: Option<Arg<u64>>,
    ) -> PyResult<()> {
        let mut options = Options {
            limits: limits(timeout_us, None),
            precompiles: precompiles.map(|it| it.0.clone()),
            collect: None,
            check_base_fee,
            check_block_gas_limit,
        };
        let (mut overlay, env, message) = (overlay.give_away(), env.0.clone(), message.0.clone());
        let job = move |cancel: &std::sync::Arc<std::sync::atomic::AtomicBool>| {
            options.limits.cancel = Some(cancel.clone());
            execute::call(&mut overlay, &env, &message, options)
        };
        self.0.submit(id.0, job).map_err(to_python)
    }

    fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// What is done: the outcome, or the exception that prevented one.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<(u64, Py<PyAny>)>> {
        let value = |result| -> PyResult<Py<PyAny>> {
            match result {
                Ok(outcome) => Ok(Py::new(py, Outcome::from(outcome))?.into_any()),
                Err(error) => Ok(to_python(error).into_value(py).into_any()),
            }
        };
        self.0.take().into_iter().map(|(id, result)| Ok((id, value(result)?))).collect()
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}
