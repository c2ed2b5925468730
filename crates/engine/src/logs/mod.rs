//! Logs: filters, JSON output, and the index that finds their blocks.

pub mod filter;
pub mod found;
pub mod index;
pub mod search;
mod sections;
