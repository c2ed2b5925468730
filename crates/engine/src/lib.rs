//! EVM execution over a durable store of every state.
//!
//! Pure Rust: no Python, no sockets, no clock but the deadline of a run.

pub mod block;
pub mod bulk_root;
pub mod delta;
pub mod entry;
pub mod error;
pub mod header;
pub mod ordered_root;
pub mod receipt;
pub mod requests;
pub mod state;
pub mod state_root;
pub mod store;
pub mod transaction;
pub mod trie;
