//! Python bindings of block environments and messages.

use std::sync::Arc;

use alloy_eips::eip2930::{AccessList as EngineAccessList, AccessListItem};
use alloy_primitives::{Address, B256, Bytes, U256};
use foreblock_engine::evm::env::{BlockFields, Env as EngineEnv};
use foreblock_engine::evm::rules::Rules;
use foreblock_engine::message::{Fees, Message as EngineMessage};
use pyo3::prelude::*;

use crate::codec::{Authorization, Header};
use crate::convert::{Arg, Pair, invalid};
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AccessList>()?;
    module.add_class::<Env>()?;
    module.add_class::<Message>()
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Env(pub Arc<EngineEnv>);

#[pymethods]
impl Env {
    #[new]
    #[pyo3(signature = (
        *, rules, chain_id, number, timestamp, coinbase, gas_limit, base_fee = Arg(0),
        difficulty = Arg(U256::ZERO), prevrandao = None, blob_base_fee = None,
        max_blobs_per_transaction = None, max_code_size = None, max_transaction_gas = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each a field of the block")]
    fn new(
        rules: Arg<String>,
        chain_id: Arg<u64>,
        number: Arg<u64>,
        timestamp: Arg<u64>,
        coinbase: Arg<Address>,
        gas_limit: Arg<u64>,
        base_fee: Arg<u64>,
        difficulty: Arg<U256>,
        prevrandao: Option<Arg<B256>>,
        blob_base_fee: Option<Arg<U256>>,
        max_blobs_per_transaction: Option<Arg<u64>>,
        max_code_size: Option<Arg<u64>>,
        max_transaction_gas: Option<Arg<u64>>,
    ) -> PyResult<Self> {
        let fields = BlockFields {
            number: number.0,
            timestamp: timestamp.0,
            coinbase: coinbase.0,
            gas_limit: gas_limit.0,
            base_fee: base_fee.0,
            difficulty: difficulty.0,
            prevrandao: prevrandao.map(|it| it.0),
            blob_base_fee: blob_base_fee.map(|fee| fee_per_gas(&fee)).transpose()?,
            max_blobs_per_transaction: max_blobs_per_transaction.map(|it| it.0),
            max_code_size: max_code_size.map(|it| it.0),
            max_transaction_gas: max_transaction_gas.map(|it| it.0),
        };
        let env = EngineEnv::new(parse_rules(&rules.0)?, chain_id.0, &fields).map_err(to_python)?;
        Ok(Self(Arc::new(env)))
    }

    #[staticmethod]
    #[pyo3(signature = (
        header, *, rules, chain_id, blob_base_fee = None, max_blobs_per_transaction = None,
        max_code_size = None, max_transaction_gas = None
    ))]
    fn of_header(
        header: &Header,
        rules: Arg<String>,
        chain_id: Arg<u64>,
        blob_base_fee: Option<Arg<U256>>,
        max_blobs_per_transaction: Option<Arg<u64>>,
        max_code_size: Option<Arg<u64>>,
        max_transaction_gas: Option<Arg<u64>>,
    ) -> PyResult<Self> {
        let header = header.0.fields();
        let fields = BlockFields {
            number: header.number,
            timestamp: header.timestamp,
            coinbase: header.beneficiary,
            gas_limit: header.gas_limit,
            base_fee: header.base_fee_per_gas.unwrap_or_default(),
            difficulty: header.difficulty,
            prevrandao: Some(header.mix_hash),
            blob_base_fee: blob_base_fee.map(|fee| fee_per_gas(&fee)).transpose()?,
            max_blobs_per_transaction: max_blobs_per_transaction.map(|it| it.0),
            max_code_size: max_code_size.map(|it| it.0),
            max_transaction_gas: max_transaction_gas.map(|it| it.0),
        };
        let env = EngineEnv::new(parse_rules(&rules.0)?, chain_id.0, &fields).map_err(to_python)?;
        Ok(Self(Arc::new(env)))
    }
}

pub fn parse_rules(rules: &str) -> PyResult<Rules> {
    let parsed = match rules.split_once(':') {
        Some(("ethereum", fork)) => Rules::ethereum(fork),
        Some(("optimism", fork)) => Rules::optimism(fork),
        _ => {
            return Err(invalid(format!(
                "rules are 'ethereum:FORK' or 'optimism:FORK', not '{rules}'"
            )));
        }
    };
    parsed.map_err(to_python)
}

/// Fees have 128 bits in the EVM. A larger fee could never be paid.
fn fee_per_gas(fee: &Arg<U256>) -> PyResult<u128> {
    u128::try_from(fee.0).map_err(|_| invalid("a fee per gas must be below 2**128"))
}

#[pyclass(frozen, module = "foreblock._engine")]
pub struct Message(pub Arc<EngineMessage>);

/// The access list of a call.
#[pyclass(frozen, module = "foreblock._engine")]
pub struct AccessList(pub EngineAccessList);

#[pymethods]
impl AccessList {
    #[getter]
    fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.iter().map(|item| item.storage_keys.len()).sum())
    }
}

/// An access list as a Python list, or parsed from a request.
struct AccessListArgument(EngineAccessList);

impl<'py> FromPyObject<'_, 'py> for AccessListArgument {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(read) = value.cast::<AccessList>() {
            return Ok(Self(read.get().0.clone()));
        }
        let items: Vec<Pair<Arg<Address>, Vec<Arg<B256>>>> = value.extract()?;
        let item = |Pair(address, keys): Pair<Arg<Address>, Vec<Arg<B256>>>| AccessListItem {
            address: address.0,
            storage_keys: keys.into_iter().map(|key| key.0).collect(),
        };
        Ok(Self(EngineAccessList(items.into_iter().map(item).collect())))
    }
}

#[pymethods]
impl Message {
    #[new]
    #[pyo3(signature = (
        *, sender, to = None, value = Arg(U256::ZERO), data = Arg(Bytes::new()), gas,
        nonce = None, gas_price = None, max_fee_per_gas = None,
        max_priority_fee_per_gas = None, access_list = None, blob_hashes = None,
        max_fee_per_blob_gas = None, authorization_list = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords, each a field of a call")]
    fn new(
        sender: Arg<Address>,
        to: Option<Arg<Address>>,
        value: Arg<U256>,
        data: Arg<Bytes>,
        gas: Arg<u64>,
        nonce: Option<Arg<u64>>,
        gas_price: Option<Arg<U256>>,
        max_fee_per_gas: Option<Arg<U256>>,
        max_priority_fee_per_gas: Option<Arg<U256>>,
        access_list: Option<AccessListArgument>,
        blob_hashes: Option<Vec<Arg<B256>>>,
        max_fee_per_blob_gas: Option<Arg<U256>>,
        authorization_list: Option<Vec<Py<Authorization>>>,
    ) -> PyResult<Self> {
        let blob_fee = max_fee_per_blob_gas.as_ref().map(fee_per_gas).transpose()?;
        let authorizations = authorization_list.unwrap_or_default();
        Ok(Self(Arc::new(EngineMessage {
            from: sender.0,
            to: to.map(|to| to.0),
            value: value.0,
            data: data.0,
            gas: gas.0,
            nonce: nonce.map(|nonce| nonce.0),
            fees: fees(gas_price, max_fee_per_gas, max_priority_fee_per_gas)?,
            access_list: access_list.map(|list| list.0).unwrap_or_default(),
            blob_hashes: blob_hashes.unwrap_or_default().into_iter().map(|hash| hash.0).collect(),
            max_fee_per_blob_gas: blob_fee.unwrap_or_default(),
            authorization_list: authorizations.iter().map(|it| it.get().0.clone()).collect(),
        })))
    }
}

fn fees(
    gas_price: Option<Arg<U256>>,
    max_fee: Option<Arg<U256>>,
    max_priority_fee: Option<Arg<U256>>,
) -> PyResult<Fees> {
    match (gas_price, max_fee, max_priority_fee) {
        (None, None, None) => Ok(Fees::default()),
        (Some(price), None, None) => Ok(Fees::Legacy { gas_price: fee_per_gas(&price)? }),
        (None, cap, tip) => {
            let fee = |fee: Option<Arg<U256>>| fee.as_ref().map_or(Ok(0), fee_per_gas);
            Ok(Fees::Dynamic { max_fee_per_gas: fee(cap)?, max_priority_fee_per_gas: fee(tip)? })
        }
        _ => Err(invalid("a message has either gas_price or the two fees of EIP-1559")),
    }
}
