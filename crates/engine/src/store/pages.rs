//! What the file holds: the rows and pages of each table, and the pages that are free.

use super::lmdb;
use super::open::{Store, Table, Tables};
use crate::error::Result;

/// One table of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    pub name: &'static str,
    pub rows: usize,
    /// Those of long rows included.
    pub pages: usize,
    /// Pages on the way to a row.
    pub depth: u32,
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSize {
    pub page_bytes: u32,
    /// Up to the last that was ever used.
    pub pages: usize,
    /// Which the next commits use first.
    pub free_pages: usize,
    pub tables: Vec<TableSize>,
}

impl Store {
    /// The tables by name, each with its pages, those of long rows included.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn pages(&self) -> Result<Vec<(&'static str, usize)>> {
        Ok(self.sizes()?.tables.into_iter().map(|table| (table.name, table.pages)).collect())
    }

    /// The sizes of the last commit.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn sizes(&self) -> Result<FileSize> {
        // A view finds out whether enough is mapped.
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
