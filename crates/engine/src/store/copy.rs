//! A copy of the last commit without the pages that are free, while the store is in use.
//!
//! LMDB writes the tables one after the other, as they are in one read transaction, so
//! commits go on beside it. What they replace meanwhile is kept until the copy is done.
//!
//! The copy is made from an environment of its own, with a map of its own, which takes as long
//! as its reader does. So the store can map its file anew meanwhile, or be closed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use heed::MdbError;
use lmdb_master_sys as ffi;

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
        let failed = |error: io::Error| match lmdb(heed::Error::Io(error)) {
            Error::Store(why) => Error::Store(format!("cannot write {}: {why}", to.display())),
            other => other,
        };
        let file = File::create_new(to).map_err(failed)?;
        self.write_copy(&file)?;
        file.sync_all().map_err(failed)
    }

    /// Write the copy to a file, a pipe or a socket, from its beginning to its end. Its log row
    /// says where the log goes on.
    ///
    /// # Errors
    ///
    /// `DiskFull`, `StoreClosed`, `StoreDamaged`, `Store`, which says so when nobody reads on.
    pub fn copy_to(&self, to: BorrowedFd<'_>) -> Result<()> {
        let to = to.try_clone_to_owned().map_err(|error| lmdb(heed::Error::Io(error)))?;
        self.write_copy(&File::from(to))
    }

    fn write_copy(&self, file: &File) -> Result<()> {
        // The copy is of this commit or a later one. The view keeps the pages of both.
        let view = self.view()?;
        loop {
            match Apart::open(self.path())?.copy(file) {
                // The writer has added to the file since it was mapped; nothing is written yet.
                Err(Error::MapOutgrown) => {}
                done => break done?,
            }
        }
        view.check_open()
    }
}

/// An environment over the file of another one, without locks.
struct Apart(*mut ffi::MDB_env);

impl Apart {
    fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("data.mdb");
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Error::Store(error.to_string()))?;
        let flags = ffi::MDB_RDONLY | ffi::MDB_NOLOCK | ffi::MDB_NOSUBDIR | ffi::MDB_NOTLS;
        let mut env = ptr::null_mut();
        // SAFETY: the arguments outlive the calls, and an environment that was made is closed,
        // also where opening it fails. LMDB forbids to open a file twice in a process because of
        // its locks, of which this one has none; `write_copy` keeps the pages that it reads.
        unsafe {
            check(ffi::mdb_env_create(&mut env))?;
            let made = Self(env);
            check(ffi::mdb_env_open(env, path.as_ptr(), flags, 0))?;
            Ok(made)
        }
    }

    fn copy(&self, to: &File) -> Result<()> {
        // SAFETY: it is open, and so is the file.
        check(unsafe { ffi::mdb_env_copyfd2(self.0, to.as_raw_fd(), ffi::MDB_CP_COMPACT) })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // SAFETY: it was made by `open`, and nobody else has it.
        unsafe { ffi::mdb_env_close(self.0) }
    }
}

fn check(code: i32) -> Result<()> {
    match code {
        ffi::MDB_SUCCESS => Ok(()),
        code if code > 0 => Err(lmdb(heed::Error::Io(io::Error::from_raw_os_error(code)))),
        code => Err(lmdb(heed::Error::Mdb(MdbError::from_err_code(code)))),
    }
}
