//! EVM execution over a durable store of every state.
//!
//! Pure Rust: no Python, no sockets, no clock but the deadline of a run.

pub mod error;
pub mod state;
