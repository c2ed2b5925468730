//! The mapping of engine errors to Python exceptions.
//!
//! The exception classes are defined in Python (`foreblock.errors`), so that they are documented
//! and caught in one place. Each takes the fields of its variant as positional arguments, in order.
//! Addresses and hashes are bytes.

use foreblock_engine::error::Error;
use foreblock_engine::trie::Owner;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::Class;
use crate::missing_keys::MissingKeys;

pub fn to_python(error: Error) -> PyErr {
    // If the exception cannot be created, the exception that prevented it is raised.
    Python::attach(|py| make(py, error).map_or_else(|failure| failure, PyErr::from_value))
}

fn make(py: Python<'_>, error: Error) -> PyResult<Bound<'_, PyAny>> {
    let new = Class(py);
    match error {
        Error::InvalidArgument(why) => new.call("InvalidArgument", (why,)),
        Error::RefusedOverride(why) => new.call("RefusedOverride", (why,)),
        Error::Undecodable { what, why } => new.call("Undecodable", (what, why)),
        Error::BadState { line, why } => new.call("BadState", (line, why)),
        Error::UnknownBlock(block) => new.call("UnknownBlock", (block,)),
        Error::UnknownPartial(partial) => new.call("UnknownPartial", (partial,)),
        Error::DroppedPartial(partial) => new.call("DroppedPartial", (partial,)),
        Error::PrunedState { block, earliest } => new.call("PrunedState", (block, earliest)),
        Error::StateMissing(misses) => new.call("StateMissing", (MissingKeys(*misses),)),
        Error::MissingTrieNodes { keys, block } => {
            new.call("MissingTrieNodes", (MissingKeys(*keys), block))
        }
        Error::IncompleteState(what) => new.call("IncompleteState", (what,)),
        Error::BadProof(why) => new.call("BadProof", (why,)),
        Error::InvalidTransaction { index, why } => new.call("InvalidTransaction", (index, why)),
        Error::InvalidMessage(why) => new.call("InvalidMessage", (why,)),
        Error::DeadlineExceeded => new.call("DeadlineExceeded", ()),
        Error::OverBudget { index, what } => new.call("OverBudget", (index, what)),
        Error::TraceTooLong(limit) => new.call("TraceTooLong", (limit,)),
        Error::NotAPrecompile(address) => new.call("NotAPrecompile", (address.into_array(),)),
        Error::PoolFull(waiting) => new.call("PoolFull", (waiting,)),
        Error::Execution(why) => new.call("ExecutionFailed", (why,)),
        Error::StoreMissing(path) => new.call("StoreMissing", (path,)),
        Error::StoreLocked(path) => new.call("StoreLocked", (path,)),
        Error::StoreOpenHere(path) => new.call("StoreOpenHere", (path,)),
        Error::StoreClosed => new.call("StoreClosed", ()),
        Error::StoreReadOnly => new.call("StoreReadOnly", ()),
        Error::StoreFull(map_size) => new.call("StoreFull", (map_size,)),
        Error::DiskFull(why) => new.call("DiskFull", (why,)),
        Error::StaleBatch { made_at, now } => new.call("StaleBatch", (made_at, now)),
        Error::RefusedCommit(why) => new.call("RefusedCommit", (why,)),
        Error::CommitDeclined => new.call("CommitDeclined", ()),
        Error::StoreDamaged(why) => new.call("StoreDamaged", (why,)),
        Error::UnknownStoreFormat { found, known } => {
            new.call("UnknownStoreFormat", (found, known))
        }
        Error::Store(why) => new.call("StoreFailed", (why,)),
        Error::MapOutgrown => new.call("StoreFailed", (error.to_string(),)),
        Error::MissingNode(missing) => {
            let address = match missing.owner {
                Owner::Accounts => PyBytes::new(py, &[]),
                Owner::Storage { address, .. } => PyBytes::new(py, address.as_slice()),
            };
            new.call("MissingNode", (address, missing.digits()))
        }
        Error::MissingCode(hash) => new.call("MissingCode", (hash.0,)),
        Error::MissingHeader(number) => new.call("MissingHeader", (number,)),
    }
}
