//! Python bindings of states.

use alloy_primitives::{Address, B256, U256};
use foreblock_engine::error::Error;
use foreblock_engine::evm::execute::{self, Options};
use foreblock_engine::evm::overlay::Overlay as EngineOverlay;
use foreblock_engine::state::{AccountState, StateReader};
use foreblock_engine::store;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};

use crate::account::Account;
use crate::convert::{Arg, Integer, limits};
use crate::env::{Env, Message};
use crate::error::to_python;
use crate::missing_keys::{MissingKeys, slots_of};
use crate::outcome::Outcome;
use crate::overlay::Overlay;
use crate::proof::Proof;
use crate::trie::StateTrie;
use crate::witness::Recording;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<State>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct State(pub store::State);

#[pymethods]
impl State {
    fn account(&self, address: Arg<Address>) -> PyResult<Option<Account>> {
        Ok(self.0.account(&address.0).map_err(to_python)?.map(Account))
    }

    fn balance(&self, address: Arg<Address>) -> PyResult<Integer> {
        let account = self.0.account(&address.0).map_err(to_python)?;
        Ok(Integer(account.map(|account| account.balance).unwrap_or_default()))
    }

    fn nonce(&self, address: Arg<Address>) -> PyResult<u64> {
        let account = self.0.account(&address.0).map_err(to_python)?;
        Ok(account.map(|account| account.nonce).unwrap_or_default())
    }

    fn code<'py>(&self, py: Python<'py>, address: Arg<Address>) -> PyResult<Bound<'py, PyBytes>> {
        let account = self.0.account(&address.0).map_err(to_python)?;
        match account.filter(AccountState::has_code) {
            None => Ok(PyBytes::new(py, &[])),
            Some(account) => {
                let code = self.0.code(&account.code_hash).map_err(to_python)?;
                Ok(PyBytes::new(py, &code))
            }
        }
    }

    fn storage(&self, address: Arg<Address>, slot: Arg<U256>) -> PyResult<Integer> {
        let account = self.0.account(&address.0).map_err(|error| match error {
            // Report both keys, so that they are fetched at once.
            Error::StateMissing(mut misses) => {
                misses.insert_slot(address.0, slot.0);
                to_python(Error::StateMissing(misses))
            }
            other => to_python(other),
        })?;
        let Some(account) = account else { return Ok(Integer(U256::ZERO)) };
        let value = self.0.storage(&address.0, account.generation, &slot.0);
        value.map(Integer).map_err(to_python)
    }

    fn block_hash<'py>(&self, py: Python<'py>, number: Arg<u64>) -> PyResult<Bound<'py, PyBytes>> {
        let hash = self.0.block_hash(number.0).map_err(to_python)?;
        Ok(PyBytes::new(py, hash.as_slice()))
    }

    fn is_same_life_as_anchor(&self, address: Arg<Address>) -> PyResult<bool> {
        self.0.is_same_life_as_anchor(&address.0).map_err(to_python)
    }

    #[pyo3(signature = (accounts, slots = None))]
    fn missing(
        &self,
        py: Python<'_>,
        accounts: Vec<Arg<Address>>,
        slots: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<MissingKeys> {
        let slots = slots_of(slots)?;
        let find = || {
            let slots = slots.iter().flat_map(|(at, slots)| slots.iter().map(move |it| (at, it)));
            self.0.missing(accounts.iter().map(|address| &address.0), slots)
        };
        py.detach(find).map(MissingKeys).map_err(to_python)
    }

    #[pyo3(signature = (*, remember = false))]
    fn overlay(&self, remember: bool) -> Overlay {
        Overlay::above(self.0.clone(), remember)
    }

    #[getter]
    fn sealed_block(&self) -> u64 {
        self.0.sealed_block()
    }

    #[pyo3(signature = (*, rebuild = false, root = None))]
    fn trie(&self, py: Python<'_>, rebuild: bool, root: Option<Arg<B256>>) -> PyResult<StateTrie> {
        py.detach(|| StateTrie::of_state(&self.0, rebuild, root.map(|root| root.0)))
    }

    #[pyo3(signature = (*, root = None, timeout_us = None, step_us = None))]
    fn record(
        &self,
        py: Python<'_>,
        root: Option<Arg<B256>>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Recording> {
        Recording::of(py, &self.0, root.map(|root| root.0), limits(timeout_us, step_us))
    }

    #[pyo3(signature = (address, slots, *, root = None, timeout_us = None, step_us = None))]
    fn prove(
        &self,
        py: Python<'_>,
        address: Arg<Address>,
        slots: Vec<Arg<U256>>,
        root: Option<Arg<B256>>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Proof> {
        let limits = limits(timeout_us, step_us);
        let slots: Vec<_> = slots.into_iter().map(|slot| slot.0).collect();
        let root = root.map(|root| root.0);
        let prove = || self.0.prove_under(root, &address.0, &slots, limits);
        py.detach(prove).map(Proof).map_err(to_python)
    }

    /// Equivalent to `overlay().call(…)`, without creating the overlay object.
    #[pyo3(signature = (
        env, message, *, check_base_fee = true, check_block_gas_limit = false,
        timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn call(
        &self,
        py: Python<'_>,
        env: &Env,
        message: &Message,
        check_base_fee: bool,
        check_block_gas_limit: bool,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Outcome> {
        let limits = limits(timeout_us, step_us);
        let options =
            Options { limits, check_base_fee, check_block_gas_limit, ..Options::default() };
        let mut overlay = EngineOverlay::new(Box::new(self.0.clone()));
        let call = || execute::call(&mut overlay, &env.0, &message.0, options);
        py.detach(call).map(Outcome::from).map_err(to_python)
    }

    fn index<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let row = self.0.index(key).map_err(to_python)?;
        Ok(row.map(|row| PyBytes::new(py, &row)))
    }

    fn accounts<'py>(
        &self,
        py: Python<'py>,
        after: Option<Arg<Address>>,
        limit: Arg<usize>,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, Account)>> {
        let after = after.map(|after| after.0);
        let accounts = py.detach(|| self.0.accounts(after.as_ref(), limit.0)).map_err(to_python)?;
        let pair = |(address, account): (Address, _)| {
            (PyBytes::new(py, address.as_slice()), Account(account))
        };
        Ok(accounts.into_iter().map(pair).collect())
    }

    fn slots(
        &self,
        py: Python<'_>,
        address: Arg<Address>,
        after: Option<Arg<U256>>,
        limit: Arg<usize>,
    ) -> PyResult<Vec<(Integer, Integer)>> {
        let account = self.0.account(&address.0).map_err(to_python)?;
        let Some(account) = account else { return Ok(Vec::new()) };
        let after = after.map(|after| after.0);
        let read = || self.0.slots(&address.0, account.generation, after.as_ref(), limit.0);
        let slots = py.detach(read).map_err(to_python)?;
        Ok(slots.into_iter().map(|(slot, value)| (Integer(slot), Integer(value))).collect())
    }
}
