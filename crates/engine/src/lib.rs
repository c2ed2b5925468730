//! EVM execution over a durable store of every state.
//!
//! Pure Rust: no Python, no sockets, no clock but the deadline of a run. Four groups:
//! the values and errors all share; the store and what it is made of; bytes of blocks
//! and their roots; execution.

pub mod error;
pub mod state;

mod delta;
mod entry;
pub mod store;

pub mod block;
pub mod block_tips;
pub mod body;
pub mod header;
pub mod json;
pub mod json_parts;
pub mod keccak;
pub mod keys;
pub mod opening;
pub mod ordered_root;
pub mod params;
pub mod receipt;
pub mod requests;
pub mod stored_items;
pub mod transaction;
pub mod transaction_json;

pub mod bulk_root;
pub mod state_root;
pub mod trie;

pub mod allowance;
pub mod code_cache;
mod database;
pub mod deadline;
pub mod env;
mod evm;
pub mod execute;
pub mod express;
mod instructions;
pub mod message;
pub mod outcome;
pub mod overlay;
pub mod pool;
pub mod precompiles;
pub mod rules;
pub mod shares;
pub mod transact;
pub mod transfers;
mod work;

#[cfg(test)]
mod testing;
