//! Rows of blocks, read in place: transactions, receipts, and the tips they paid.

pub mod fragments;
pub mod items;
pub mod tips;
pub mod touched;
