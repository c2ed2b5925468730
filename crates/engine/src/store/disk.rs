//! Telling a full disk from a broken one.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// The error of a failed commit as one of ours. A write that fills the disk half-way
/// succeeds in part, and LMDB calls that an I/O error; one more write tells the reason.
pub(super) fn explain(error: heed::Error, store: &Path) -> Error {
    match &error {
        heed::Error::Io(short) if short.raw_os_error() == Some(libc::EIO) => {
            match write_one_page(store) {
                Err(reason) if is_full(&reason) => Error::DiskFull(reason.to_string()),
                _ => super::lmdb(error),
            }
        }
        _ => super::lmdb(error),
    }
}

/// Behind the last page of the file, where no transaction refers to anything. The lock of
/// the one writer is held, and its transaction is over.
fn write_one_page(store: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(store.join("data.mdb"))?;
    file.write_all(&[0; 4096])
}
