//! Parameters of requests, read from their texts in one pass.
//!
//! Each reader takes what is usual and gives `None` for everything else, which is no judgement:
//! who asked reads the text again in the ordinary way, and says there what is wrong with it. So a
//! reader may be strict, and whatever it takes must mean what JSON says it means.

pub mod hex;
pub mod overrides;
pub mod plain_calls;
pub mod slots;
