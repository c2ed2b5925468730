//! Python bindings of overlays, and of executing messages and transactions on them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::error::{Error, Result};
use foreblock_engine::evm::allowance::Allowance as EngineAllowance;
use foreblock_engine::evm::cached_reader::CachedReader;
use foreblock_engine::evm::execute::{self, Options};
use foreblock_engine::evm::overlay::{Overlay as EngineOverlay, Override};
use foreblock_engine::evm::precompiles::PrecompileOverrides;
use foreblock_engine::evm::transact::{self, Progress};
use foreblock_engine::state::{AccountState, StateReader};
use foreblock_engine::store;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::account::{Account, Changes};
use crate::codec::Transaction;
use crate::convert::{Arg, Integer, Pair, limits};
use crate::env::{Env, Message, parse_rules};
use crate::error::to_python;
use crate::missing_keys::MissingKeys;
use crate::outcome::Outcome;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Precompiles>()?;
    module.add_class::<Allowance>()?;
    module.add_class::<Overlay>()
}

/// From this size on, the interpreter is released while the code is hashed.
const LONG_CODE: usize = 64 * 1024;

/// The precompiles of one block with some moved or disabled.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Precompiles(pub Arc<PrecompileOverrides>);

#[pymethods]
impl Precompiles {
    #[new]
    fn new(
        rules: Arg<String>,
        overridden: Vec<Arg<Address>>,
        moves: Vec<Pair<Arg<Address>, Arg<Address>>>,
    ) -> PyResult<Self> {
        let overridden = overridden.into_iter().map(|address| address.0);
        let moves = moves.into_iter().map(|Pair(from, to)| (from.0, to.0));
        let made = PrecompileOverrides::new(parse_rules(&rules.0)?, overridden, moves);
        Ok(Self(Arc::new(made.map_err(to_python)?)))
    }
}

/// The limits that the transactions of a block share.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct Allowance(Mutex<EngineAllowance>);

impl Allowance {
    pub fn left(&self) -> MutexGuard<'_, EngineAllowance> {
        let mut left = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        left.resume();
        left
    }
}

#[pymethods]
impl Allowance {
    #[new]
    #[pyo3(signature = (*, time_us = None, least_us = Arg(0), gas = None, touched = None))]
    fn new(
        time_us: Option<Arg<u64>>,
        least_us: Arg<u64>,
        gas: Option<Arg<u64>>,
        touched: Option<Arg<u64>>,
    ) -> Self {
        let time = time_us.map(|time| Duration::from_micros(time.0));
        let least = Duration::from_micros(least_us.0);
        let allowance =
            EngineAllowance::new(time, least, gas.map(|gas| gas.0), touched.map(|most| most.0));
        Self(Mutex::new(allowance))
    }

    fn pause(&self) {
        self.left().pause();
    }
}

/// Slots of an account and their values.
type Slots = BTreeMap<Slot, Slot>;

fn pairs(slots: Slots) -> Vec<(U256, U256)> {
    slots.into_iter().map(|(slot, value)| (slot.0, value.0)).collect()
}

/// A slot or its value, as in a dict.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Slot(U256);

impl<'py> FromPyObject<'_, 'py> for Slot {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(value.extract::<Arg<U256>>()?.0))
    }
}

/// The empty state below a first block.
pub struct Nothing;

impl StateReader for Nothing {
    fn account(&self, _: &Address) -> Result<Option<AccountState>> {
        Ok(None)
    }

    fn storage(&self, _: &Address, _: u64, _: &U256) -> Result<U256> {
        Ok(U256::ZERO)
    }

    fn code(&self, hash: &B256) -> Result<Bytes> {
        Err(Error::MissingCode(*hash))
    }

    fn block_hash(&self, _: u64) -> Result<B256> {
        Ok(B256::ZERO)
    }
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Overlay(Mutex<EngineOverlay>);

impl Overlay {
    pub fn above(state: store::State, remember: bool) -> Self {
        Self::of(EngineOverlay::new(match remember {
            true => Box::new(CachedReader::new(state)),
            false => Box::new(state),
        }))
    }

    pub fn of(overlay: EngineOverlay) -> Self {
        Self(Mutex::new(overlay))
    }

    pub fn overlay(&self) -> MutexGuard<'_, EngineOverlay> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Moves the overlay out. An empty one without a state remains.
    pub fn give_away(&self) -> EngineOverlay {
        std::mem::take(&mut *self.overlay())
    }
}

#[pymethods]
impl Overlay {
    #[staticmethod]
    fn empty() -> Self {
        Self(Mutex::new(EngineOverlay::new(Box::new(Nothing))))
    }

    fn account(&self, address: Arg<Address>) -> PyResult<Option<Account>> {
        Ok(self.overlay().account(&address.0).map_err(to_python)?.map(Account))
    }

    fn storage(&self, address: Arg<Address>, slot: Arg<U256>) -> PyResult<Integer> {
        self.overlay().storage(&address.0, &slot.0).map(Integer).map_err(to_python)
    }

    fn code<'py>(&self, py: Python<'py>, address: Arg<Address>) -> PyResult<Bound<'py, PyBytes>> {
        let code = self.overlay().code(&address.0).map_err(to_python)?;
        Ok(PyBytes::new(py, &code))
    }

    #[pyo3(signature = (
        address, *, balance = None, nonce = None, code = None, state = None, state_diff = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn set(
        &self,
        py: Python<'_>,
        address: Arg<Address>,
        balance: Option<Arg<U256>>,
        nonce: Option<Arg<u64>>,
        code: Option<Arg<Bytes>>,
        state: Option<Slots>,
        state_diff: Option<Slots>,
    ) -> PyResult<()> {
        let new = Override {
            balance: balance.map(|balance| balance.0),
            nonce: nonce.map(|nonce| nonce.0),
            code: code.map(|code| code.0),
            state: state.map(pairs),
            state_diff: state_diff.map(pairs),
        };
        let apply = || self.overlay().apply(address.0, &new);
        let is_long = new.code.as_ref().is_some_and(|code| code.len() > LONG_CODE);
        if is_long { py.detach(apply) } else { apply() }.map_err(to_python)
    }

    fn set_block_hash(&self, number: Arg<u64>, hash: Arg<B256>) {
        self.overlay().set_block_hash(number.0, hash.0);
    }

    fn credit(&self, address: Arg<Address>, amount: Arg<U256>) -> PyResult<()> {
        self.overlay().credit(address.0, amount.0).map_err(to_python)
    }

    #[pyo3(signature = (
        env, message, *, check_base_fee = true, check_block_gas_limit = false,
        precompiles = None, timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn call(
        &self,
        py: Python<'_>,
        env: &Env,
        message: &Message,
        check_base_fee: bool,
        check_block_gas_limit: bool,
        precompiles: Option<&Precompiles>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Outcome> {
        let options = Options {
            limits: limits(timeout_us, step_us),
            precompiles: precompiles.map(|it| it.0.clone()),
            collect: None,
            check_base_fee,
            check_block_gas_limit,
        };
        let run = || execute::call(&mut self.overlay(), &env.0, &message.0, options);
        py.detach(run).map(Outcome::from).map_err(to_python)
    }

    #[pyo3(signature = (
        env, message, *, check_base_fee = true, check_block_gas_limit = true,
        precompiles = None, timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn run(
        &self,
        py: Python<'_>,
        env: &Env,
        message: &Message,
        check_base_fee: bool,
        check_block_gas_limit: bool,
        precompiles: Option<&Precompiles>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Outcome> {
        let options = Options {
            limits: limits(timeout_us, step_us),
            precompiles: precompiles.map(|it| it.0.clone()),
            collect: None,
            check_base_fee,
            check_block_gas_limit,
        };
        let run = || execute::run(&mut self.overlay(), &env.0, &message.0, options);
        py.detach(run).map(Outcome::from).map_err(to_python)
    }

    #[pyo3(signature = (
        env, address, data, precompiles = None, timeout_us = None, step_us = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each with a default")]
    fn system_call(
        &self,
        py: Python<'_>,
        env: &Env,
        address: Arg<Address>,
        data: Arg<Bytes>,
        precompiles: Option<&Precompiles>,
        timeout_us: Option<Arg<u64>>,
        step_us: Option<Arg<u64>>,
    ) -> PyResult<Option<Outcome>> {
        let limits = limits(timeout_us, step_us);
        let moved = precompiles.map(|it| it.0.clone());
        let run =
            || execute::system_call(&mut self.overlay(), &env.0, address.0, data.0, limits, moved);
        Ok(py.detach(run).map_err(to_python)?.map(Outcome::from))
    }

    fn probe(
        &self,
        py: Python<'_>,
        env: &Env,
        transactions: Vec<Py<Transaction>>,
        allowance: &Allowance,
    ) -> PyResult<MissingKeys> {
        let probe = || {
            let all = transactions.iter().map(|transaction| &transaction.get().0);
            let (progress, allowance) = (Progress::default(), &mut allowance.left());
            transact::probe(&mut self.overlay(), &env.0, all, &progress, allowance)
        };
        py.detach(probe).map(MissingKeys).map_err(to_python)
    }

    fn take(&self, py: Python<'_>, number: Arg<u64>) -> PyResult<Changes> {
        let changes = py.detach(|| self.overlay().take(number.0)).map_err(to_python)?;
        Ok(Changes(Arc::new(changes)))
    }
}
