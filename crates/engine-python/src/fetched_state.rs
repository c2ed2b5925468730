//! Python bindings of missing keys of a partial base, and of fetched values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::fetched_state::{FetchedState as EngineFetchedState, SlotNodes};
use foreblock_engine::missing_keys::MissingKeys as EngineMissingKeys;
use foreblock_engine::store::Anchor;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyTuple};

use crate::convert::{Arg, Integer, Pair};
use crate::error::to_python;
use crate::state::Account;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StateBase>()?;
    module.add_class::<MissingKeys>()?;
    module.add_class::<FetchedState>()
}

/// The state below all blocks of a store.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct StateBase(pub Option<Anchor>);

#[pymethods]
impl StateBase {
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_none()
    }

    #[getter]
    fn number(&self) -> u64 {
        self.0.map_or(0, |anchor| anchor.number)
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.map(|anchor| anchor.hash).unwrap_or_default().as_slice())
    }

    #[getter]
    fn root<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.map(|anchor| anchor.root).unwrap_or_default().as_slice())
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.0.map_or(0, |anchor| anchor.epoch)
    }

    fn __repr__(&self) -> String {
        match self.0 {
            None => "StateBase(is_complete=True)".into(),
            Some(Anchor { number, hash, epoch, .. }) => {
                format!("StateBase(number={number}, hash={hash}, epoch={epoch})")
            }
        }
    }
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
        let owner = match owner.0.is_empty() {
            true => None,
            false => Some(Address::try_from(&owner.0[..]).map_err(|_| {
                crate::convert::invalid(format!("an address has 20 bytes, not {}", owner.0.len()))
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

/// Fetched values of the anchor's state that are not in the store.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct FetchedState(pub Arc<EngineFetchedState>);

#[pymethods]
impl FetchedState {
    #[new]
    #[pyo3(signature = (epoch, *, limit = Arg(64 << 20), nodes = true))]
    fn new(epoch: Arg<u64>, limit: Arg<usize>, nodes: bool) -> Self {
        let learned = EngineFetchedState::new(epoch.0, limit.0);
        Self(Arc::new(if nodes { learned } else { learned.without_nodes() }))
    }

    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.bytes()
    }

    #[getter]
    fn unstored(&self) -> usize {
        self.0.unstored()
    }

    #[pyo3(signature = (address, account, storage_root = None))]
    fn put_account(
        &self,
        address: Arg<Address>,
        account: Option<Account>,
        storage_root: Option<Arg<B256>>,
    ) {
        let account = account.map(|account| account.0);
        self.0.put_account(address.0, account, storage_root.map(|root| root.0));
    }

    fn put_slots(&self, address: Arg<Address>, values: &Bound<'_, PyMapping>) -> PyResult<()> {
        let mut slots = Vec::with_capacity(values.len()?);
        for item in values.items()?.iter() {
            let Pair(slot, value): Pair<Arg<U256>, Arg<U256>> = item.extract()?;
            slots.push((slot.0, value.0));
        }
        self.0.put_slots(address.0, slots);
        Ok(())
    }

    fn put_code<'py>(&self, py: Python<'py>, code: Arg<Bytes>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.put_code(code.0).as_slice())
    }

    fn put_block(&self, number: Arg<u64>, hash: Arg<B256>) {
        self.0.put_block(number.0, hash.0);
    }

    fn remember_nodes_of(&self, py: Python<'_>, other: &Self) {
        py.detach(|| self.0.remember_nodes_of(&other.0));
    }

    fn put_nodes(&self, py: Python<'_>, nodes: Vec<Arg<Bytes>>) {
        py.detach(|| self.0.put_nodes(nodes.into_iter().map(|node| node.0)));
    }

    #[pyo3(signature = (root, address, account_proof, slots, *, same_life = true))]
    fn prove(
        &self,
        py: Python<'_>,
        root: Arg<B256>,
        address: Arg<Address>,
        account_proof: Vec<Arg<Bytes>>,
        slots: Vec<Pair<Arg<U256>, Vec<Arg<Bytes>>>>,
        same_life: bool,
    ) -> PyResult<(Option<Account>, Vec<Integer>)> {
        let plain = |nodes: Vec<Arg<Bytes>>| -> Vec<Bytes> {
            nodes.into_iter().map(|node| node.0).collect()
        };
        let nodes = plain(account_proof);
        let slots: Vec<SlotNodes> =
            slots.into_iter().map(|Pair(slot, nodes)| (slot.0, plain(nodes))).collect();
        let proven = py.detach(|| match same_life {
            true => self.0.prove(root.0, address.0, &nodes, &slots),
            false => self.0.prove_nodes_only(root.0, address.0, &nodes, &slots),
        });
        let (account, values) = proven.map_err(to_python)?;
        Ok((account.map(Account), values.into_iter().map(Integer).collect()))
    }
}
