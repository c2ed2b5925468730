//! Blocks of calls that nobody signed, as eth_simulateV1 makes them.

pub mod block_template;
pub mod body;
