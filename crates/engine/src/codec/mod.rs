//! Bytes of blocks: decoded, encoded, hashed, signed, and written as JSON.
//!
//! Decoding is exact: what is accepted is the one canonical encoding, and everything else is
//! `Error::Undecodable`. Whether a value may stand in a block is not judged here.

pub mod block;
pub mod header;
pub mod json;
pub mod keys;
pub mod receipt;
pub mod requests;
pub mod transaction;
pub mod transaction_json;
