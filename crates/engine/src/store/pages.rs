//! File statistics: the rows and pages of each table, and the free pages.

use super::lmdb;
use super::open::Store;
use super::tables::{Table, Tables};
use crate::error::Result;

/// Statistics of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    pub name: &'static str,
    pub rows: usize,
    /// Including overflow pages.
    pub pages: usize,
    /// The depth of the B-tree.
    pub depth: u32,
}

/// Statistics of the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSize {
    pub page_bytes: u32,
    /// Pages up to the last one that was ever used.
    pub pages: usize,
    /// Pages that the next commits use first.
    pub free_pages: usize,
    pub tables: Vec<TableSize>,
}

impl Store {
    /// The statistics of the last commit.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn sizes(&self) -> Result<FileSize> {
        // Opening a view remaps the file if it has outgrown the map.
        self.view()?.close();
        let env = self.env.using()?;
        let txn = env.read_txn().map_err(lmdb)?;
        let size = |(name, table): (&'static str, Table)| {
            let stat = table.stat(&txn).map_err(lmdb)?;
            let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
            Ok(TableSize { name, rows: stat.entries, pages, depth: stat.depth })
        };
        let tables: Vec<_> =
            Tables::NAMES.into_iter().zip(self.tables.all()).map(size).collect::<Result<_>>()?;
        let page_bytes = self.tables.flat.stat(&txn).map_err(lmdb)?.page_size;
        drop(txn);
        let used = env.non_free_pages_size().map_err(lmdb)? / u64::from(page_bytes.max(1));
        let pages = env.info().last_page_number + 1;
        let free_pages = pages.saturating_sub(used as usize);
        Ok(FileSize { page_bytes, pages, free_pages, tables })
    }
}
