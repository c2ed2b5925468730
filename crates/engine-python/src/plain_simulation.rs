//! Python bindings of simulations of plain calls.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::evm::overlay::Overlay as EngineOverlay;
use foreblock_engine::params::PlainBlock;
use foreblock_engine::simulate::plain_simulation::{
    BlockTemplate as EngineTemplate, Budget, Footprint, PlainSimulation as EngineSimulation,
    Progress,
};
use foreblock_engine::simulate::text::Dialect;
use foreblock_engine::simulate::text::SimulationText as EngineText;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::body::SealedBody;
use crate::codec::Header;
use crate::convert::{Arg, Pair, invalid, limits};
use crate::env::Env;
use crate::error::to_python;
use crate::params::{Overrides, PlainCalls};
use crate::state::State;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockTemplate>()?;
    module.add_class::<PlainSimulation>()?;
    module.add_class::<SimulationText>()
}

/// The size of each call, and the contract, slot and lowest bit of its price.
type FootprintArgument = (Arg<u64>, Arg<Address>, Arg<U256>, Arg<usize>);

/// The first simulated block after a base, shared by all simulations on it.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockTemplate(pub Arc<EngineTemplate>);

#[pymethods]
impl BlockTemplate {
    #[new]
    #[pyo3(signature = (
        env, header, r#type, block_time, system_calls, *, footprint = None,
        has_withdrawals = false
    ))]
    fn new(
        env: &Env,
        header: &Header,
        r#type: Arg<u8>,
        block_time: Arg<u64>,
        system_calls: Vec<Pair<Arg<Address>, Option<Arg<B256>>>>,
        footprint: Option<FootprintArgument>,
        has_withdrawals: bool,
    ) -> Self {
        let system_calls = system_calls.into_iter();
        Self(Arc::new(EngineTemplate {
            env: (*env.0).clone(),
            header: header.0.fields().clone(),
            tx_type: r#type.0,
            block_time: block_time.0,
            system_calls: system_calls.map(|Pair(to, data)| (to.0, data.map(|it| it.0))).collect(),
            footprint: footprint.map(|(size, contract, slot, shift)| Footprint {
                size: size.0,
                contract: contract.0,
                slot: slot.0,
                shift: shift.0,
            }),
            has_withdrawals,
        }))
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct PlainSimulation(Mutex<EngineSimulation>);

impl PlainSimulation {
    fn simulation(&self) -> MutexGuard<'_, EngineSimulation> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl PlainSimulation {
    #[new]
    #[pyo3(signature = (template, state, blocks, *, gas, output))]
    fn new(
        template: &BlockTemplate,
        state: &State,
        blocks: Vec<Pair<PyRef<'_, PlainCalls>, Option<PyRef<'_, Overrides>>>>,
        gas: Arg<u64>,
        output: Arg<usize>,
    ) -> Self {
        let blocks = blocks.into_iter().map(|Pair(calls, overrides)| PlainBlock {
            overrides: overrides.map(|them| them.0.clone()),
            calls: calls.0.clone(),
        });
        let overlay = EngineOverlay::new(Box::new(state.0.clone()));
        let budget = Budget { gas: gas.0, output: output.0 };
        let simulation =
            EngineSimulation::new(overlay, (*template.0).clone(), blocks.collect(), budget);
        Self(Mutex::new(simulation))
    }

    #[pyo3(signature = (slice_us = None, timeout_us = None, step_us = None))]
    fn run(
        &self,
        py: Python<'_>,
        slice_us: Option<Arg<u64>>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<&'static str> {
        let until = limits(slice_us, None).deadline;
        let limits = limits(timeout_us, step_us);
        let progress = py.detach(|| self.simulation().run(until, &limits)).map_err(to_python)?;
        Ok(match progress {
            Progress::Finished => "finished",
            Progress::Paused => "paused",
            Progress::Stopped => "stopped",
        })
    }

    fn take(&self) -> Vec<SealedBody> {
        self.simulation().take().into_iter().map(|block| SealedBody(Arc::new(block))).collect()
    }
}

/// The JSON of simulated blocks, written in pieces.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct SimulationText(Mutex<EngineText>);

#[pymethods]
impl SimulationText {
    #[new]
    #[pyo3(signature = (blocks, dialect, transactions = vec![]))]
    fn new(
        blocks: Vec<PyRef<'_, SealedBody>>,
        dialect: Arg<String>,
        transactions: Vec<Arg<Bytes>>,
    ) -> PyResult<Self> {
        let dialect = Dialect::read(&dialect.0);
        let dialect = dialect.ok_or_else(|| invalid("dialect: preconf or ethereum"))?;
        let blocks = blocks.iter().map(|block| block.0.clone()).collect();
        let transactions = transactions.into_iter().map(|array| array.0).collect();
        Ok(Self(Mutex::new(EngineText::new(blocks, transactions, dialect))))
    }

    #[pyo3(signature = (bytes, /))]
    fn take<'py>(&self, py: Python<'py>, bytes: Arg<usize>) -> Bound<'py, PyBytes> {
        let mut text = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        PyBytes::new(py, text.take(bytes.0))
    }
}
