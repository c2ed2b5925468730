//! Bytes of transactions, headers, blocks and receipts, for Python.

mod block;
mod header;
mod receipt;
mod transaction;

use alloy_primitives::Address;
use foreblock_engine as engine;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

pub use block::{Block, Withdrawal};
pub use header::Header;
pub use receipt::{Log, Receipt};
pub use transaction::{Authorization, Transaction};

use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Authorization>()?;
    module.add_class::<Transaction>()?;
    module.add_class::<Header>()?;
    module.add_class::<Withdrawal>()?;
    module.add_class::<Block>()?;
    module.add_class::<Log>()?;
    module.add_class::<Receipt>()?;
    module.add_function(wrap_pyfunction!(decode_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(decode_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(decode_header, module)?)?;
    module.add_function(wrap_pyfunction!(decode_block, module)?)?;
    module.add_function(wrap_pyfunction!(transactions_root, module)?)?;
    module.add_function(wrap_pyfunction!(receipts_root, module)?)?;
    module.add_function(wrap_pyfunction!(withdrawals_root, module)?)?;
    module.add_function(wrap_pyfunction!(ommers_hash, module)?)?;
    module.add_function(wrap_pyfunction!(logs_bloom, module)?)?;
    module.add_function(wrap_pyfunction!(deposit_requests, module)?)?;
    module.add_function(wrap_pyfunction!(requests_hash, module)?)?;
    module.add_function(wrap_pyfunction!(keccak256, module)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (raw, *, homestead = true))]
fn decode_transaction(raw: &[u8], homestead: bool) -> PyResult<Transaction> {
    engine::transaction::decode_at(raw, homestead).map(Transaction).map_err(to_python)
}

#[pyfunction]
#[pyo3(
    signature = (raws, threads = Arg(0), *, homestead = true),
    text_signature = "(raws, threads=0, *, homestead=True)"
)]
fn decode_transactions(
    py: Python<'_>,
    raws: Vec<PyBackedBytes>,
    threads: Arg<usize>,
    homestead: bool,
) -> PyResult<Vec<Transaction>> {
    let decoded = py.detach(|| engine::transaction::decode_all(&raws, homestead, threads.0));
    let named = |(index, result): (usize, engine::error::Result<_>)| {
        result.map(Transaction).map_err(|error| to_python(at_index(index, error)))
    };
    decoded.into_iter().enumerate().map(named).collect()
}

fn at_index(index: usize, error: engine::error::Error) -> engine::error::Error {
    match error {
        engine::error::Error::Undecodable { what, why } => {
            engine::error::Error::Undecodable { what, why: format!("index {index}: {why}") }
        }
        other => other,
    }
}

#[pyfunction]
fn decode_header(encoded: &[u8]) -> PyResult<Header> {
    engine::header::Header::decode(encoded).map(Header).map_err(to_python)
}

#[pyfunction]
#[pyo3(signature = (buffer, offset = Arg(0)), text_signature = "(buffer, offset=0)")]
fn decode_block(py: Python<'_>, buffer: &[u8], offset: Arg<usize>) -> PyResult<(Block, usize)> {
    let length = buffer.len();
    let rest = buffer.get(offset.0..).ok_or_else(|| {
        invalid(format!("offset {} lies beyond the {length} bytes of the buffer", offset.0))
    })?;
    let (block, consumed) = py.detach(|| engine::block::decode_block(rest)).map_err(to_python)?;
    Ok((Block(block), offset.0 + consumed))
}

#[pyfunction]
fn transactions_root(py: Python<'_>, raws: Vec<PyBackedBytes>) -> [u8; 32] {
    py.detach(|| engine::block::transactions_root(&raws)).0
}

#[pyfunction]
fn receipts_root(py: Python<'_>, receipts: Vec<Py<Receipt>>) -> [u8; 32] {
    let receipts: Vec<_> = receipts.iter().map(|receipt| &receipt.get().0).collect();
    py.detach(|| engine::receipt::receipts_root(&receipts)).0
}

#[pyfunction]
fn withdrawals_root(withdrawals: Vec<Py<Withdrawal>>) -> [u8; 32] {
    let withdrawals: Vec<_> = withdrawals.iter().map(|each| each.get().0).collect();
    engine::block::withdrawals_root(&withdrawals).0
}

#[pyfunction]
fn ommers_hash(uncles: Vec<Py<Header>>) -> [u8; 32] {
    let uncles: Vec<_> = uncles.iter().map(|uncle| uncle.get().0.clone()).collect();
    engine::block::ommers_hash(&uncles).0
}

#[pyfunction]
fn logs_bloom(receipts: Vec<Py<Receipt>>) -> [u8; 256] {
    engine::receipt::logs_bloom(receipts.iter().map(|receipt| &receipt.get().0)).into_array()
}

#[pyfunction]
fn deposit_requests(receipts: Vec<Py<Receipt>>, contract: Arg<Address>) -> PyResult<Vec<u8>> {
    let logs = receipts.iter().flat_map(|receipt| &receipt.get().0.logs);
    engine::requests::deposit_requests(logs, contract.0).map(Into::into).map_err(to_python)
}

#[pyfunction]
fn requests_hash(requests: Vec<Pair<Arg<u8>, PyBackedBytes>>) -> [u8; 32] {
    let requests: Vec<_> = requests.into_iter().map(|Pair(kind, data)| (kind.0, data)).collect();
    engine::requests::requests_hash(&requests).0
}

#[pyfunction]
fn keccak256(data: &[u8]) -> [u8; 32] {
    alloy_primitives::keccak256(data).0
}
