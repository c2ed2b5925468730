//! A copy of the last commit without the pages that are free, while the store is in use.
//!
//! LMDB writes the tables one after the other, as they are in one read transaction, so
//! commits go on beside it. What they replace meanwhile is kept until the copy is done.

use std::fs::File;
use std::path::Path;

use heed::CompactionOption;

use super::lmdb;
use super::open::Store;
use crate::error::{Error, Result};

impl Store {
    /// Write the copy to a new file, which is durable when this returns; its name is not.
    ///
    /// # Errors
    ///
    /// `DiskFull`, `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn copy(&self, to: &Path) -> Result<()> {
        // A view finds out whether enough is mapped.
        self.view()?.close();
        let env = self.env.using()?;
        let failed = |error: std::io::Error| match lmdb(heed::Error::Io(error)) {
            Error::Store(why) => Error::Store(format!("cannot write {}: {why}", to.display())),
            other => other,
        };
        let mut file = File::create_new(to).map_err(failed)?;
        env.copy_to_file(&mut file, CompactionOption::Enabled).map_err(lmdb)?;
        file.sync_all().map_err(failed)
    }
}
