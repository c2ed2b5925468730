//! Commits that only replace the note, outside LMDB.
//!
//! An idle chain replaces its note with every empty flashblock. In LMDB such a commit writes three
//! pages or more, and a meta page. Instead it is a record in the file `note`, on top of the last
//! commit in LMDB, its *base*. The next commit in LMDB continues from its number and note.
//!
//! The file has two records, written in turn, so a writer that is killed inside one leaves the
//! other. A record is valid if its first word is not zero: it is set to zero before the rest is
//! changed, and to the number of the commit afterwards. Records of another base are not read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::batch::{Batch, Step};
use super::disk;
use super::heads::Heads;
use super::lmdb;
use super::open::Store;
use crate::error::{Error, Result};

const FILE: &str = "note";
const FILE_BYTES: usize = 4096;
/// The position of the second record. A record is inside one sector, so the disk does not tear it.
const SECOND: usize = 512;
/// Number, base, id of the store in two words, length of the note.
const FIXED_WORDS: usize = 5;
const WORDS: usize = FIXED_WORDS + MAX_NOTE / 8;
/// A batch with a longer note is committed in LMDB.
const MAX_NOTE: usize = 64;

/// One commit that replaced the note.
#[derive(Clone, Copy)]
pub(super) struct Record([u64; WORDS]);

impl Record {
    fn new(base: &Heads, commit: u64, note: &[u8]) -> Self {
        let mut bytes = [0; WORDS * 8];
        let (numbers, rest) = bytes.split_at_mut(16);
        numbers[..8].copy_from_slice(&commit.to_ne_bytes());
        numbers[8..].copy_from_slice(&base.commit.to_ne_bytes());
        rest[..16].copy_from_slice(&base.store_id);
        rest[16..24].copy_from_slice(&(note.len() as u64).to_ne_bytes());
        rest[24..][..note.len()].copy_from_slice(note);
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Self(words)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    pub fn commit(&self) -> u64 {
        self.0[0]
    }

    fn is_of(&self, heads: &Heads) -> bool {
        self.bytes()[16..32] == heads.store_id
    }

    /// True if its base is a later commit than these heads.
    pub fn is_beyond(&self, base: &Heads) -> bool {
        self.0[1] > base.commit && self.is_of(base)
    }

    /// The heads after it, if these are its base.
    pub fn after(&self, base: &Heads) -> Option<Heads> {
        let length = usize::try_from(self.0[4]).ok().filter(|length| *length <= MAX_NOTE)?;
        if self.0[1] != base.commit || self.commit() <= base.commit || !self.is_of(base) {
            return None;
        }
        let note = self.bytes()[FIXED_WORDS * 8..][..length].to_vec();
        Some(Heads { commit: self.commit(), note, ..base.clone() })
    }
}

pub(super) struct NoteFile {
    file: File,
    /// The file, mapped for reading.
    words: NonNull<AtomicU64>,
    sync: bool,
}

// SAFETY: the mapping is only read, by atomic loads, and lasts until the value is dropped.
unsafe impl Send for NoteFile {}
// SAFETY: as above.
unsafe impl Sync for NoteFile {}

impl NoteFile {
    /// Opens or creates the file for writing. With `sync`, a record is on disk when it is written.
    pub fn create(store: &Path, sync: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(store.join(FILE))?;
        if file.metadata()?.len() < FILE_BYTES as u64 {
            // All of it, because a mapping cannot be read beyond the end of its file.
            file.write_all_at(&[0; FILE_BYTES], 0)?;
            if sync {
                file.sync_all().and_then(|()| File::open(store)?.sync_all())?;
            }
        }
        Self::map(file, sync)
    }

    pub fn open(store: &Path) -> io::Result<Self> {
        let file = File::open(store.join(FILE))?;
        match file.metadata()?.len() < FILE_BYTES as u64 {
            true => Err(io::ErrorKind::UnexpectedEof.into()),
            false => Self::map(file, false),
        }
    }

    fn map(file: File, sync: bool) -> io::Result<Self> {
        let (protection, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping of a file with this many bytes, which nothing truncates.
        let mapped = unsafe {
            libc::mmap(std::ptr::null_mut(), FILE_BYTES, protection, shared, file.as_raw_fd(), 0)
        };
        match NonNull::new(mapped.cast()) {
            Some(words) if mapped != libc::MAP_FAILED => Ok(Self { file, words, sync }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn word(&self, position: usize) -> &AtomicU64 {
        debug_assert!(position < FILE_BYTES / 8);
        // SAFETY: inside the mapping, which is aligned and lasts as long as `self`. Another process
        // may write the word, so it is atomic.
        unsafe { self.words.add(position).as_ref() }
    }

    fn record(&self, at: usize) -> Option<Record> {
        let first = self.word(at / 8).load(Ordering::Acquire);
        let mut words = [first; WORDS];
        for (position, word) in words.iter_mut().enumerate().skip(1) {
            *word = self.word(at / 8 + position).load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        let is_whole = first != 0 && self.word(at / 8).load(Ordering::Relaxed) == first;
        is_whole.then_some(Record(words))
    }

    /// The last record; `None` if there is none.
    pub fn last(&self) -> Option<Record> {
        [0, SECOND].into_iter().filter_map(|at| self.record(at)).max_by_key(Record::commit)
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let is_first = |last: Record| self.record(0).map(|it| it.commit()) == Some(last.commit());
        let at = if self.last().is_some_and(is_first) { SECOND as u64 } else { 0 };
        let bytes = record.bytes();
        let invalidate = || self.file.write_all_at(&[0; 8], at);
        invalidate()?;
        self.file.write_all_at(&bytes[8..], at + 8)?;
        self.file.write_all_at(&bytes[..8], at)?;
        let synced = if self.sync { self.file.sync_data() } else { Ok(()) };
        synced.or_else(|failed| invalidate().and(Err(failed)))
    }
}

impl Drop for NoteFile {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which nothing refers to any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), FILE_BYTES) };
    }
}

impl Store {
    /// The last commit in LMDB, if the batch only replaces the note and can be a record after it.
    ///
    /// # Errors
    ///
    /// `StaleBatch`, or a store read error.
    pub(super) fn base_of_note(&self, batch: &Batch) -> Result<Option<Heads>> {
        let is_note = |step: &Step| matches!(step, Step::Note(note) if note.len() <= MAX_NOTE);
        if batch.settle || batch.read.is_some() || !batch.steps.iter().all(is_note) {
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
