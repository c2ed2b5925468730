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

use super::heads::Heads;

pub(super) const FILE: &str = "note";
pub(super) const FILE_BYTES: usize = 4096;
/// The position of the second record. A record is inside one sector, so the disk does not tear it.
pub(super) const SECOND: usize = 512;
/// Number, base, id of the store in two words, length of the note.
const FIXED_WORDS: usize = 5;
const WORDS: usize = FIXED_WORDS + MAX_NOTE / 8;
/// A batch with a longer note is committed in LMDB.
pub(super) const MAX_NOTE: usize = 64;

/// One commit that replaced the note.
#[derive(Clone, Copy)]
pub(super) struct Record([u64; WORDS]);

impl Record {
    pub fn new(base: &Heads, commit: u64, note: &[u8]) -> Self {
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
    pub file: File,
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

    /// The number of the record at this position, 0 while it is being written.
    fn number(&self, at: usize) -> u64 {
        self.word(at / 8).load(Ordering::Acquire)
    }

    fn record(&self, at: usize) -> Option<Record> {
        let first = self.number(at);
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
        // Mostly only the later record is read. If it is overwritten meanwhile, the other one is
        // newer by then.
        let [later, earlier] =
            if self.number(0) > self.number(SECOND) { [0, SECOND] } else { [SECOND, 0] };
        self.record(later).or_else(|| self.record(earlier))
    }

    pub fn write(&self, record: &Record) -> io::Result<()> {
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
