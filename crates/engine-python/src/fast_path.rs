//! Python bindings of the fast path.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::{Address, Bytes};
use foreblock_engine::fast_path::{
    Bounds, FastPath as EngineFastPath, Head, LogIndex, Method, Snapshot, Tag, Timed,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, invalid, limits};
use crate::env::Env;
use crate::heads::Heads;
use crate::logs::{RunArg, run};
use crate::meter::{ANSWERED, Meter};
use crate::plain_simulation::BlockTemplate;
use crate::store::{Store, View};
use crate::stored::StoredBlock;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FastPath>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct FastPath {
    store: Py<Store>,
    path: EngineFastPath,
    meter: Option<Py<Meter>>,
    /// The meter rows of the methods.
    rows: Vec<usize>,
    /// Called with the name of every answered method.
    told: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl FastPath {
    #[new]
    #[pyo3(signature = (
        store, *, batch_items, batch_bytes, batch_us, call_gas, call_us, step_us,
        simulated_calls = Arg(0), simulated_output = Arg(0), simulation_us = Arg(0), meter = None,
        rows = vec![]
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn new(
        store: Py<Store>,
        batch_items: Arg<usize>,
        batch_bytes: Arg<usize>,
        batch_us: Arg<u64>,
        call_gas: Arg<u64>,
        call_us: Arg<u64>,
        step_us: Arg<u64>,
        simulated_calls: Arg<usize>,
        simulated_output: Arg<usize>,
        simulation_us: Arg<u64>,
        meter: Option<Py<Meter>>,
        rows: Vec<Arg<usize>>,
    ) -> Self {
        let bounds = Bounds {
            batch_items: batch_items.0,
            batch_bytes: batch_bytes.0,
            batch_time: Duration::from_micros(batch_us.0),
            call_gas: call_gas.0,
            call_time: Duration::from_micros(call_us.0),
            step_time: Duration::from_micros(step_us.0),
            simulated_calls: simulated_calls.0,
            simulated_output: simulated_output.0,
            simulation_time: Duration::from_micros(simulation_us.0),
        };
        let (path, told) = (EngineFastPath::new(bounds), Mutex::default());
        let rows = rows.into_iter().map(|row| row.0).collect();
        Self { store, path, meter, rows, told }
    }

    #[pyo3(signature = (head, length, status, headers, /, *, is_at_root = false))]
    fn cache_head(
        &self,
        head: &[u8],
        length: Arg<usize>,
        status: &[u8],
        headers: &[u8],
        is_at_root: bool,
    ) {
        let (status, headers) = (status.into(), headers.into());
        self.path.cache_head(head, Head { length: length.0, status, headers, is_at_root });
    }

    fn clear_heads(&self) {
        self.path.clear_heads();
    }

    #[pyo3(signature = (call, /))]
    fn tell(&self, call: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *self.told(), call);
        drop(before); // by now without the lock
    }

    #[pyo3(signature = (
        heads, headers, latest, pending = None, remaining_ns = None, latest_read_at = None,
        calls = true
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn set_snapshot(
        &self,
        heads: &Heads,
        headers: &[u8],
        latest: Arg<u64>,
        pending: Option<Arg<u64>>,
        remaining_ns: Option<Arg<u64>>,
        latest_read_at: Option<Arg<u64>>,
        calls: bool,
    ) {
        let until = remaining_ns.map(|left| Instant::now() + Duration::from_nanos(left.0));
        let (heads, pending) = (heads.0.clone(), pending.map(|number| number.0));
        let snapshot = Snapshot::new(heads, headers, latest.0, pending, until);
        let snapshot = snapshot.reading_latest_at(latest_read_at.map(|at| at.0));
        self.path.set_snapshot(snapshot.answering_calls(calls));
    }

    #[pyo3(signature = (heads, pending, tag, full, text))]
    fn cache_block(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        tag: Arg<String>,
        full: bool,
        text: &[u8],
    ) -> PyResult<()> {
        let (tag, pending) = (tag_argument(&tag.0)?, pending.map(|number| number.0));
        self.path.cache_block(&heads.0, pending, tag, full, Bytes::copy_from_slice(text));
        Ok(())
    }

    #[pyo3(signature = (heads, pending, runs, first, end, *, logs, distance = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn allow_logs(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        runs: Vec<RunArg>,
        first: Arg<u64>,
        end: Arg<u64>,
        logs: Arg<usize>,
        distance: Option<Arg<u64>>,
    ) {
        let (pending, distance) = (pending.map(|it| it.0), distance.map(|it| it.0));
        let runs = runs.into_iter().map(run).collect();
        let index = LogIndex { runs, first: first.0, end: end.0, distance, logs: logs.0 };
        self.path.allow_logs(&heads.0, pending, index);
    }

    fn cache_receipts(&self, view: &View, block: &StoredBlock) {
        self.path.cache_receipts(&view.view, &block.0);
    }

    #[pyo3(signature = (heads, pending, tag, env, to, data))]
    fn allow_call(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        tag: Arg<String>,
        env: &Env,
        to: Arg<Address>,
        data: &[u8],
    ) -> PyResult<()> {
        let (tag, pending) = (tag_argument(&tag.0)?, pending.map(|number| number.0));
        self.path.allow_call(&heads.0, pending, tag, &env.0, to.0, data);
        Ok(())
    }

    #[pyo3(signature = (heads, pending, tag, template))]
    fn allow_simulations(
        &self,
        heads: &Heads,
        pending: Option<Arg<u64>>,
        tag: Arg<String>,
        template: &BlockTemplate,
    ) -> PyResult<()> {
        let (tag, pending) = (tag_argument(&tag.0)?, pending.map(|number| number.0));
        self.path.allow_simulations(&heads.0, pending, tag, &template.0);
        Ok(())
    }

    #[pyo3(signature = (data, date, /))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        date: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let open = || self.store.get().view_now();
        let micros = |time: Duration| Some(Arg(time.as_micros() as u64));
        let within = |call, step| limits(micros(call), micros(step));
        let tell = self.told().as_ref().map(|call| call.clone_ref(py));
        let mut names = Vec::new();
        let write = |parts: &[&[u8]], timed: &[Timed]| {
            let answer = joined(py, parts)?;
            self.count(timed, data.len(), answer.as_bytes().len());
            if tell.is_some() {
                names.extend(timed.iter().map(|(method, _)| method.name()));
            }
            Ok(answer)
        };
        let answer = self.path.answer(data, date, open, within, write).transpose();
        if let Some(tell) = tell {
            // Called after the fast path's lock is released, because it may switch to other Python
            // threads.
            names.into_iter().try_for_each(|name| tell.call1(py, (name,)).map(drop))?;
        }
        answer
    }
}

impl FastPath {
    /// No Python code runs while this lock is held.
    fn told(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, timed: &[Timed], received: usize, sent: usize) {
        if let Some(meter) = self.meter.as_ref().map(Py::get) {
            meter.traffic(received, sent);
            let row = |method: Method| self.rows.get(method as usize).copied().unwrap_or_default();
            let rows = timed.iter().map(|&(method, took)| (row(method), took));
            meter.requests(rows, ANSWERED);
        }
    }
}

fn tag_argument(tag: &str) -> PyResult<Tag> {
    Tag::read(tag.as_bytes()).ok_or_else(|| invalid("tag: latest or pending"))
}

fn joined<'py>(py: Python<'py>, parts: &[&[u8]]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, parts.iter().map(|part| part.len()).sum(), |mut out| {
        for part in parts {
            let (here, rest) = out.split_at_mut(part.len());
            here.copy_from_slice(part);
            out = rest;
        }
        Ok(())
    })
}
