//! Compacted copies of the last commit while the store is in use.
//!
//! LMDB copies the tables one by one in one read transaction, so commits continue concurrently. The
//! pages that they replace are kept until the copy is done.
//!
//! A copy takes as long as its receiver needs, so it uses a separate environment with its own map.
//! The store can be remapped or closed during the copy.

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
    /// Writes the copy to a new file. On return the content is durable, but the directory entry is
    /// not.
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
        let note = self.last_note();
        self.write_copy(&file)?;
        file.sync_all().and_then(|()| self.copy_note(note, to)).map_err(failed)
    }

    /// Writes the copy sequentially to a file, pipe or socket. Its log row is the position from
    /// which to follow the log.
    ///
    /// # Errors
    ///
    /// `DiskFull`, `StoreClosed`, `StoreDamaged`, `Store`; the last also if the receiver closes the
    /// pipe or socket.
    pub fn copy_to(&self, to: BorrowedFd<'_>) -> Result<()> {
        let to = to.try_clone_to_owned().map_err(|error| lmdb(heed::Error::Io(error)))?;
        self.write_copy(&File::from(to))
    }

    fn write_copy(&self, file: &File) -> Result<()> {
        // The copy is of this commit or a later one. This view keeps the pages of both.
        let view = self.view()?;
        loop {
            match Apart::open(self.path())?.copy(file) {
                // The writer has extended the file since it was mapped. Nothing is written yet:
                // retry.
                Err(Error::MapOutgrown) => {}
                done => break done?,
            }
        }
        view.check_open()
    }
}

/// A second environment on the store's file, without locks.
struct Apart(*mut ffi::MDB_env);

impl Apart {
    fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("data.mdb");
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| Error::Store(error.to_string()))?;
        let flags = ffi::MDB_RDONLY | ffi::MDB_NOLOCK | ffi::MDB_NOSUBDIR | ffi::MDB_NOTLS;
        let mut env = ptr::null_mut();
        // SAFETY: the arguments outlive the calls. The environment is closed by `Drop`, also if
        // opening it fails. LMDB forbids opening a file twice in one process because of its locks,
        // and this environment takes none; the view in `write_copy` keeps the pages that it reads.
        unsafe {
            check(ffi::mdb_env_create(&mut env))?;
            let made = Self(env);
            check(ffi::mdb_env_open(env, path.as_ptr(), flags, 0))?;
            Ok(made)
        }
    }

    fn copy(&self, to: &File) -> Result<()> {
        // SAFETY: the environment and the file are open.
        check(unsafe { ffi::mdb_env_copyfd2(self.0, to.as_raw_fd(), ffi::MDB_CP_COMPACT) })
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // SAFETY: the environment was created by `open` and is not shared.
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
