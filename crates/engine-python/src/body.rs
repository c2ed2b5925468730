//! Python bindings of blocks built from simulated calls.

use std::sync::{Arc, Mutex, MutexGuard};

use alloy_primitives::{Address, B256};
use foreblock_engine::codec::requests::deposit_requests;
use foreblock_engine::evm::execute::Options;
use foreblock_engine::simulate::body::{
    Body as EngineBody, CallView, CallsBudget, SealedBody as EngineBlock,
};
use pyo3::prelude::*;

use crate::codec::{Header, Transaction, WithdrawalTuple, withdrawals_of};
use crate::convert::{Arg, limits};
use crate::env::{Env, Message};
use crate::error::to_python;
use crate::outcome::Outcome;
use crate::overlay::{Overlay, Precompiles};
use crate::params::PlainCalls;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Body>()?;
    module.add_class::<SealedBody>()
}

/// A block under construction from calls executed on an overlay.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Body {
    overlay: Py<Overlay>,
    env: Py<Env>,
    precompiles: Option<Py<Precompiles>>,
    trace_transfers: bool,
    body: Mutex<EngineBody>,
}

impl Body {
    fn body(&self) -> MutexGuard<'_, EngineBody> {
        self.body.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Body {
    #[new]
    #[pyo3(signature = (overlay, env, precompiles = None, trace_transfers = false))]
    fn new(
        overlay: Py<Overlay>,
        env: Py<Env>,
        precompiles: Option<Py<Precompiles>>,
        trace_transfers: bool,
    ) -> Self {
        Self { overlay, env, precompiles, trace_transfers, body: Mutex::default() }
    }

    #[pyo3(signature = (
        message, r#type, nonce = None, *, env = None, check_base_fee = true, lowered = false,
        timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn run(
        &self,
        py: Python<'_>,
        message: &Message,
        r#type: Arg<u8>,
        nonce: Option<Arg<u64>>,
        env: Option<&Env>,
        check_base_fee: bool,
        lowered: bool,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<u64> {
        let shown = CallView { tx_type: r#type.0, nonce: nonce.map(|nonce| nonce.0), lowered };
        let options = Options {
            limits: limits(timeout_us, step_us),
            precompiles: self.precompiles.as_ref().map(|it| it.get().0.clone()),
            collect: None,
            check_base_fee,
            check_block_gas_limit: true,
        };
        let (overlay, env) = (self.overlay.get(), env.unwrap_or_else(|| self.env.get()));
        py.detach(|| {
            let (mut body, mut overlay) = (self.body(), overlay.overlay());
            body.run(&mut overlay, &env.0, &message.0, shown, self.trace_transfers, options)
        })
        .map_err(to_python)
    }

    #[pyo3(signature = (
        calls, start, r#type, gas_left, budget, timeout_us = None, step_us = None,
        slice_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "what a run needs, and what bounds it")]
    fn run_plain(
        &self,
        py: Python<'_>,
        calls: &PlainCalls,
        start: Arg<usize>,
        r#type: Arg<u8>,
        gas_left: Arg<u64>,
        budget: Arg<u64>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
        slice_us: Option<Arg<u64>>,
    ) -> PyResult<(usize, u64)> {
        let until = limits(slice_us, None).deadline;
        let budget = CallsBudget { block: gas_left.0, request: budget.0, until };
        let precompiles = self.precompiles.as_ref().map(|it| it.get().0.clone());
        let (timeout_us, step_us) = (timeout_us.map(|it| it.0), step_us.map(|it| it.0));
        let options = || Options {
            limits: limits(timeout_us.map(Arg), step_us.map(Arg)),
            precompiles: precompiles.clone(),
            check_base_fee: false,
            check_block_gas_limit: true,
            ..Options::default()
        };
        let (overlay, env, trace) = (self.overlay.get(), self.env.get(), self.trace_transfers);
        let ran = py.detach(|| {
            let rest = calls.0.get(start.0..).unwrap_or_default();
            let (mut body, mut overlay) = (self.body(), overlay.overlay());
            body.run_plain(&mut overlay, &env.0, rest, r#type.0, budget, trace, options)
        });
        let ran = ran.map_err(to_python)?;
        Ok((start.0 + ran.calls, ran.gas_used))
    }

    fn set_post_state(&self, root: Arg<B256>) {
        self.body().set_post_state(root.0);
    }

    #[getter]
    fn output_size(&self) -> usize {
        self.body().output_size()
    }

    fn deposit_requests(&self, contract: Arg<Address>) -> PyResult<Vec<u8>> {
        deposit_requests(self.body().logs(), contract.0).map(Into::into).map_err(to_python)
    }

    #[pyo3(signature = (
        header, state_root, blob_gas_used = None, requests_hash = None, withdrawals = None
    ))]
    fn seal(
        &self,
        py: Python<'_>,
        header: &Header,
        state_root: Arg<B256>,
        blob_gas_used: Option<Arg<u64>>,
        requests_hash: Option<Arg<B256>>,
        withdrawals: Option<Vec<WithdrawalTuple>>,
    ) -> PyResult<SealedBody> {
        let withdrawals = withdrawals.map(withdrawals_of);
        let mut fields = header.0.fields().clone();
        fields.state_root = state_root.0;
        fields.blob_gas_used = blob_gas_used.map(|gas| gas.0);
        fields.requests_hash = requests_hash.map(|hash| hash.0);
        let body = std::mem::take(&mut *self.body());
        let sealed = py.detach(|| body.seal(fields, withdrawals)).map_err(to_python)?;
        let block = &sealed.block;
        self.overlay.get().overlay().set_block_hash(block.header.number, block.hash);
        Ok(SealedBody(Arc::new(sealed)))
    }

    fn __len__(&self) -> usize {
        self.body().len()
    }
}

/// A finished block with the outcomes of its calls.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct SealedBody(pub Arc<EngineBlock>);

#[pymethods]
impl SealedBody {
    #[getter]
    fn header(&self) -> Header {
        Header(self.0.block.header.clone())
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.block.size
    }

    #[getter]
    fn outcomes(&self) -> Vec<Outcome> {
        self.0.outcomes().cloned().map(Outcome).collect()
    }

    fn transactions(&self) -> PyResult<Vec<Transaction>> {
        let transactions = self.0.transactions().map_err(to_python)?;
        Ok(transactions.into_iter().map(Transaction).collect())
    }
}
