//! Python bindings of traces of transactions and calls, and of access lists.

use std::sync::Mutex;

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::codec::json::{array, data};
use foreblock_engine::evm::execute::Options;
use foreblock_engine::evm::overlay::Override;
use foreblock_engine::tracing::access_list;
use foreblock_engine::tracing::run::{
    self, Cheat, PrestateOptions, Request, Selection, StructLogOptions, TraceScope, Traced,
    Tracer as EngineTracer,
};
use foreblock_engine::tracing::text::Chunks;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::codec::Transaction;
use crate::convert::{Arg, invalid, limits};
use crate::env::{Env, Message};
use crate::error::to_python;
use crate::outcome::Outcome;
use crate::overlay::{Overlay, Precompiles};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tracer>()?;
    module.add_class::<TraceText>()?;
    module.add_function(wrap_pyfunction!(trace_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(trace_call, module)?)?;
    module.add_function(wrap_pyfunction!(create_access_list, module)?)
}

/// The data to record and their output format.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Tracer(EngineTracer, Selection);

#[pymethods]
impl Tracer {
    #[new]
    #[pyo3(signature = (
        kind, *, memory = false, stack = true, storage = true, return_data = false, limit = Arg(0),
        only_top = false, with_logs = false, parity_errors = false, precompiles = false,
        diff = false, code = true, empty = false, trace = true, state_diff = false,
        vm_trace = false, senders = Vec::new(), receivers = Vec::new(), either = false,
        creations = false, skip = Arg(0), take = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    #[expect(clippy::fn_params_excessive_bools, reason = "options of tracers")]
    fn new(
        kind: &str,
        memory: bool,
        stack: bool,
        storage: bool,
        return_data: bool,
        limit: Arg<usize>,
        only_top: bool,
        with_logs: bool,
        parity_errors: bool,
        precompiles: bool,
        diff: bool,
        code: bool,
        empty: bool,
        trace: bool,
        state_diff: bool,
        vm_trace: bool,
        senders: Vec<Arg<Address>>,
        receivers: Vec<Arg<Address>>,
        either: bool,
        creations: bool,
        skip: Arg<u64>,
        take: Option<Arg<u64>>,
    ) -> PyResult<Self> {
        let limit = limit.0;
        let tracer = match kind {
            "structLogs" => EngineTracer::StructLogs(StructLogOptions {
                memory,
                stack,
                storage,
                return_data,
                limit,
            }),
            "calls" => EngineTracer::Calls { only_top, with_logs },
            "flatCalls" => EngineTracer::FlatCalls { parity_errors, precompiles },
            "prestate" => EngineTracer::Prestate(PrestateOptions { diff, code, storage, empty }),
            "selectors" => EngineTracer::Selectors,
            "nothing" => EngineTracer::Nothing,
            "parity" => EngineTracer::Parity,
            "entries" => EngineTracer::Entries,
            "operations" => EngineTracer::Operations,
            "revertData" => EngineTracer::RevertData,
            "touched" => EngineTracer::Touched,
            "replay" => EngineTracer::Replay { trace, state_diff, vm_trace },
            _ => return Err(invalid(format!("there is no tracer {kind:?}"))),
        };
        let addresses = |given: Vec<Arg<Address>>| given.into_iter().map(|it| it.0).collect();
        let selection = Selection {
            from: addresses(senders),
            to: addresses(receivers),
            either,
            creations,
            skip: skip.0,
            take: take.map(|take| take.0),
        };
        Ok(Self(tracer, selection))
    }
}

/// The JSON of a trace, read in pieces.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct TraceText {
    chunks: Mutex<Chunks>,
    length: usize,
    #[pyo3(get)]
    left: (u64, Option<u64>),
}

impl From<Traced> for TraceText {
    fn from((text, left): Traced) -> Self {
        let (length, left) = (text.len(), (left.skip, left.take));
        Self { chunks: Mutex::new(text.into_chunks()), length, left }
    }
}

#[pymethods]
impl TraceText {
    fn __len__(&self) -> usize {
        self.length
    }

    fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let mut chunks = self.chunks.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        chunks.next().map(|chunk| PyBytes::new(py, &chunk))
    }
}

/// The index of the transaction it precedes, an address, its balance, nonce, code and slots.
type CheatArgument = (
    Arg<usize>,
    Arg<Address>,
    Option<Arg<U256>>,
    Option<Arg<u64>>,
    Option<Arg<Bytes>>,
    Vec<(Arg<U256>, Arg<U256>)>,
);

fn cheat((before, address, balance, nonce, code, slots): CheatArgument) -> Cheat {
    let slots: Vec<_> = slots.into_iter().map(|(slot, value)| (slot.0, value.0)).collect();
    let new = Override {
        balance: balance.map(|it| it.0),
        nonce: nonce.map(|it| it.0),
        code: code.map(|it| it.0),
        state: None,
        state_diff: Some(slots).filter(|slots| !slots.is_empty()),
    };
    Cheat { before: before.0, address: address.0, new }
}

#[pyfunction]
#[pyo3(signature = (
    overlay, env, transactions, tracer, *, limit, only = None, each = false, block_hash = None,
    cheats = Vec::new(), refunds = Vec::new(), timeout_us = None, step_us = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
fn trace_transactions(
    py: Python<'_>,
    overlay: &Overlay,
    env: &Env,
    transactions: Vec<Py<Transaction>>,
    tracer: &Tracer,
    limit: Arg<usize>,
    only: Option<Arg<usize>>,
    each: bool,
    block_hash: Option<Arg<B256>>,
    cheats: Vec<CheatArgument>,
    refunds: Vec<(u64, u64)>,
    timeout_us: Option<Arg<u64>>,
    step_us: Option<Arg<u64>>,
) -> PyResult<TraceText> {
    let request = Request {
        tracer: tracer.0,
        cheats: cheats.into_iter().map(cheat).collect(),
        refunds: refunds.into(),
        scope: match only {
            Some(only) => TraceScope::Only(only.0),
            None if each => TraceScope::Each,
            None => TraceScope::All,
        },
        block_hash: block_hash.map(|hash| hash.0),
        selection: tracer.1.clone(),
        limit: limit.0,
        limits: limits(timeout_us, step_us),
    };
    let all = transactions.iter().map(|transaction| &transaction.get().0);
    let trace = || run::transactions(&mut overlay.overlay(), &env.0, all, request);
    py.detach(trace).map(TraceText::from).map_err(to_python)
}

#[pyfunction]
#[pyo3(signature = (
    overlay, env, message, tracer, *, limit, precompiles = None, timeout_us = None,
    step_us = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
fn trace_call(
    py: Python<'_>,
    overlay: &Overlay,
    env: &Env,
    message: &Message,
    tracer: &Tracer,
    limit: Arg<usize>,
    precompiles: Option<&Precompiles>,
    timeout_us: Option<Arg<u64>>,
    step_us: Option<Arg<u64>>,
) -> PyResult<TraceText> {
    let limits = limits(timeout_us, step_us);
    let request = Request {
        tracer: tracer.0,
        scope: TraceScope::All,
        block_hash: None,
        selection: tracer.1.clone(),
        limit: limit.0,
        limits: limits.clone(),
        cheats: Vec::new(),
        refunds: [].into(),
    };
    let precompiles = precompiles.map(|it| it.0.clone());
    let options = Options { limits, precompiles, ..Options::default() };
    let trace = || run::call(&mut overlay.overlay(), &env.0, &message.0, options, request);
    py.detach(trace).map(TraceText::from).map_err(to_python)
}

#[pyfunction]
#[pyo3(signature = (
    overlay, env, message, excluded, *, limit, precompiles = None, timeout_us = None,
    step_us = None
))]
#[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
fn create_access_list<'py>(
    py: Python<'py>,
    overlay: &Overlay,
    env: &Env,
    message: &Message,
    excluded: Vec<Arg<Address>>,
    limit: Arg<usize>,
    precompiles: Option<&Precompiles>,
    timeout_us: Option<Arg<u64>>,
    step_us: Option<Arg<u64>>,
) -> PyResult<(Bound<'py, PyBytes>, Outcome)> {
    let precompiles = precompiles.map(|it| it.0.clone());
    let limits = limits(timeout_us, step_us);
    let options = Options { limits, precompiles, ..Options::default() };
    let excluded: Vec<Address> = excluded.into_iter().map(|address| address.0).collect();
    let create = || {
        let mut overlay = overlay.overlay();
        access_list::create(&mut overlay, &env.0, &message.0, &options, excluded, limit.0)
    };
    let (list, outcome) = py.detach(create).map_err(to_python)?;
    let mut text = Vec::new();
    array(&mut text, list.iter(), |out, item| {
        out.extend_from_slice(b"{\"address\":");
        data(out, item.address);
        out.extend_from_slice(b",\"storageKeys\":");
        array(out, &item.storage_keys, data);
        out.push(b'}');
    });
    Ok((PyBytes::new(py, &text), Outcome::from(outcome)))
}
