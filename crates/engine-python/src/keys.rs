//! Python bindings of transactions made of messages, signed and unsigned.

use alloy_primitives::{Address, B256};
use foreblock_engine::codec::{keys, transaction};
use pyo3::prelude::*;

use crate::codec::Transaction;
use crate::convert::Arg;
use crate::env::Message;
use crate::error::to_python;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(unsigned_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(sign_transaction, module)?)?;
    module.add_function(wrap_pyfunction!(sign_digest, module)?)?;
    module.add_function(wrap_pyfunction!(public_key, module)?)?;
    module.add_function(wrap_pyfunction!(address_of, module)?)
}

#[pyfunction]
fn unsigned_transaction(
    message: &Message,
    chain_id: Arg<u64>,
    nonce: Arg<u64>,
) -> PyResult<Transaction> {
    transaction::named(&message.0, chain_id.0, nonce.0).map(Transaction).map_err(to_python)
}

#[pyfunction]
fn sign_transaction(
    message: &Message,
    r#type: Arg<u8>,
    chain_id: Arg<u64>,
    nonce: Arg<u64>,
    secret: Arg<B256>,
) -> PyResult<Transaction> {
    keys::sign_transaction(&message.0, r#type.0, chain_id.0, nonce.0, &secret.0)
        .map(Transaction)
        .map_err(to_python)
}

#[pyfunction]
fn sign_digest(digest: Arg<B256>, secret: Arg<B256>) -> PyResult<[u8; 65]> {
    keys::sign_digest(digest.0, &secret.0).map_err(to_python)
}

#[pyfunction]
fn public_key(secret: Arg<B256>) -> PyResult<[u8; 33]> {
    keys::public_key(&secret.0).map_err(to_python)
}

#[pyfunction]
fn address_of(secret: Arg<B256>) -> PyResult<[u8; 20]> {
    keys::address_of(&secret.0).map(Address::into_array).map_err(to_python)
}
