//! Python bindings of the keys that a partial base misses.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::missing_keys::MissingKeys as EngineMissingKeys;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyTuple};

use crate::convert::{Arg, Integer, Pair, invalid};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<MissingKeys>()
}

/// The keys that an execution needed and that are unknown.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct MissingKeys(pub EngineMissingKeys);

fn list<'py>(py: Python<'py>, addresses: &BTreeSet<Address>) -> Vec<Bound<'py, PyBytes>> {
    addresses.iter().map(|address| PyBytes::new(py, address.as_slice())).collect()
}

/// Reads a mapping of addresses to slots.
pub fn slots_of(
    slots: Option<&Bound<'_, PyMapping>>,
) -> PyResult<BTreeMap<Address, BTreeSet<U256>>> {
    let Some(slots) = slots else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    for item in slots.items()?.iter() {
        let Pair(address, slots): Pair<Arg<Address>, Vec<Arg<U256>>> = item.extract()?;
        if !slots.is_empty() {
            all.insert(address.0, slots.into_iter().map(|slot| slot.0).collect());
        }
    }
    Ok(all)
}

fn codes_of(codes: Option<&Bound<'_, PyMapping>>) -> PyResult<BTreeMap<B256, Option<Address>>> {
    let Some(codes) = codes else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    for item in codes.items()?.iter() {
        let Pair(hash, owner): Pair<Arg<B256>, Arg<Bytes>> = item.extract()?;
        let owner =
            match owner.0.is_empty() {
                true => None,
                false => Some(Address::try_from(&owner.0[..]).map_err(|_| {
                    invalid(format!("an address has 20 bytes, not {}", owner.0.len()))
                })?),
            };
        all.insert(hash.0, owner);
    }
    Ok(all)
}

fn destroyed_after_of(
    destroyed_after: Option<&Bound<'_, PyMapping>>,
) -> PyResult<BTreeMap<Address, u64>> {
    let Some(destroyed_after) = destroyed_after else { return Ok(BTreeMap::new()) };
    let pair = |item: Bound<'_, PyAny>| {
        let Pair(address, block): Pair<Arg<Address>, Arg<u64>> = item.extract()?;
        Ok((address.0, block.0))
    };
    destroyed_after.items()?.iter().map(pair).collect()
}

#[pymethods]
impl MissingKeys {
    #[new]
    #[pyo3(signature = (accounts = vec![], slots = None, codes = None, blocks = vec![], destroyed_after = None))]
    fn new(
        accounts: Vec<Arg<Address>>,
        slots: Option<&Bound<'_, PyMapping>>,
        codes: Option<&Bound<'_, PyMapping>>,
        blocks: Vec<Arg<u64>>,
        destroyed_after: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<Self> {
        Ok(Self(EngineMissingKeys {
            accounts: accounts.into_iter().map(|address| address.0).collect(),
            slots: slots_of(slots)?,
            codes: codes_of(codes)?,
            blocks: blocks.into_iter().map(|block| block.0).collect(),
            hashed: BTreeMap::new(),
            destroyed_after: destroyed_after_of(destroyed_after)?,
        }))
    }

    #[getter]
    fn accounts<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        list(py, &self.0.accounts)
    }

    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (address, slots) in &self.0.slots {
            let slots: Vec<_> = slots.iter().map(|slot| Integer(*slot)).collect();
            all.set_item(PyBytes::new(py, address.as_slice()), slots)?;
        }
        Ok(all)
    }

    #[getter]
    fn codes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (hash, owner) in &self.0.codes {
            let owner = owner.as_ref().map_or(&[][..], |address| address.as_slice());
            all.set_item(PyBytes::new(py, hash.as_slice()), PyBytes::new(py, owner))?;
        }
        Ok(all)
    }

    #[getter]
    fn blocks(&self) -> Vec<u64> {
        self.0.blocks.iter().copied().collect()
    }

    #[getter]
    fn destroyed_after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (address, block) in &self.0.destroyed_after {
            all.set_item(PyBytes::new(py, address.as_slice()), block)?;
        }
        Ok(all)
    }

    #[getter]
    fn hashed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (hash, pair) in &self.0.hashed {
            all.set_item(PyBytes::new(py, hash.as_slice()), PyBytes::new(py, pair))?;
        }
        Ok(all)
    }

    fn also(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.merge(other.0.clone());
        Self(all)
    }

    fn __bool__(&self) -> bool {
        !self.0.is_empty()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// Compares the keys only.
    fn __eq__(&self, other: &Self) -> bool {
        let EngineMissingKeys { accounts, slots, codes, blocks, .. } = &self.0;
        let theirs = &other.0;
        (accounts, slots) == (&theirs.accounts, &theirs.slots)
            && (codes, blocks) == (&theirs.codes, &theirs.blocks)
    }

    fn __repr__(&self) -> String {
        let EngineMissingKeys { accounts, slots, codes, blocks, .. } = &self.0;
        let slots: usize = slots.values().map(BTreeSet::len).sum();
        let count = |number: usize, one: &str, more: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{number} {more}")),
        };
        let parts: Vec<_> = [
            count(accounts.len(), "account", "accounts"),
            count(slots, "slot", "slots"),
            count(codes.len(), "code", "codes"),
            count(blocks.len(), "block hash", "block hashes"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { "nothing".into() } else { parts.join(", ") }
    }

    /// For pickling, because exceptions that contain it are passed between processes.
    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, misses) = (this.py(), this.get());
        let (slots, codes) = (misses.slots(py)?, misses.codes(py)?);
        let facts =
            (misses.accounts(py), slots, codes, misses.blocks(), misses.destroyed_after(py)?);
        Ok((this.get_type().into_any(), facts.into_pyobject(py)?))
    }
}
