//! Python bindings of blocks under construction.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::B256;
use foreblock_engine::block_execution::{
    Added, BlockExecution as EngineExecution, BlockRules, Used,
};
use foreblock_engine::evm::allowance::Allowance as EngineAllowance;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::codec::{Header, Transaction};
use crate::convert::Arg;
use crate::env::Env;
use crate::error::to_python;
use crate::overlay::{Allowance, Overlay};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BlockExecution>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockExecution {
    overlay: Py<Overlay>,
    env: Py<Env>,
    execution: Mutex<EngineExecution>,
}

impl BlockExecution {
    fn execution(&self) -> MutexGuard<'_, EngineExecution> {
        self.execution.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[derive(FromPyObject)]
enum Transactions {
    Decoded(Vec<Py<Transaction>>),
    Encoded(Vec<PyBackedBytes>),
}

type Taken<'py> = (Bound<'py, PyList>, Bound<'py, PyBytes>, Bound<'py, PyList>, Bound<'py, PyList>);

#[pymethods]
impl BlockExecution {
    #[new]
    #[pyo3(signature = (overlay, env, *, deposit_receipt_version = None, max_blobs = None))]
    fn new(
        overlay: Py<Overlay>,
        env: Py<Env>,
        deposit_receipt_version: Option<Arg<u64>>,
        max_blobs: Option<Arg<u64>>,
    ) -> Self {
        let rules = BlockRules {
            deposit_receipt_version: deposit_receipt_version.map(|version| version.0),
            max_blobs: max_blobs.map(|most| most.0),
        };
        Self { overlay, env, execution: Mutex::new(EngineExecution::new(rules)) }
    }

    #[pyo3(
        signature = (
            header, transactions, receipts, *, logs, da_footprint = Arg(0), blobs = Arg(0),
            refunded = Arg(0)
        ),
        text_signature = "($self, header, transactions, receipts, *, logs, da_footprint=0, blobs=0, refunded=0)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn resume(
        &self,
        py: Python<'_>,
        header: &Header,
        transactions: Vec<PyBackedBytes>,
        receipts: Vec<PyBackedBytes>,
        logs: Arg<u64>,
        da_footprint: Arg<u64>,
        blobs: Arg<u64>,
        refunded: Arg<u64>,
    ) -> PyResult<()> {
        let used = Used {
            transactions: transactions.len() as u64,
            gas: header.0.gas_used,
            refunded: refunded.0,
            da_footprint: da_footprint.0,
            blobs: blobs.0,
            logs: logs.0,
            size: transactions.iter().map(|raw| raw.len() as u64).sum(),
        };
        let bloom = header.0.logs_bloom;
        py.detach(|| self.execution().resume(used, bloom, &transactions, &receipts))
            .map_err(to_python)
    }

    /// The refunds of the transactions that are executed from now on: index and gas.
    fn set_refunds(&self, refunds: Vec<(u64, u64)>) {
        self.execution().set_refunds(refunds.into());
    }

    #[pyo3(signature = (transactions, allowance = None, *, unsigned = false))]
    fn run(
        &self,
        py: Python<'_>,
        transactions: Transactions,
        allowance: Option<&Allowance>,
        unsigned: bool,
    ) -> PyResult<()> {
        let (overlay, env) = (self.overlay.get(), &self.env.get().0);
        py.detach(|| {
            let mut unlimited = EngineAllowance::default();
            let mut limited = allowance.map(Allowance::left);
            let allowance = limited.as_deref_mut().unwrap_or(&mut unlimited);
            let (mut execution, mut overlay) = (self.execution(), overlay.overlay());
            match transactions {
                Transactions::Decoded(all) => {
                    let all: Vec<_> = all.iter().map(|it| &it.get().0).collect();
                    execution.run(&mut overlay, env, &all, allowance)
                }
                Transactions::Encoded(raws) => {
                    execution.run_encoded(&mut overlay, env, raws, unsigned, allowance)
                }
            }
        })
        .map_err(to_python)
    }

    #[pyo3(
        signature = (
            transactions, receipts, *, gas_before, da_footprint = Arg(0), blobs = Arg(0)
        ),
        text_signature = "($self, transactions, receipts, *, gas_before, da_footprint=0, blobs=0)"
    )]
    fn adopt(
        &self,
        py: Python<'_>,
        transactions: Vec<Py<Transaction>>,
        receipts: Vec<PyBackedBytes>,
        gas_before: Arg<u64>,
        da_footprint: Arg<u64>,
        blobs: Arg<u64>,
    ) -> PyResult<()> {
        py.detach(|| {
            let all: Vec<_> = transactions.iter().map(|it| &it.get().0).collect();
            self.execution().adopt(&all, &receipts, gas_before.0, da_footprint.0, blobs.0)
        })
        .map_err(to_python)
    }

    #[getter]
    fn count(&self) -> u64 {
        self.execution().used().transactions
    }

    #[getter]
    fn gas_used(&self) -> u64 {
        self.execution().used().gas
    }

    /// Gas of the execution that is refunded, in addition to the gas used.
    #[getter]
    fn refunded(&self) -> u64 {
        self.execution().used().refunded
    }

    #[getter]
    fn da_footprint(&self) -> u64 {
        self.execution().used().da_footprint
    }

    #[getter]
    fn blobs(&self) -> u64 {
        self.execution().used().blobs
    }

    #[getter]
    fn log_count(&self) -> u64 {
        self.execution().used().logs
    }

    #[getter]
    fn size(&self) -> u64 {
        self.execution().used().size
    }

    #[getter]
    fn added(&self) -> usize {
        self.execution().added()
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Taken<'py>> {
        let Added { transactions, senders, receipts, hashes } = self.execution().take();
        let list =
            |items: Vec<Vec<u8>>| PyList::new(py, items.iter().map(|it| PyBytes::new(py, it)));
        let senders: Vec<u8> = senders.iter().flat_map(|sender| sender.0.0).collect();
        let hashes = PyList::new(py, hashes.iter().map(|hash| PyBytes::new(py, hash.as_slice())))?;
        Ok((list(transactions)?, PyBytes::new(py, &senders), list(receipts)?, hashes))
    }

    fn set_post_state(&self, root: Arg<B256>) -> PyResult<()> {
        self.execution().set_post_state(root.0).map_err(to_python)
    }

    fn fill(&self, py: Python<'_>, header: &Header) -> PyResult<Header> {
        let fields = header.0.fields().clone();
        py.detach(|| self.execution().fill(fields)).map(Header).map_err(to_python)
    }

    /// The header, and the receipt of the post-execution transaction.
    fn fill_with_end<'py>(
        &self,
        py: Python<'py>,
        header: &Header,
        raw: &[u8],
    ) -> PyResult<(Header, Bound<'py, PyBytes>)> {
        let fields = header.0.fields().clone();
        let (header, receipt) = self.execution().fill_with_end(fields, raw).map_err(to_python)?;
        Ok((Header(header), PyBytes::new(py, &receipt)))
    }
}
