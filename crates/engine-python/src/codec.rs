//! Python bindings of the encodings of transactions, headers, blocks and receipts.

mod block;
mod header;
mod receipt;
mod transaction;

use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use foreblock_engine as engine;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

pub use block::{Block, WithdrawalTuple, withdrawal_fields, withdrawals_of};
pub use header::Header;
pub use receipt::{LogFields, Receipt, log_fields, log_tuple};
pub use transaction::{Authorization, Transaction};

use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Authorization>()?;
    module.add_class::<Transaction>()?;
    module.add_class::<Header>()?;
    module.add_class::<Block>()?;
    module.add_class::<Receipt>()?;
    module.add_function(wrap_pyfunction!(decode_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(decode_transactions, module)?)?;
    module.add_function(wrap_pyfunction!(deposit_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(post_exec_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(estimated_compressed_size, module)?)?;
    module.add_function(wrap_pyfunction!(decode_receipt, module)?)?;
    module.add_function(wrap_pyfunction!(decode_header, module)?)?;
    module.add_function(wrap_pyfunction!(decode_block, module)?)?;
    module.add_function(wrap_pyfunction!(transactions_root, module)?)?;
    module.add_function(wrap_pyfunction!(withdrawals_root, module)?)?;
    module.add_function(wrap_pyfunction!(ommers_hash, module)?)?;
    module.add_function(wrap_pyfunction!(logs_bloom, module)?)?;
    module.add_function(wrap_pyfunction!(deposit_requests, module)?)?;
    module.add_function(wrap_pyfunction!(requests_hash, module)?)?;
    module.add_function(wrap_pyfunction!(keccak256, module)?)?;
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (raw, *, homestead = true, unsigned = false))]
fn decode_transaction(raw: &[u8], homestead: bool, unsigned: bool) -> PyResult<Transaction> {
    engine::codec::transaction::decode_one(raw, homestead, unsigned)
        .map(Transaction)
        .map_err(to_python)
}

#[pyfunction]
#[pyo3(
    signature = (raws, threads = Arg(0), *, homestead = true, unsigned = false, senders = None),
    text_signature = "(raws, threads=0, *, homestead=True, unsigned=False, senders=None)"
)]
fn decode_transactions(
    py: Python<'_>,
    raws: Vec<PyBackedBytes>,
    threads: Arg<usize>,
    homestead: bool,
    unsigned: bool,
    senders: Option<Vec<Arg<Address>>>,
) -> PyResult<Vec<Transaction>> {
    use engine::codec::transaction::{decode_all, decode_known};
    let decoded = match senders {
        None => py.detach(|| decode_all(raws, homestead, unsigned, threads.0)),
        Some(senders) if senders.len() == raws.len() => {
            let known = raws.iter().zip(senders).enumerate();
            known
                .map(|(index, (raw, Arg(who)))| {
                    decode_known(raw, who).map_err(|error| error.at_index(index))
                })
                .collect()
        }
        Some(senders) => {
            let (found, wanted) = (senders.len(), raws.len());
            return Err(invalid(format!("{found} senders of {wanted} transactions")));
        }
    };
    Ok(decoded.map_err(to_python)?.into_iter().map(Transaction).collect())
}

#[pyfunction]
#[pyo3(signature = (*, source_hash, sender, to, mint, value, gas_limit, input))]
fn deposit_transaction(
    source_hash: Arg<B256>,
    sender: Arg<Address>,
    to: Option<Arg<Address>>,
    mint: Arg<U256>,
    value: Arg<U256>,
    gas_limit: Arg<u64>,
    input: Arg<Bytes>,
) -> PyResult<Transaction> {
    let mint = u128::try_from(mint.0).map_err(|_| invalid("a mint has at most 128 bits"))?;
    Ok(Transaction(engine::codec::transaction::deposit(engine::codec::transaction::TxDeposit {
        source_hash: source_hash.0,
        from: sender.0,
        to: to.map_or(TxKind::Create, |to| TxKind::Call(to.0)),
        mint,
        value: value.0,
        gas_limit: gas_limit.0,
        is_system_transaction: false,
        input: input.0,
    })))
}

/// The transaction that ends a block with these refunds: index and gas.
#[pyfunction]
fn post_exec_transaction(block_number: Arg<u64>, refunds: Vec<(u64, u64)>) -> Transaction {
    Transaction(engine::codec::transaction::post_exec_of(block_number.0, &refunds))
}

#[pyfunction]
fn estimated_compressed_size(raw: &[u8]) -> u64 {
    engine::evm::transact::estimated_compressed_size(raw)
}

#[pyfunction]
fn decode_receipt(encoded: &[u8]) -> PyResult<Receipt> {
    engine::codec::receipt::Receipt::decode(encoded).map(Receipt).map_err(to_python)
}

#[pyfunction]
fn decode_header(encoded: &[u8]) -> PyResult<Header> {
    engine::codec::header::Header::decode(encoded).map(Header).map_err(to_python)
}

#[pyfunction]
#[pyo3(signature = (buffer, offset = Arg(0)), text_signature = "(buffer, offset=0)")]
fn decode_block(py: Python<'_>, buffer: &[u8], offset: Arg<usize>) -> PyResult<(Block, usize)> {
    let length = buffer.len();
    let rest = buffer.get(offset.0..).ok_or_else(|| {
        invalid(format!("offset {} lies beyond the {length} bytes of the buffer", offset.0))
    })?;
    let (block, consumed) =
        py.detach(|| engine::codec::block::decode_block(rest)).map_err(to_python)?;
    Ok((Block(block), offset.0 + consumed))
}

#[pyfunction]
fn transactions_root(py: Python<'_>, raws: Vec<PyBackedBytes>) -> [u8; 32] {
    py.detach(|| engine::codec::block::transactions_root(&raws)).0
}

#[pyfunction]
fn withdrawals_root(withdrawals: Vec<WithdrawalTuple>) -> [u8; 32] {
    engine::codec::block::withdrawals_root(&withdrawals_of(withdrawals)).0
}

#[pyfunction]
fn ommers_hash(uncles: Vec<Py<Header>>) -> [u8; 32] {
    let uncles: Vec<_> = uncles.iter().map(|uncle| uncle.get().0.clone()).collect();
    engine::codec::block::ommers_hash(&uncles).0
}

#[pyfunction]
fn logs_bloom(receipts: Vec<Py<Receipt>>) -> [u8; 256] {
    engine::codec::receipt::logs_bloom(receipts.iter().map(|receipt| &receipt.get().0)).into_array()
}

#[pyfunction]
fn deposit_requests(receipts: Vec<PyBackedBytes>, contract: Arg<Address>) -> PyResult<Vec<u8>> {
    let decoded = receipts.iter().map(|each| engine::codec::receipt::Receipt::decode(each));
    let receipts: Vec<_> = decoded.collect::<Result<_, _>>().map_err(to_python)?;
    let logs = receipts.iter().flat_map(|receipt| &receipt.logs);
    engine::codec::requests::deposit_requests(logs, contract.0).map(Into::into).map_err(to_python)
}

#[pyfunction]
fn requests_hash(requests: Vec<Pair<Arg<u8>, PyBackedBytes>>) -> [u8; 32] {
    let requests: Vec<_> = requests.into_iter().map(|Pair(kind, data)| (kind.0, data)).collect();
    engine::codec::requests::requests_hash(&requests).0
}

#[pyfunction]
fn keccak256(data: &[u8]) -> [u8; 32] {
    alloy_primitives::keccak256(data).0
}
