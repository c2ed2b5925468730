//! Python bindings of the parameter parsers in `foreblock_engine::params`.
//!
//! Data that can be large stay in the engine: overrides, plain calls, access lists.

use std::mem;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use foreblock_engine::params::{
    self, BlockName, BlockOverrides, Call, CallParams, Calls, Limits, Overrides as EngineOverrides,
    PlainCall, Refused, SimulateParams,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::codec::{Authorization, withdrawal_fields};
use crate::convert::{Arg, Class, Integer, invalid};
use crate::env::{AccessList, parse_rules};
use crate::error::to_python;
use crate::overlay::{Overlay, Precompiles};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Overrides>()?;
    module.add_class::<PlainCalls>()?;
    module.add_function(wrap_pyfunction!(read_call, module)?)?;
    module.add_function(wrap_pyfunction!(read_simulation, module)?)
}

/// `errors.Rule.LIMIT`.
const LIMIT: &str = "limit of the service";

/// From this size on, parsing takes longer than releasing the interpreter.
const LONG: usize = 16 * 1024;

/// State overrides: accounts and block hashes.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Overrides(pub Arc<EngineOverrides>);

#[pymethods]
impl Overrides {
    #[getter]
    fn is_large(&self) -> bool {
        self.0.is_large()
    }

    #[pyo3(signature = (overlay, rules, /))]
    fn apply_to(
        &self,
        py: Python<'_>,
        overlay: &Overlay,
        rules: Arg<String>,
    ) -> PyResult<Option<Precompiles>> {
        let rules = parse_rules(&rules.0)?;
        let apply_to = || self.0.apply_to(&mut overlay.overlay(), rules);
        let applied = if self.0.is_large() { py.detach(apply_to) } else { apply_to() };
        Ok(applied.map_err(to_python)?.map(|left| Precompiles(Arc::new(left))))
    }
}

impl Drop for Overrides {
    /// Frees large overrides on a separate thread.
    fn drop(&mut self) {
        if self.0.is_large() {
            let overrides = mem::take(&mut self.0);
            // If no thread can be started, they are dropped here.
            let _ = std::thread::Builder::new().spawn(move || drop(overrides));
        }
    }
}

/// Calls with only sender, recipient, value, data and gas, to be executed as one batch.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct PlainCalls(pub Arc<Vec<PlainCall>>);

type PlainFields<'py> =
    (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>, Integer, Bound<'py, PyBytes>, Option<u64>);

#[pymethods]
impl PlainCalls {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Arg<usize>) -> PyResult<PlainFields<'py>> {
        let Some(PlainCall { message, gas }) = self.0.get(index.0) else {
            return Err(PyIndexError::new_err(format!("there are {} calls", self.0.len())));
        };
        Ok((
            PyBytes::new(py, message.from.as_slice()),
            message.to.map(|to| PyBytes::new(py, to.as_slice())),
            Integer(message.value),
            PyBytes::new(py, &message.data),
            *gas,
        ))
    }
}

#[pyfunction]
#[pyo3(signature = (params, required, creates, /))]
fn read_call(
    py: Python<'_>,
    params: PyBuffer<u8>,
    required: Arg<usize>,
    creates: bool,
) -> PyResult<Py<PyAny>> {
    let text = bytes_of(&params)?;
    let read = off_the_lock(py, text, |text| CallParams::read(text, required.0, creates));
    let read = read.map_err(|why| refused(py, why))?;
    let (overrides, changes, refusal) = match read.overrides {
        Ok((overrides, changes)) => (overrides, changes, None),
        Err(why) => (EngineOverrides::default(), None, Some(refused(py, why).into_value(py))),
    };
    let call = call_fields(py, read.call)?;
    let block = read.block.map(|block| block_of(py, block));
    let overrides = overrides_of(overrides);
    let changes = changes.map(|changes| block_fields(py, changes)).transpose()?;
    Ok((call, block, overrides, changes, refusal).into_pyobject(py)?.into_any().unbind())
}

#[pyfunction]
#[pyo3(signature = (params, required, blocks, block_calls, calls, /))]
fn read_simulation(
    py: Python<'_>,
    params: PyBuffer<u8>,
    required: Arg<usize>,
    blocks: Arg<usize>,
    block_calls: Arg<usize>,
    calls: Arg<usize>,
) -> PyResult<Py<PyAny>> {
    let limits = Limits { blocks: blocks.0, block_calls: block_calls.0, calls: calls.0 };
    let text = bytes_of(&params)?;
    let read = off_the_lock(py, text, |text| SimulateParams::read(text, required.0, limits));
    let read = read.map_err(|why| refused(py, why))?;
    let one = |block: params::Block| -> PyResult<_> {
        let overrides = overrides_of(block.overrides);
        let changes = block.changes.map(|changes| block_fields(py, changes)).transpose()?;
        Ok((calls_of(py, block.calls)?, overrides, changes))
    };
    let blocks: Vec<_> = read.blocks.into_iter().map(one).collect::<PyResult<_>>()?;
    let block = read.block.map(|block| block_of(py, block));
    let switches = (read.validation, read.trace_transfers, read.full_transactions);
    Ok((blocks, switches, block).into_pyobject(py)?.into_any().unbind())
}

/// The bytes of a read-only buffer.
fn bytes_of(buffer: &PyBuffer<u8>) -> PyResult<&[u8]> {
    let Some(text) = buffer.as_slice_ptr().filter(|_| buffer.readonly()) else {
        return Err(invalid("the text must lie in one piece and stay as it is"));
    };
    // SAFETY: the buffer keeps its bytes in place while it exists, and they are read-only.
    Ok(unsafe { text.as_ref() })
}

fn off_the_lock<'a, T: Send>(
    py: Python<'_>,
    text: &'a [u8],
    read: impl FnOnce(&'a [u8]) -> T + Send,
) -> T {
    if text.len() >= LONG { py.detach(|| read(text)) } else { read(text) }
}

fn block_of<'py>(py: Python<'py>, block: BlockName<'_>) -> Bound<'py, PyAny> {
    match block {
        BlockName::Plain(text) => PyString::new(py, text).into_any(),
        BlockName::Json(json) => PyBytes::new(py, json).into_any(),
    }
}

fn overrides_of(overrides: EngineOverrides) -> Option<Overrides> {
    (!overrides.is_empty()).then(|| Overrides(Arc::new(overrides)))
}

fn calls_of(py: Python<'_>, calls: Calls) -> PyResult<Py<PyAny>> {
    match calls {
        Calls::Plain(calls) => Ok(Py::new(py, PlainCalls(Arc::new(calls)))?.into_any()),
        Calls::Any(calls) => {
            let calls = calls.into_iter().map(|call| call_fields(py, call));
            let calls = calls.collect::<PyResult<Vec<_>>>()?;
            Ok(calls.into_pyobject(py)?.into_any().unbind())
        }
    }
}

fn call_fields(py: Python<'_>, call: Call) -> PyResult<Py<PyAny>> {
    let rest = match call.rest {
        None => None,
        Some(rest) => {
            let authorizations = rest
                .authorizations
                .map(|entries| entries.into_iter().map(Authorization).collect::<Vec<_>>());
            let hashes = rest.blob_hashes.map(|hashes| {
                hashes.iter().map(|hash| PyBytes::new(py, hash.as_slice())).collect::<Vec<_>>()
            });
            let list = Some(AccessList(rest.access_list)).filter(|list| !list.0.is_empty());
            Some((
                false, // it is not plain
                rest.chain_id.map(Integer),
                rest.gas_price.map(Integer),
                rest.max_fee_per_gas.map(Integer),
                rest.max_priority_fee_per_gas.map(Integer),
                list,
                hashes,
                rest.max_fee_per_blob_gas.map(Integer),
                authorizations,
            ))
        }
    };
    let fields = (
        call.to.map(|to| PyBytes::new(py, to.as_slice())),
        PyBytes::new(py, call.from.as_slice()),
        PyBytes::new(py, &call.data),
        Integer(call.value),
        call.gas,
        call.nonce,
        rest,
    );
    Ok(fields.into_pyobject(py)?.into_any().unbind())
}

fn block_fields(py: Python<'_>, changes: BlockOverrides) -> PyResult<Py<PyAny>> {
    let hash = |hash: B256| PyBytes::new(py, hash.as_slice());
    let withdrawals =
        changes.withdrawals.map(|list| list.iter().map(withdrawal_fields).collect::<Vec<_>>());
    let fields = (
        changes.number,
        changes.timestamp,
        changes.difficulty.map(Integer),
        changes.gas_limit,
        changes.beneficiary.map(|who: Address| PyBytes::new(py, who.as_slice())),
        changes.mix_hash.map(hash),
        changes.base_fee_per_gas,
        changes.blob_base_fee.map(Integer),
        changes.parent_beacon_block_root.map(hash),
        withdrawals,
    );
    Ok(fields.into_pyobject(py)?.into_any().unbind())
}

fn refused(py: Python<'_>, why: Refused) -> PyErr {
    let new = Class(py);
    let made = match why {
        Refused::Argument { argument, refusal } => {
            let path = refusal.path();
            new.call("BadArgument", (refusal.why, argument, path))
        }
        Refused::Params(why) => new.call("InvalidParams", (why,)),
        Refused::Override(why) => new.call("RefusedOverride", (why,)),
        Refused::Limit(why) => new.call("RefusedSimulation", (LIMIT, why)),
    };
    made.map_or_else(|failure| failure, PyErr::from_value)
}
