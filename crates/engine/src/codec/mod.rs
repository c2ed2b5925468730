//! Block data: decoding, encoding, hashing, signing and JSON output.
//!
//! Decoding is strict: only the canonical encoding is accepted, everything else fails with
//! `Error::Undecodable`. Validity within a block is not checked here.

pub mod block;
pub mod header;
pub mod json;
pub mod keys;
pub mod receipt;
pub mod requests;
pub mod transaction;
pub mod transaction_json;
