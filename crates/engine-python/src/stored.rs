//! Python bindings of stored block rows: single items in place, many incrementally, and tips.

use std::sync::{Arc, Mutex, OnceLock};

use alloy_primitives::{B256, U256, keccak256};
use foreblock_engine::codec::block::{encode_transaction, transaction_length};
use foreblock_engine::codec::json;
use foreblock_engine::logs::index::address_terms;
use foreblock_engine::stored::base_time::base_time as base_time_of;
use foreblock_engine::stored::block::{self, ReadBids, ReceiptLimits};
use foreblock_engine::stored::fragments::{TransactionView, fragments};
use foreblock_engine::stored::items::Items;
use foreblock_engine::stored::l1_cost::L1Prices;
use foreblock_engine::stored::receipt_json::{Position, ReceiptFormat};
use foreblock_engine::stored::tips;
use foreblock_engine::stored::touched::{self, TouchedRow};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::codec::{Header, Transaction};
use crate::convert::{Arg, Integer, Pair, invalid};
use crate::error::to_python;
use crate::logs::terms_bytes;
use crate::store::View;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StoredBlock>()?;
    module.add_class::<StoredItems>()?;
    module.add_class::<BlockTips>()?;
    module.add_function(wrap_pyfunction!(base_time, module)?)?;
    module.add_function(wrap_pyfunction!(touched_row, module)?)?;
    module.add_function(wrap_pyfunction!(touched_terms, module)?)
}

/// The milliseconds that the first transactions of a block state.
#[pyfunction]
fn base_time(row: &[u8]) -> PyResult<Option<u16>> {
    base_time_of(row).map_err(to_python)
}

/// Encodes the touched addresses of a block.
#[pyfunction]
fn touched_row<'py>(
    py: Python<'py>,
    block_hash: Arg<B256>,
    note: Arg<u8>,
    entries: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let made = py.detach(|| touched::row(block_hash.0, note.0, entries));
    let made = made.ok_or_else(|| invalid("touched addresses are not whole entries"))?;
    Ok(PyBytes::new(py, &made))
}

/// The terms of a block's touched addresses, `None` if there is no row of this block.
#[pyfunction]
fn touched_terms<'py>(
    py: Python<'py>,
    view: &View,
    key: &[u8],
    block_hash: Arg<B256>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let found = view.view.with_rows([key], |[row]| {
        let Some(row) = row else { return Ok(None) };
        let found = TouchedRow::new(row, &block_hash.0)?;
        Ok(found.map(|found| terms_bytes(&address_terms(found.addresses()))))
    });
    Ok(found.map_err(to_python)?.map(|terms| PyBytes::new(py, &terms)))
}

/// A block of the store and how its receipts are shown.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct StoredBlock(pub Arc<block::StoredBlock>);

/// The overhead and the price; whether sizes are compressed and the scalar of the data footprint.
type L1Argument = Pair<Pair<Option<Arg<U256>>, Arg<U256>>, Pair<bool, Arg<u64>>>;

type RawTransactions<'py> = (Vec<Py<PyBytes>>, Option<Bound<'py, PyBytes>>, Vec<usize>);

type FoundTransaction = (Transaction, Option<(u64, u64)>);

#[pymethods]
impl StoredBlock {
    #[new]
    #[pyo3(signature = (
        header, partials, *, homestead, blob_fee = Arg(U256::ZERO), l1 = None,
        has_footprint = false, has_refunds = false, end = b"".as_slice()
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords")]
    fn new(
        header: &Header,
        partials: Vec<Arg<u64>>,
        homestead: bool,
        blob_fee: Arg<U256>,
        l1: Option<L1Argument>,
        has_footprint: bool,
        has_refunds: bool,
        end: &[u8],
    ) -> Self {
        let l1 =
            l1.map(|Pair(Pair(overhead, price), Pair(compressed, footprint_scalar))| L1Prices {
                overhead: overhead.map(|it| it.0),
                price: price.0,
                compressed,
                footprint_scalar: footprint_scalar.0,
            });
        let format = ReceiptFormat::new(&header.0, blob_fee.0, l1, end);
        let format = format.with_footprint(has_footprint).with_refunds(has_refunds);
        let partials = partials.into_iter().map(|it| it.0).collect();
        Self(Arc::new(block::StoredBlock::new(&header.0, partials, homestead, format)))
    }

    /// A transaction, and the nonce and receipt version of a deposit. `None` beyond the last.
    fn transaction(&self, view: &View, index: Arg<u64>) -> PyResult<Option<FoundTransaction>> {
        let found = self.0.transaction(&view.view, index.0).map_err(to_python)?;
        Ok(found.map(|(transaction, deposit)| (Transaction(transaction), deposit)))
    }

    /// The transactions before an index, their senders, and the number at the end of each portion.
    fn raws<'py>(
        &self,
        py: Python<'py>,
        view: &View,
        stop: Arg<usize>,
    ) -> PyResult<RawTransactions<'py>> {
        let keep = |raw: &[u8]| PyBytes::new(py, raw).unbind();
        let (raws, senders, ends) = self.0.raws(&view.view, stop.0, keep).map_err(to_python)?;
        Ok((raws, senders.map(|senders| PyBytes::new(py, &senders)), ends))
    }

    /// The transactions, gas and logs before a portion.
    fn position(&self, view: &View, portion: Arg<usize>) -> PyResult<(u64, u64, u64)> {
        let found = self.0.position(&view.view, portion.0).map_err(to_python)?;
        Ok((found.transactions, found.gas, found.logs))
    }

    /// The refunds of the block by its sequencer: index and gas.
    fn refunds(&self, view: &View) -> PyResult<Vec<(u64, u64)>> {
        self.0.refunds(&view.view).map_err(to_python)
    }

    /// A receipt as JSON, `None` beyond the last.
    fn receipt<'py>(
        &self,
        py: Python<'py>,
        view: &View,
        index: Arg<u64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut out = Vec::with_capacity(1500);
        let found = self.0.receipt(&view.view, index.0, ReceiptLimits::NONE, &mut out);
        Ok(found.map_err(to_python)?.then(|| PyBytes::new(py, &out)))
    }

    /// Some receipts as JSON, separated by commas, and the position after them.
    fn receipts<'py>(
        &self,
        py: Python<'py>,
        view: &View,
        transactions: Arg<u64>,
        gas: Arg<u64>,
        logs: Arg<u64>,
        most: Arg<usize>,
    ) -> PyResult<(Bound<'py, PyBytes>, (u64, u64, u64))> {
        let before = Position { transactions: transactions.0, gas: gas.0, logs: logs.0 };
        let mut out = Vec::with_capacity(1500 * most.0.min(64));
        let end = self.0.receipts(&view.view, before, most.0, &mut out).map_err(to_python)?;
        Ok((PyBytes::new(py, &out), (end.transactions, end.gas, end.logs)))
    }

    /// The receipts of a body that is not in the store, each as JSON.
    fn texts<'py>(
        &self,
        py: Python<'py>,
        transactions: Vec<PyBackedBytes>,
        receipts: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let raws: Vec<&[u8]> = transactions.iter().map(|raw| &**raw).collect();
        let receipts: Vec<&[u8]> = receipts.iter().map(|receipt| &**receipt).collect();
        let texts = py.detach(|| self.0.texts(&raws, &receipts)).map_err(to_python)?;
        Ok(texts.iter().map(|text| PyBytes::new(py, text)).collect())
    }
}

/// A row of transactions or receipts, read incrementally.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct StoredItems {
    row: Py<PyBytes>,
    /// The start and end of each item.
    spans: Vec<(usize, usize)>,
    #[pyo3(get)]
    end: usize,
    #[pyo3(get)]
    encoded_size: usize,
}

impl StoredItems {
    fn some(&self, py: Python<'_>, start: usize, stop: usize) -> PyResult<Vec<&[u8]>> {
        let row = self.row.as_bytes(py);
        let spans = self.spans.get(start..stop.min(self.spans.len())).ok_or_else(|| {
            invalid(format!("no items {start} to {stop} among {}", self.spans.len()))
        })?;
        Ok(spans.iter().map(|(start, stop)| &row[*start..*stop]).collect())
    }
}

#[pymethods]
impl StoredItems {
    #[new]
    fn new(py: Python<'_>, row: Py<PyBytes>) -> PyResult<Self> {
        let bytes = row.as_bytes(py);
        let (mut spans, mut encoded_size) = (Vec::new(), 0);
        let mut read = || {
            let mut items = Items::new(bytes)?;
            while let Some(item) = items.take()? {
                let stop = bytes.len() - items.rest().len();
                spans.push((stop - item.len(), stop));
                encoded_size += transaction_length(item);
            }
            Ok(bytes.len() - items.rest().len())
        };
        let end = read().map_err(to_python)?;
        Ok(Self { row, spans, end, encoded_size })
    }

    fn __len__(&self) -> usize {
        self.spans.len()
    }

    fn take<'py>(
        &self,
        py: Python<'py>,
        start: Arg<usize>,
        stop: Arg<usize>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let items = self.some(py, start.0, stop.0)?;
        Ok(items.into_iter().map(|item| PyBytes::new(py, item)).collect())
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        start: Arg<usize>,
        stop: Arg<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let items = self.some(py, start.0, stop.0)?;
        let mut out = Vec::with_capacity(items.iter().map(|raw| transaction_length(raw)).sum());
        items.iter().for_each(|raw| encode_transaction(raw, &mut out));
        Ok(PyBytes::new(py, &out))
    }

    /// The hashes as JSON strings, separated by commas.
    fn hashes<'py>(
        &self,
        py: Python<'py>,
        start: Arg<usize>,
        stop: Arg<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let items = self.some(py, start.0, stop.0)?;
        let mut out = Vec::with_capacity(69 * items.len());
        for (place, raw) in items.into_iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            json::data(&mut out, keccak256(raw));
        }
        Ok(PyBytes::new(py, &out))
    }

    #[pyo3(signature = (receipts, start, stop, *, header, first, homestead, senders = None))]
    #[expect(clippy::too_many_arguments, reason = "what a transaction is shown with")]
    fn fragments<'py>(
        &self,
        py: Python<'py>,
        receipts: &Self,
        start: Arg<usize>,
        stop: Arg<usize>,
        header: &Header,
        first: Arg<u64>,
        homestead: bool,
        senders: Option<&[u8]>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let raws = self.some(py, start.0, stop.0)?;
        let receipts = receipts.some(py, start.0, start.0 + raws.len())?;
        let shown = TransactionView { header: &header.0, first: first.0, homestead, senders };
        let write = || fragments(&raws, &receipts, start.0, shown);
        let texts = if senders.is_some() { write() } else { py.detach(write) };
        Ok(texts.map_err(to_python)?.iter().map(|text| PyBytes::new(py, text)).collect())
    }
}

/// Tips in wei, prepared for percentiles.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockTips {
    block: Arc<block::StoredBlock>,
    base_fee: Option<u64>,
    read: Mutex<ReadBids>,
    tips: OnceLock<tips::BlockTips>,
}

impl BlockTips {
    fn tips(&self) -> PyResult<&tips::BlockTips> {
        self.tips.get().ok_or_else(|| invalid("the bids are not read to the end"))
    }
}

#[pymethods]
impl BlockTips {
    #[new]
    fn new(block: &StoredBlock, base_fee: Option<Arg<u64>>) -> Self {
        let base_fee = base_fee.map(|fee| fee.0);
        Self { block: block.0.clone(), base_fee, read: Mutex::default(), tips: OnceLock::new() }
    }

    /// Reads the bids of up to `most` transactions. True after the last one.
    fn read(&self, view: &View, most: Arg<usize>) -> PyResult<bool> {
        let mut read = self.read.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.tips.get().is_none()
            && !self.block.bids(&view.view, self.base_fee, most.0, &mut read).map_err(to_python)?
        {
            let _ = self.tips.set(tips::BlockTips::new(std::mem::take(&mut read.bids)));
        }
        Ok(self.tips.get().is_some())
    }

    #[getter]
    fn size(&self) -> PyResult<usize> {
        Ok(self.tips()?.size())
    }

    fn lowest(&self, wanted: Arg<usize>) -> PyResult<Vec<Integer>> {
        Ok(self.tips()?.lowest(wanted.0).into_iter().map(Integer::from).collect())
    }

    /// The tips as a JSON array of quantities.
    fn percentiles<'py>(
        &self,
        py: Python<'py>,
        wanted: Vec<Arg<f64>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tips = self.tips()?;
        let mut out = Vec::with_capacity(16 * wanted.len() + 2);
        json::array(&mut out, wanted, |out, percent| {
            json::wide_quantity(out, U256::from(tips.percentile(percent.0)));
        });
        Ok(PyBytes::new(py, &out))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.tips()?.len())
    }
}
