//! Tips of blocks, for Python.

use std::sync::{Mutex, MutexGuard};

use alloy_primitives::U256;
use foreblock_engine::codec::json;
use foreblock_engine::stored::tips::{self as engine, Bid};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{Arg, Integer, Pair, invalid};
use crate::error::to_python;
use crate::store::View;
use crate::stored::present;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Bids>()?;
    module.add_class::<BlockTips>()
}

/// The bids of a block, gathered from its rows.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Bids {
    base_fee: Option<u64>,
    gathered: Mutex<(Vec<Bid>, u64)>,
}

impl Bids {
    fn gathered(&self) -> MutexGuard<'_, (Vec<Bid>, u64)> {
        self.gathered.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Bids {
    #[new]
    #[pyo3(signature = (base_fee))]
    fn new(base_fee: Option<Arg<u64>>) -> Self {
        Self { base_fee: base_fee.map(|fee| fee.0), gathered: Mutex::default() }
    }

    fn add(
        &self,
        view: &View,
        transactions: &[u8],
        receipts: &[u8],
        start: Arg<usize>,
        stop: Arg<usize>,
    ) -> PyResult<usize> {
        let read = |[transactions, receipts]: [Option<&[u8]>; 2]| {
            let rows = (present(transactions)?, present(receipts)?);
            let mut gathered = self.gathered();
            let (bids, gas) = &mut *gathered;
            *gas = engine::read_bids(rows, (start.0, stop.0), self.base_fee, *gas, bids)?;
            Ok(foreblock_engine::stored::items::Items::new(rows.0)?.left())
        };
        view.view.with_rows([transactions, receipts], read).map_err(to_python)
    }

    /// What the bids come to; none are left here.
    fn finish(&self) -> BlockTips {
        BlockTips(engine::BlockTips::new(std::mem::take(&mut self.gathered().0)))
    }
}

/// Tips in wei, ready for percentiles.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct BlockTips(engine::BlockTips);

#[pymethods]
impl BlockTips {
    #[new]
    fn new(bids: Vec<Pair<Arg<U256>, Arg<u64>>>) -> PyResult<Self> {
        let narrow = |Pair(tip, gas): Pair<Arg<U256>, Arg<u64>>| {
            let tip = u128::try_from(tip.0).map_err(|_| invalid("a tip has at most 128 bits"))?;
            Ok((tip, gas.0))
        };
        let bids = bids.into_iter().map(narrow).collect::<PyResult<_>>()?;
        Ok(Self(engine::BlockTips::new(bids)))
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    fn lowest(&self, wanted: Arg<usize>) -> Vec<Integer> {
        self.0.lowest(wanted.0).into_iter().map(Integer::from).collect()
    }

    /// As a JSON array of quantities.
    fn percentiles<'py>(&self, py: Python<'py>, wanted: Vec<Arg<f64>>) -> Bound<'py, PyBytes> {
        let mut out = Vec::with_capacity(16 * wanted.len() + 2);
        json::array(&mut out, wanted, |out, percent| {
            json::wide_quantity(out, U256::from(self.0.percentile(percent.0)));
        });
        PyBytes::new(py, &out)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}
