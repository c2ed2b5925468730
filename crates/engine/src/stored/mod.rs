//! Rows of blocks, read where they lie: transactions, receipts, and the tips they paid.

pub mod fragments;
pub mod items;
pub mod tips;
pub mod touched;
