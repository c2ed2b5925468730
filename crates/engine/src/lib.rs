//! EVM execution over a durable store of every state.
//!
//! Pure Rust: no Python, no sockets, no clock but the deadline of a run. `error` and `state`
//! are what all share; `abi`, `codec` and `trie` are functions of bytes; `store` keeps states, `evm`
//! runs above them, `tracing` watches it, `stored`, `logs` and `simulate` read and make blocks.
//! A `witness` is as much of a state as one block needs.

pub mod error;
pub mod missing_keys;
pub mod state;

pub mod abi;
pub mod codec;
pub mod trie;

pub mod fetched_state;
pub mod store;
pub mod stored;
pub mod witness;

pub mod logs;

pub mod evm;
pub mod pool;
pub mod simulate;
pub mod tracing;

pub mod fast_path;
pub mod params;

#[cfg(test)]
mod testing;
