//! Commits of a note alone, which are records of the note file (`note_file`).

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::batch::{Batch, Step};
use super::disk;
use super::heads::Heads;
use super::lmdb;
use super::note_file::{FILE, FILE_BYTES, MAX_NOTE, NoteFile, Record};
use super::open::Store;
use crate::error::{Error, Result};

impl Store {
    /// The last commit in LMDB, if the batch only replaces the note and can be a record after it.
    ///
    /// # Errors
    ///
    /// `StaleBatch`, or a store read error.
    pub(super) fn base_of_note(&self, batch: &Batch) -> Result<Option<Heads>> {
        let is_note = |step: &Step| matches!(step, Step::Note(note) if note.len() <= MAX_NOTE);
        if batch.fold_all || batch.read.is_some() || !batch.steps.iter().all(is_note) {
            return Ok(None);
        }
        let (base, is_logged) = self.stored_heads()?;
        let now = self.with_note(base.clone()).commit;
        if now != batch.made_at {
            return Err(Error::StaleBatch { made_at: batch.made_at, now });
        }
        if is_logged || batch.steps.is_empty() {
            // A store in a log leaves it with a commit in LMDB.
            return Ok(None);
        }
        if self.note_file.get().is_none() {
            // The first one is a commit in LMDB, with which readers check for the file.
            self.create_notes()?;
            return Ok(None);
        }
        Ok(Some(base))
    }

    /// Writes the record of a batch that only replaces the note. The caller excludes other commits.
    pub(super) fn write_note(&self, base: Heads, batch: &Batch) -> Result<Heads> {
        let (Some(Step::Note(note)), Some(file)) = (batch.steps.last(), self.note_file.get())
        else {
            return Err(Error::StoreReadOnly);
        };
        let written = file.write(&Record::new(&base, batch.last, note));
        written.map_err(|failed| self.note_failed(failed))?;
        Ok(Heads { commit: batch.last, note: note.clone(), ..base })
    }

    fn note_failed(&self, error: io::Error) -> Error {
        disk::explain(heed::Error::Io(error), self.path())
    }

    /// The heads row, without a later note, and true if the store is part of a log.
    fn stored_heads(&self) -> Result<(Heads, bool)> {
        let env = self.env.using()?;
        let txn = env.read_txn().map_err(lmdb)?;
        Ok((self.tables.heads(&txn)?, self.tables.log_row(&txn)?.is_some()))
    }

    /// The number of the last commit.
    pub(super) fn last_commit(&self) -> Result<u64> {
        Ok(self.with_note(self.stored_heads()?.0).commit)
    }

    /// Opens the file for writing if there is one, and deletes records that do not follow the last
    /// commit in LMDB.
    pub(super) fn begin_notes(&self) -> Result<()> {
        if !self.path().join(FILE).exists() {
            return Ok(());
        }
        let file = self.create_notes()?;
        let (base, _) = self.stored_heads()?;
        match file.last().is_some_and(|last| last.after(&base).is_none()) {
            true => {
                file.file.write_all_at(&[0; FILE_BYTES], 0).map_err(|error| self.note_failed(error))
            }
            false => Ok(()),
        }
    }

    fn create_notes(&self) -> Result<&NoteFile> {
        let file = NoteFile::create(self.path(), self.sync());
        let file = file.map_err(|error| self.note_failed(error))?;
        Ok(self.note_file.get_or_init(|| file))
    }

    /// Opens the file for reading if it is not open.
    pub(super) fn find_notes(&self) {
        if self.note_file.get().is_none()
            && let Ok(file) = NoteFile::open(self.path())
        {
            let _ = self.note_file.set(file);
        }
    }

    /// Writes the last record to the folder of a copy.
    pub(super) fn copy_note(&self, last: Option<Record>, to: &Path) -> io::Result<()> {
        match (last, to.parent()) {
            (Some(last), Some(folder)) => NoteFile::create(folder, true)?.write(&last),
            _ => Ok(()),
        }
    }

    pub(super) fn last_note(&self) -> Option<Record> {
        self.note_file.get().and_then(NoteFile::last)
    }

    /// These heads from LMDB, or those of the last record if it follows them.
    pub(super) fn with_note(&self, base: Heads) -> Heads {
        self.last_note().and_then(|record| record.after(&base)).unwrap_or(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::note_file::SECOND;
    use crate::store::{LogRow, Mode, Options, Store};

    fn open(folder: &Path, mode: Mode) -> Store {
        Store::open(folder, &Options { map_size: 1 << 24, ..Options::new(mode) }).unwrap()
    }

    fn note(store: &Store, note: &[u8]) -> u64 {
        let mut batch = store.batch().unwrap();
        batch.note(note.to_vec());
        store.commit(batch).unwrap().commit
    }

    fn put(store: &Store) -> u64 {
        let mut batch = store.batch().unwrap();
        batch.put(b"row".to_vec(), b"value".to_vec()).unwrap();
        store.commit(batch).unwrap().commit
    }

    fn seen(store: &Store) -> (u64, Vec<u8>) {
        let view = store.view().unwrap();
        (view.heads().commit, view.heads().note.clone())
    }

    fn stored(store: &Store) -> (u64, Vec<u8>) {
        let (heads, _) = store.stored_heads().unwrap();
        (heads.commit, heads.note)
    }

    #[test]
    fn a_note_alone_is_a_commit_outside_lmdb_that_the_next_one_continues() {
        let folder = crate::store::test_folder();
        let store = open(folder.path(), Mode::Write);
        assert_eq!((note(&store, b"a"), note(&store, b"b"), note(&store, b"b")), (1, 2, 3));
        assert_eq!((seen(&store), stored(&store)), ((3, b"b".to_vec()), (1, b"a".to_vec())));
        let (first, second) = (store.view().unwrap(), store.view().unwrap());
        assert!(std::sync::Arc::ptr_eq(first.heads(), second.heads()), "one object per commit");
        let stale = store.batch().unwrap();
        assert_eq!(note(&store, b"c"), 4);
        assert_eq!(first.heads().note, b"b", "a view does not change");
        assert_eq!(store.commit(stale).unwrap_err(), Error::StaleBatch { made_at: 3, now: 4 });
        let mut late = store.batch().unwrap();
        late.note(b"late".to_vec());
        assert_eq!(put(&store), 5);
        assert_eq!(store.commit(late).unwrap_err(), Error::StaleBatch { made_at: 4, now: 5 });
        assert_eq!((seen(&store), stored(&store)), ((5, b"c".to_vec()), (5, b"c".to_vec())));
        assert_eq!(note(&store, &[7; MAX_NOTE + 1]), 6);
        assert_eq!(stored(&store).0, 6, "too long for the file");
        assert_eq!(note(&store, &[8; MAX_NOTE]), 7);
        while store.maintain(100).unwrap() > 0 {}
        store.put_note(7, b"put").unwrap();
        assert_eq!((seen(&store), stored(&store).0), ((7, b"put".to_vec()), 7));
        assert_eq!(note(&store, b"d"), 8);
        let copy = folder.path().join("copy");
        std::fs::create_dir(&copy).unwrap();
        store.copy(&copy.join("data.mdb")).unwrap();
        store.close();
        for folder in [folder.path(), &copy] {
            let store = open(folder, Mode::Read);
            assert_eq!((seen(&store), stored(&store).0), ((8, b"d".to_vec()), 7));
            drop(store);
            assert_eq!(note(&open(folder, Mode::Write), b"e"), 9);
        }
    }

    #[test]
    fn a_store_in_a_log_leaves_it_with_a_note() {
        let folder = crate::store::test_folder();
        let store = open(folder.path(), Mode::Write);
        let row = LogRow { epoch: 1, link: Default::default(), sequence: 1 };
        store.commit_if(&mut store.batch().unwrap(), Some(&row), || Ok(())).unwrap();
        note(&store, b"a");
        assert_eq!(store.view().unwrap().log_row(), Ok(None));
        assert_eq!(stored(&store), (2, b"a".to_vec()));
        assert_eq!((note(&store, b"b"), note(&store, b"c"), stored(&store).0), (3, 4, 3));
    }

    #[test]
    fn records_of_other_commits_and_torn_ones_are_not_read() {
        let folder = crate::store::test_folder();
        let file = folder.path().join(FILE);
        let store = open(folder.path(), Mode::Write);
        for each in [&b"first"[..], b"a", b"b"] {
            note(&store, each);
        }
        let both = std::fs::read(&file).unwrap();
        drop(store);
        let read_with = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            seen(&open(folder.path(), Mode::Read))
        };
        let torn = |at: usize, length: usize, byte: u8| {
            let mut torn = both.clone();
            torn[at..at + length].fill(byte);
            torn
        };
        assert_eq!(read_with(&both), (3, b"b".to_vec()));
        assert_eq!(read_with(&torn(SECOND, 8, 0)), (2, b"a".to_vec()), "the writer was killed");
        assert_eq!(read_with(&torn(0, 1024, 0)).0, 1);
        // Another base, another store, and a note that is too long.
        for at in [8, 16, 32] {
            assert_eq!(read_with(&torn(SECOND + at, 8, 0xee)).0, 1, "{at}");
        }
        assert_eq!(read_with(&both[..100]).0, 1);
        std::fs::write(&file, torn(SECOND + 16, 8, 0xee)).unwrap();
        assert_eq!(put(&open(folder.path(), Mode::Write)), 2);
        assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 0), "it is cleared");
    }

    #[test]
    fn a_reader_finds_a_file_that_is_created_later() {
        let folder = crate::store::test_folder();
        drop(open(folder.path(), Mode::Write));
        let reader = open(folder.path(), Mode::Read);
        assert_eq!(seen(&reader).0, 0);
        let (base, _) = reader.stored_heads().unwrap();
        let file = NoteFile::create(folder.path(), true).unwrap();
        file.write(&Record::new(&base, 1, b"a")).unwrap();
        reader.drop_shared_snapshot();
        assert_eq!(seen(&reader), (1, b"a".to_vec()));
    }
}
