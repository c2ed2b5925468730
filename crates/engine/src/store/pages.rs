//! How many pages of the file each table takes, to find what grows.

use super::lmdb;
use super::open::{Store, Tables};
use crate::error::Result;

impl Store {
    /// The tables by name, each with its pages, those of long rows included.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn pages(&self) -> Result<Vec<(&'static str, usize)>> {
        let env = self.env.using()?;
        let txn = env.read_txn().map_err(lmdb)?;
        let pages = |(name, table): (&'static str, super::open::Table)| {
            let stat = table.stat(&txn).map_err(lmdb)?;
            Ok((name, stat.branch_pages + stat.leaf_pages + stat.overflow_pages))
        };
        Tables::NAMES.into_iter().zip(self.tables.all()).map(pages).collect()
    }
}
