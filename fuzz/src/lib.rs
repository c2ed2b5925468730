//! What is tried with inputs that look for new ways through the engine.
//!
//! Each module has a `run` that takes one input and panics where a promise is broken. The
//! programs in `targets/` give libFuzzer's inputs to it, `tests/corpus.rs` those that are kept.

pub mod commits;
pub mod decoders;
pub mod readers;
pub mod rows;
pub mod store;
