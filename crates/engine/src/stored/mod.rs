//! Rows of blocks, read in place: transactions, receipts, and the tips they paid.

pub mod base_time;
pub mod block;
pub mod fragments;
pub mod items;
pub mod l1_cost;
pub mod receipt;
pub mod receipt_json;
pub(crate) mod rlp;
pub mod tips;
pub mod touched;
