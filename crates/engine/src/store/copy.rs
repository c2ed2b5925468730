//! A copy of the last commit without the pages that are free, while the store is in use.
//!
//! LMDB writes the tables one after the other, as they are in one read transaction, so
//! commits go on beside it. What they replace meanwhile is kept until the copy is done.

use std::fs::File;
use std::os::fd::BorrowedFd;
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
        let failed = |error: std::io::Error| match lmdb(heed::Error::Io(error)) {
            Error::Store(why) => Error::Store(format!("cannot write {}: {why}", to.display())),
            other => other,
        };
        self.follow_map()?;
        let file = File::create_new(to).map_err(failed)?;
        let file = self.write_copy(file)?;
        file.sync_all().map_err(failed)
    }

    /// Write the copy to a file, a pipe or a socket, from its beginning to its end. Its log row
    /// says where the log goes on.
    ///
    /// # Errors
    ///
    /// `DiskFull`, `StoreClosed`, `StoreDamaged`, `Store`, which says so when nobody reads on.
    pub fn copy_to(&self, to: BorrowedFd<'_>) -> Result<()> {
        self.follow_map()?;
        let to = to.try_clone_to_owned().map_err(|error| lmdb(heed::Error::Io(error)))?;
        self.write_copy(File::from(to)).map(drop)
    }

    /// A view finds out whether enough is mapped.
    fn follow_map(&self) -> Result<()> {
        self.view().map(|view| view.close())
    }

    fn write_copy(&self, mut file: File) -> Result<File> {
        let env = self.env.using()?;
        env.copy_to_file(&mut file, CompactionOption::Enabled).map_err(lmdb)?;
        Ok(file)
    }
}
