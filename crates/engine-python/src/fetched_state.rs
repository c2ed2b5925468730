//! Python bindings of a partial base and of fetched values.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::fetched_state::{FetchedState as EngineFetchedState, SlotNodes};
use foreblock_engine::store::Anchor;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};

use crate::account::Account;
use crate::convert::{Arg, Integer, Pair};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StateBase>()?;
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
