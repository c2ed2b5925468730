//! Blocks of unsigned calls, as built by eth_simulateV1.

pub mod body;
pub mod plain_simulation;
pub mod text;
