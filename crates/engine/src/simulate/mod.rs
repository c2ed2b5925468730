//! Blocks of unsigned calls, as built by eth_simulateV1.

pub mod block_template;
pub mod body;
