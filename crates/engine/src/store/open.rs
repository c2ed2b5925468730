//! Opening and closing: the folder, the writer lock, and the tables.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use heed::{Env, EnvFlags, EnvOpenOptions, RwTxn, WithoutTls};

use super::environment::Environment;
use super::floors::{Keep, Retention};
use super::note_file::NoteFile;
use super::pending_node_layers::PendingNodeLayers;
use super::snapshot::Lease;
use super::tables::{Tables, make_tables};
use super::{disk, length, lmdb, map};
use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;

/// Address space, not disk space: the file grows with its content, and the map when it is full.
pub const DEFAULT_MAP_SIZE: usize = 1 << 38;
/// A process uses one reader slot of 64 bytes for each commit that it is reading.
pub const DEFAULT_MAX_READERS: u32 = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub mode: Mode,
    pub map_size: usize,
    pub max_readers: u32,
    pub retention: Retention,
    /// True if a commit returns only once it is on disk. If false, a killed process loses nothing,
    /// but a machine failure may leave a damaged file.
    pub sync: bool,
}

impl Options {
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            map_size: DEFAULT_MAP_SIZE,
            max_readers: DEFAULT_MAX_READERS,
            retention: Retention::default(),
            sync: true,
        }
    }

    fn check(&self) -> Result<()> {
        if self.map_size == 0 || self.max_readers == 0 {
            return Err(Error::invalid("map size and readers must be above 0"));
        }
        self.retention.check()
    }
}

pub struct Store {
    pub(super) env: Environment,
    pub(super) tables: Tables,
    pub(super) retention: Retention,
    /// The snapshot that the next view shares, unless there is a newer commit.
    pub(super) shared: Mutex<Option<Lease>>,
    /// The fallback of views for keys that the store does not know.
    pub(super) fallback_state: Mutex<Option<Arc<FetchedState>>>,
    path: PathBuf,
    /// Not set while there is no file.
    pub(super) note_file: OnceLock<NoteFile>,
    writer: Option<Writer>,
}

/// State that only the writing process has.
struct Writer {
    layers: Mutex<PendingNodeLayers>,
    /// The oldest block that must remain a rewind target, regardless of retention.
    held: AtomicU64,
    sync: bool,
}

impl Store {
    /// # Errors
    ///
    /// `StoreMissing`, `StoreLocked`, `StoreOpenHere`, `UnknownStoreFormat`, `InvalidArgument` for
    /// invalid options, or an I/O error.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        match options.mode {
            Mode::Write => Self::open_to_write(path, options),
            Mode::Read => Self::open_to_read(path, options),
        }
    }

    fn open_to_write(path: &Path, options: &Options) -> Result<Self> {
        options.check()?;
        std::fs::create_dir_all(path).map_err(|error| cannot_open(path, &error))?;
        refuse_if_open_here(path)?;
        let lock = lock_for_writing(path)?;
        disk::forget_unfinished(path).map_err(|error| cannot_open(path, &error))?;
        let env = open_env(path, options)?;
        let tables = loop {
            match make_tables(&env, path).map_err(|error| with_map_size(error, &env)) {
                Err(Error::StoreFull(size)) => {
                    // SAFETY: no other code has this environment yet, and no transaction is open.
                    unsafe { env.resize(map::twice(size)?) }.map_err(lmdb)?;
                }
                made => break made?,
            }
        };
        // Killed readers may have left reader slots, which would pin old pages.
        env.clear_stale_readers().map_err(lmdb)?;
        let store = Self::with(env, tables, options, path, Some(lock));
        store.begin_notes()?;
        Ok(store)
    }

    fn open_to_read(path: &Path, options: &Options) -> Result<Self> {
        let missing = || Error::StoreMissing(path.display().to_string());
        if !path.join("data.mdb").exists() {
            return Err(missing());
        }
        let env = open_env(path, options)?;
        let txn = env.read_txn().map_err(lmdb)?;
        let tables =
            Tables::each(|name| env.open_database(&txn, name).map_err(lmdb)?.ok_or_else(missing))?;
        let tables = tables.with_heads_row_of(&txn)?;
        tables.heads(&txn)?;
        // LMDB discards table handles that were opened in an uncommitted transaction.
        txn.commit().map_err(lmdb)?;
        let store = Self::with(env, tables, options, path, None);
        store.find_notes();
        Ok(store)
    }

    fn with(
        env: Env<WithoutTls>,
        tables: Tables,
        options: &Options,
        path: &Path,
        lock: Option<File>,
    ) -> Self {
        let path = path.to_path_buf();
        let (retention, shared) = (options.retention, Mutex::default());
        let writer = lock.as_ref().map(|_| Writer {
            layers: Mutex::default(),
            held: AtomicU64::new(u64::MAX),
            sync: options.sync,
        });
        let env = Environment::new(env, lock);
        let (fallback_state, note_file) = (Mutex::default(), OnceLock::new());
        Self { env, tables, retention, shared, fallback_state, path, note_file, writer }
    }

    /// True if a view would have to wait because the map is being resized or the store closed.
    pub fn is_busy(&self) -> bool {
        self.env.is_busy()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file size at which the map must be raised.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn map_size(&self) -> Result<usize> {
        Ok(self.env.using()?.info().map_size)
    }

    /// The length of the file, including free pages.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn file_bytes(&self) -> Result<u64> {
        file_bytes(&self.path).map_err(|error| cannot_open(&self.path, &error))
    }

    /// The number of bytes in use in the file.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn used_bytes(&self) -> Result<u64> {
        // Opening a view remaps the file if it has outgrown the map.
        self.view()?.close();
        self.env.using()?.non_free_pages_size().map_err(lmdb)
    }

    /// True if a commit returns only once it is on disk.
    pub(super) fn sync(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.sync)
    }

    /// The highest number of reader slots used so far, and the number of slots.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn reader_slots(&self) -> Result<(u32, u32)> {
        let info = self.env.using()?.info();
        Ok((info.number_of_readers, info.maximum_number_of_readers))
    }

    /// Frees the slots of readers that died inside a view. Cheap: the writer should call it every
    /// few seconds, so that a killed reader does not pin pages.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn clear_stale_readers(&self) -> Result<usize> {
        self.env.using()?.clear_stale_readers().map_err(lmdb)
    }

    /// Closes the store. Views, states and tries of this store return `StoreClosed` from then on.
    /// Waits for a commit or read in progress. The folder can then be opened again, also by this
    /// process.
    pub fn close(&self) {
        self.drop_shared_snapshot();
        self.env.close();
    }

    /// Prevents pruning of everything that a rewind to this block, or a partial above it, needs.
    /// `None` removes the hold. It is not persisted.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`.
    pub fn hold(&self, block: Option<u64>) -> Result<()> {
        let writer = self.writer.as_ref().ok_or(Error::StoreReadOnly)?;
        writer.held.store(block.unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn keep(&self) -> Keep {
        let held = self.writer.as_ref().map(|writer| writer.held.load(Ordering::Relaxed));
        Keep { retention: self.retention, held: held.unwrap_or(u64::MAX) }
    }

    pub(super) fn layers(&self) -> Result<MutexGuard<'_, PendingNodeLayers>> {
        let writer = self.writer.as_ref().ok_or(Error::StoreReadOnly)?;
        // A poisoned lock is usable: the layers are derived data.
        Ok(writer.layers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Runs `change` in one durable transaction and rolls it back on failure. If the map is full,
    /// it is raised and `change` runs again.
    pub(super) fn write<T>(&self, mut change: impl FnMut(&mut RwTxn) -> Result<T>) -> Result<T> {
        if self.writer.is_none() {
            return Err(Error::StoreReadOnly);
        }
        // The shared snapshot would pin the pages that this transaction frees.
        self.drop_shared_snapshot();
        loop {
            match self.write_once(&mut change) {
                Err(Error::StoreFull(size)) => self.env.raise_map(size)?,
                done => return done,
            }
        }
    }

    fn write_once<T>(&self, change: impl FnOnce(&mut RwTxn) -> Result<T>) -> Result<T> {
        let env = self.env.using()?;
        let run = || {
            let mut txn = env.write_txn().map_err(lmdb)?;
            let result = change(&mut txn)?;
            txn.commit().map_err(|error| disk::explain(error, &self.path))?;
            Ok(result)
        };
        run().map_err(|error| with_map_size(error, &env))
    }

    #[cfg(test)]
    pub(crate) fn with_deltas(
        &self,
        mut work: impl FnMut(super::Table, &mut RwTxn) -> Result<()>,
    ) -> Result<()> {
        self.write(|txn| work(self.tables.deltas, txn))
    }
}

/// Adds the map size, which LMDB does not report.
fn with_map_size(error: Error, env: &Env<WithoutTls>) -> Error {
    match error {
        Error::StoreFull(_) => Error::StoreFull(env.info().map_size),
        other => other,
    }
}

fn open_env(path: &Path, options: &Options) -> Result<Env<WithoutTls>> {
    length::check(path)?;
    let mut open = EnvOpenOptions::new().read_txn_without_tls();
    open.max_dbs(Tables::NAMES.len() as u32).max_readers(options.max_readers);
    if options.mode == Mode::Write {
        open.map_size(map::at_opening(options.map_size, file_bytes(path).unwrap_or(0)));
        if !options.sync {
            // SAFETY: the operating system keeps written data unless the machine fails. A caller
            // that disables `sync` must discard the file in that case.
            unsafe { open.flags(EnvFlags::NO_SYNC) };
        }
    } else {
        // SAFETY: read-only access is less than the default. Without a map size, LMDB uses the one
        // that the writer stored in the file.
        unsafe { open.flags(EnvFlags::READ_ONLY) };
    }
    // SAFETY: only LMDB modifies the file; no process maps it otherwise.
    unsafe { open.open(path) }.map_err(|error| match error {
        heed::Error::EnvAlreadyOpened => Error::StoreOpenHere(path.display().to_string()),
        heed::Error::Io(error) if !disk::is_full(&error) => cannot_open(path, &error),
        other => lmdb(other),
    })
}

fn file_bytes(path: &Path) -> std::io::Result<u64> {
    Ok(path.join("data.mdb").metadata()?.len())
}

fn lock_for_writing(path: &Path) -> Result<File> {
    let lock = File::create(path.join("writer.lock")).map_err(|error| cannot_open(path, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::StoreLocked(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(cannot_open(path, &error)),
    }
}

/// The writer lock cannot distinguish a second store in this process from another process.
fn refuse_if_open_here(path: &Path) -> Result<()> {
    let canonical = path.canonicalize().map_err(|error| cannot_open(path, &error))?;
    match heed::env_closing_event(canonical) {
        None => Ok(()),
        Some(_) => Err(Error::StoreOpenHere(path.display().to_string())),
    }
}

fn cannot_open(path: &Path, error: &std::io::Error) -> Error {
    let why = format!("cannot open {}: {error}", path.display());
    // Rejected before the system call: a path with a zero byte, or an invalid map size.
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::InvalidInput, None) => Error::invalid(why),
        _ => Error::Store(why),
    }
}
