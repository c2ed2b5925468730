//! EVM execution on a durable store of historical state.
//!
//! Pure Rust: no Python, no sockets, and no clock except for deadlines. The modules above `abi`
//! are shared by all others. `abi`, `codec` and `trie` are pure functions on bytes. `store` keeps the
//! state, `evm` executes on it and `tracing` records execution. `stored`, `logs`,
//! `simulate` and `block_execution` read and build blocks. `witness` holds the part of a state that one block needs.

pub(crate) mod cpu_slots;
pub mod deadline;
pub mod error;
pub(crate) mod generations;
pub mod message;
pub mod missing_keys;
pub(crate) mod node_key;
pub mod state;

pub mod abi;
pub mod codec;
pub mod trie;

pub mod fetched_state;
pub mod store;
pub mod stored;
pub mod witness;

pub mod logs;

pub mod block_execution;
pub mod evm;
pub mod pool;
pub mod simulate;
pub mod tracing;

pub mod fast_path;
pub mod params;

#[cfg(test)]
mod testing;
