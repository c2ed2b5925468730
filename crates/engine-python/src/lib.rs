//! Python bindings of `foreblock-engine`.
//!
//! Deliberately thin: values are converted, the interpreter is released during long work, and
//! errors become exceptions. There is no logic here.

mod abi;
mod account;
mod batch;
mod block_execution;
mod body;
mod check;
mod codec;
mod convert;
mod env;
mod error;
mod fast_path;
mod fetched_state;
mod heads;
mod hex;
mod import;
mod json_parts;
mod keys;
mod logs;
mod meter;
mod missing_keys;
mod outcome;
mod overlay;
mod params;
mod plain_simulation;
mod pool;
mod proof;
mod state;
mod store;
mod stored;
mod tracing;
mod trie;
mod witness;

use pyo3::prelude::*;

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    abi::register(module)?;
    account::register(module)?;
    codec::register(module)?;
    keys::register(module)?;
    block_execution::register(module)?;
    body::register(module)?;
    env::register(module)?;
    fast_path::register(module)?;
    hex::register(module)?;
    json_parts::register(module)?;
    fetched_state::register(module)?;
    missing_keys::register(module)?;
    logs::register(module)?;
    meter::register(module)?;
    plain_simulation::register(module)?;
    outcome::register(module)?;
    overlay::register(module)?;
    params::register(module)?;
    pool::register(module)?;
    proof::register(module)?;
    state::register(module)?;
    batch::register(module)?;
    heads::register(module)?;
    store::register(module)?;
    check::register(module)?;
    import::register(module)?;
    stored::register(module)?;
    tracing::register(module)?;
    trie::register(module)?;
    witness::register(module)?;
    Ok(())
}
