//! Failures of LMDB and of the disk: full or failing disks, and incomplete files.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::Error;

/// Converts an LMDB failure to an `Error`.
pub(crate) fn lmdb(error: heed::Error) -> Error {
    use heed::MdbError;
    match error {
        heed::Error::Mdb(MdbError::MapFull) => Error::StoreFull(0),
        heed::Error::Mdb(MdbError::MapResized) => Error::MapOutgrown,
        heed::Error::Mdb(MdbError::ReadersFull) => {
            Error::Store("too many readers; raise max_readers".into())
        }
        heed::Error::Mdb(
            damage @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid),
        ) => Error::StoreDamaged(damage.to_string()),
        heed::Error::Io(error) if is_full(&error) => Error::DiskFull(error.to_string()),
        other => Error::Store(other.to_string()),
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// LMDB starts a file with two pages, of at least 4096 bytes each.
const SHORTEST_FILE: u64 = 2 * 4096;

/// Empties a file that was truncated during creation. It never held a commit, and LMDB would always
/// reject it as invalid. The caller holds the writer lock.
pub(super) fn forget_unfinished(store: &Path) -> io::Result<()> {
    let data = store.join("data.mdb");
    match data.metadata() {
        Ok(found) if (1..SHORTEST_FILE).contains(&found.len()) => {
            OpenOptions::new().write(true).open(data)?.set_len(0)
        }
        _ => Ok(()),
    }
}

/// Converts the error of a failed commit. If the disk becomes full during a write, the write is
/// short and LMDB reports an I/O error; a second write finds the cause.
pub(super) fn explain(error: heed::Error, store: &Path) -> Error {
    match &error {
        heed::Error::Io(short) if short.raw_os_error() == Some(libc::EIO) => {
            match write_one_page(store) {
                Err(reason) if is_full(&reason) => Error::DiskFull(reason.to_string()),
                _ => lmdb(error),
            }
        }
        _ => lmdb(error),
    }
}

/// Writes a page after the end of the file, where no transaction refers to it, and truncates it
/// again. The caller holds the writer lock, and its transaction has ended.
fn write_one_page(store: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(store.join("data.mdb"))?;
    let end = file.metadata()?.len();
    let written = file.write_all_at(&[0; 4096], end);
    file.set_len(end)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_for_the_reason_leaves_the_file_as_it_was() {
        let folder = crate::store::test_folder();
        let data = folder.path().join("data.mdb");
        std::fs::write(&data, [7; 5000]).unwrap();
        let short = || heed::Error::Io(io::Error::from_raw_os_error(libc::EIO));
        assert!(matches!(explain(short(), folder.path()), Error::Store(_)));
        assert_eq!(std::fs::read(&data).unwrap(), [7; 5000]);
        std::fs::remove_file(&data).unwrap();
        assert!(matches!(explain(short(), folder.path()), Error::Store(_)));
        let full = heed::Error::Io(io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(matches!(explain(full, folder.path()), Error::DiskFull(_)));
    }

    #[test]
    fn a_file_that_was_cut_short_when_it_was_begun_is_begun_again() {
        let folder = crate::store::test_folder();
        let options = crate::store::Options::new(crate::store::Mode::Write);
        let open = || crate::store::Store::open(folder.path(), &options);
        open().unwrap();
        let data = folder.path().join("data.mdb");
        let file = OpenOptions::new().write(true).open(&data).unwrap();
        file.set_len(4096).unwrap();
        open().unwrap();
        assert!(data.metadata().unwrap().len() >= SHORTEST_FILE);
        open().unwrap();
    }
}
