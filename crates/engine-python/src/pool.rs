//! Python bindings of the thread pool for long operations.

use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use foreblock_engine::deadline::Limits;
use foreblock_engine::evm::execute::{self, Options};
use foreblock_engine::evm::outcome::Outcome as EngineOutcome;
use foreblock_engine::pool::{self, Asker, Size};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{Arg, CURRENT};
use crate::env::{Env, Message};
use crate::error::to_python;
use crate::outcome::Outcome;
use crate::overlay::{Overlay, Precompiles};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Pool>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Pool(pool::Pool<Done>);

/// The result of a job.
enum Done {
    Called(EngineOutcome),
    /// The return value or exception of Python code.
    Worked(PyResult<Py<PyAny>>),
}

fn held_bytes(done: &Done) -> usize {
    match done {
        Done::Called(outcome) => outcome.output.len(),
        Done::Worked(_) => 0,
    }
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (*, threads, capacity, begun = None, nice = Arg(10)))]
    fn new(
        threads: Arg<usize>,
        capacity: Arg<usize>,
        begun: Option<Arg<usize>>,
        nice: Arg<u8>,
    ) -> PyResult<Self> {
        let begun = begun.map_or(threads.0, |begun| begun.0);
        let size = Size { running: threads.0, begun, waiting: capacity.0, nice: nice.0 };
        pool::Pool::new(size, held_bytes).map(Self).map_err(to_python)
    }

    #[pyo3(signature = (
        number, overlay, env, message, *, address = Arg(0), check_base_fee = true,
        check_block_gas_limit = false, precompiles = None, timeout_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn submit(
        &self,
        number: Arg<u64>,
        overlay: &Overlay,
        env: &Env,
        message: &Message,
        address: Arg<u64>,
        check_base_fee: bool,
        check_block_gas_limit: bool,
        precompiles: Option<&Precompiles>,
        timeout_us: Option<Arg<u64>>,
    ) -> PyResult<()> {
        let precompiles = precompiles.map(|it| it.0.clone());
        let (mut overlay, env, message) = (overlay.give_away(), env.0.clone(), message.0.clone());
        let job = move |limits| {
            let collect = None;
            let options =
                Options { limits, precompiles, collect, check_base_fee, check_block_gas_limit };
            execute::call(&mut overlay, &env, &message, options).map(Done::Called)
        };
        self.0.submit(number.0, asker(address, timeout_us), job).map_err(to_python)
    }

    #[pyo3(signature = (number, work, *, address = Arg(0), timeout_us = None))]
    fn submit_work(
        &self,
        number: Arg<u64>,
        work: Py<PyAny>,
        address: Arg<u64>,
        timeout_us: Option<Arg<u64>>,
    ) -> PyResult<()> {
        let job = move |limits: Limits| Ok(Done::Worked(run_here(&work, limits)));
        self.0.submit(number.0, asker(address, timeout_us), job).map_err(to_python)
    }

    fn cancel(&self, number: Arg<u64>) {
        self.0.cancel(number.0);
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }

    fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The completed jobs with their results or exceptions.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<(u64, Py<PyAny>, bool)>> {
        let value = |result| -> PyResult<(Py<PyAny>, bool)> {
            match result {
                Ok(Done::Called(outcome)) => {
                    Ok((Py::new(py, Outcome::from(outcome))?.into_any(), true))
                }
                Ok(Done::Worked(Ok(value))) => Ok((value, true)),
                Ok(Done::Worked(Err(raised))) => Ok((raised.into_value(py).into_any(), false)),
                Err(error) => Ok((to_python(error).into_value(py).into_any(), false)),
            }
        };
        let told = |(number, result)| value(result).map(|(value, well)| (number, value, well));
        self.0.take().into_iter().map(told).collect()
    }

    #[getter]
    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

fn asker(address: Arg<u64>, timeout_us: Option<Arg<u64>>) -> Asker {
    let from_now = |timeout: Arg<u64>| Instant::now().checked_add(Duration::from_micros(timeout.0));
    Asker { address: address.0, deadline: timeout_us.and_then(from_now) }
}

/// Calls Python code with the remaining time, under the limits of the job.
fn run_here(work: &Py<PyAny>, limits: Limits) -> PyResult<Py<PyAny>> {
    let left = limits.deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_micros()).unwrap_or(u64::MAX)
    });
    CURRENT.set(Some(limits));
    let done = Python::attach(|py| {
        let keywords = PyDict::new(py);
        keywords.set_item("timeout_us", left)?;
        work.call(py, (), Some(&keywords))
    });
    CURRENT.set(None);
    done
}
