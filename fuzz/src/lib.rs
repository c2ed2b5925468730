//! Fuzz targets of the engine.
//!
//! Each module has a `run` that takes one input and panics if an invariant is violated. The
//! programs in `targets/` pass it libFuzzer's inputs, `tests/corpus.rs` those of the corpus.

pub mod commits;
pub mod decoders;
pub mod readers;
pub mod rows;
pub mod store;
