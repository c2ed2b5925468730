//! EVM execution: calls, transactions and system calls on a state, within limits.
//!
//! `execute` runs messages and `transact` runs transactions on an `overlay`. `machine` keeps the
//! EVMs of a thread between runs. This module does not depend on LMDB or JSON.

pub mod allowance;
pub mod cached_reader;
pub(crate) mod code_cache;
pub(crate) mod database;
pub mod env;
pub mod execute;
pub(crate) mod hashed;
pub(crate) mod instructions;
pub(crate) mod machine;
pub mod outcome;
pub mod overlay;
pub mod precompiles;
pub mod rules;
pub mod settlement;
pub mod transact;
pub(crate) mod transfers;
pub(crate) mod work;
