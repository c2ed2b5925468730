//! Python bindings of block templates, which are shared by all simulations on the same block.

use alloy_primitives::{Address, B256, Bytes};
use foreblock_engine::evm::overlay::Overlay as EngineOverlay;
use foreblock_engine::simulate::block_template::{Asked, BlockTemplate as EngineBlockTemplate};
use pyo3::prelude::*;

use crate::body::Body;
use crate::convert::{Arg, Pair};
use crate::env::{Env, limits};
use crate::error::to_python;
use crate::overlay::Overlay;
use crate::params::{Overrides, PlainCalls};
use crate::state::State;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockTemplate>()
}

/// The start of a simulated block on top of a given parent.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockTemplate {
    env: Py<Env>,
    template: EngineBlockTemplate,
}

#[pymethods]
impl BlockTemplate {
    #[new]
    fn new(
        env: Py<Env>,
        r#type: Arg<u8>,
        parent_number: Arg<u64>,
        parent_hash: Arg<B256>,
        system_calls: Vec<Pair<Arg<Address>, Arg<Bytes>>>,
    ) -> Self {
        let system_calls =
            system_calls.into_iter().map(|Pair(contract, data)| (contract.0, data.0)).collect();
        let parent = (parent_number.0, parent_hash.0);
        Self { env, template: EngineBlockTemplate { tx_type: r#type.0, parent, system_calls } }
    }

    #[pyo3(signature = (
        state, calls, overrides, budget, timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "what is asked for, and what bounds it")]
    fn run_calls(
        &self,
        py: Python<'_>,
        state: &State,
        calls: &PlainCalls,
        overrides: Option<&Overrides>,
        budget: Arg<u64>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Option<Body>> {
        let overrides = overrides.map(|them| &them.0);
        let asked = Asked { overrides, calls: &calls.0, gas: budget.0 };
        let (env, limits) = (&self.env.get().0, limits(timeout_us, step_us));
        let mut overlay = EngineOverlay::new(Box::new(state.0.clone()));
        let filled = py.detach(|| self.template.run_calls(&mut overlay, env, &asked, &limits));
        let Some(body) = filled.map_err(to_python)? else { return Ok(None) };
        let overlay = Py::new(py, Overlay::of(overlay))?;
        Ok(Some(Body::filled(overlay, self.env.clone_ref(py), body)))
    }
}
