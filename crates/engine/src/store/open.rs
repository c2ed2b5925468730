//! Opening and closing: the folder, the writer lock, and the tables.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use heed::types::Bytes;
use heed::{AnyTls, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use super::environment::Environment;
use super::floors::Keep;
use super::heads::Heads;
use super::pending_node_layers::PendingNodeLayers;
use super::snapshot::Lease;
use super::{disk, length, lmdb, map};
use crate::error::{Error, Result};
use crate::fetched_state::FetchedState;

/// Address space, not disk space: the file grows with its content, and the map when it is full.
pub const DEFAULT_MAP_SIZE: usize = 1 << 38;
/// A process uses one reader slot of 64 bytes for each commit that it is reading.
pub const DEFAULT_MAX_READERS: u32 = 16_384;

pub(crate) type Table = Database<Bytes, Bytes>;

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

/// Retention windows, in blocks behind `latest`.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    /// States of sealed blocks; `None` keeps all.
    pub states: Option<u64>,
    pub partials: u64,
    /// Versions of trie nodes, which rewinds and proofs of older blocks need.
    pub nodes: u64,
}

impl Retention {
    /// States must be kept for more blocks than partials: the block of a partial must stay readable
    /// as long as the partial.
    fn check(&self) -> Result<()> {
        match self.states {
            Some(states) if states <= self.partials => Err(Error::invalid(format!(
                "states of {states} blocks are too few for partials of {}",
                self.partials
            ))),
            _ => Ok(()),
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { states: None, partials: 64, nodes: 128 }
    }
}

#[derive(Clone, Copy)]
pub struct Tables {
    /// The heads row and the cursors of sliced work. This is LMDB's main database, which lists the
    /// other tables and is rewritten by every commit, so each commit writes one page less.
    pub meta: Table,
    /// The `meta` table of stores created by older versions, which keep their rows there.
    former_meta: Table,
    /// Flat state: entry key ‖ ~block → value.
    pub flat: Table,
    /// Deltas in chunks: number ‖ first entry key → chunk.
    pub deltas: Table,
    /// Code by hash; learned rows (`learning`); hashes of blocks before the first one
    /// (`ancestor_hashes`).
    pub codes: Table,
    /// Sealed blocks by number.
    pub sealed: Table,
    /// Partial blocks by partial number.
    pub partials: Table,
    /// Trie nodes: node key ‖ ~block → RLP, empty for a deleted node.
    pub nodes: Table,
    /// Keys of the trie nodes that a block wrote: block ‖ chunk → keys.
    pub node_changes: Table,
    /// Scheduled deletions: sequence number → `record::Garbage`.
    pub trash: Table,
    /// Python-owned rows.
    pub rows: Table,
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
    writer: Option<Writer>,
}

/// State that only the writing process has.
struct Writer {
    layers: Mutex<PendingNodeLayers>,
    /// The oldest block that must remain a rewind target, regardless of retention.
    held: AtomicU64,
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
        Ok(Self::with(env, tables, options, path, Some(lock)))
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
        Ok(Self::with(env, tables, options, path, None))
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
        let writer = lock
            .as_ref()
            .map(|_| Writer { layers: Mutex::default(), held: AtomicU64::new(u64::MAX) });
        let env = Environment::new(env, lock);
        let fallback_state = Mutex::default();
        Self { env, tables, retention, shared, fallback_state, path, writer }
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
        mut work: impl FnMut(Table, &mut RwTxn) -> Result<()>,
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

/// Opens the tables and creates missing ones, with the heads row of an empty store.
fn make_tables(env: &Env<WithoutTls>, path: &Path) -> Result<Tables> {
    let mut txn = env.write_txn().map_err(lmdb)?;
    let tables = Tables::each(|name| env.create_database(&mut txn, name).map_err(lmdb))?;
    if tables.heads_row(&txn)?.is_none() && tables.former_meta.is_empty(&txn).map_err(lmdb)? {
        // A version that reads the heads from this table rejects the store by this format.
        tables.former_meta.put(&mut txn, HEADS, &[HEADS_AT_THE_ROOT]).map_err(lmdb)?;
        let heads = Heads::new(random_id()?);
        tables.meta.put(&mut txn, HEADS, &heads.encode()).map_err(lmdb)?;
    }
    let tables = tables.with_heads_row_of(&txn)?;
    tables.heads(&txn)?;
    txn.commit().map_err(|error| disk::explain(error, path))?;
    Ok(tables)
}

pub(super) const HEADS: &[u8] = b"heads";
/// Stored instead of the heads row in the table where older stores have it.
const HEADS_AT_THE_ROOT: u8 = 2;

impl Tables {
    pub(super) const NAMES: [&'static str; 10] = [
        "meta",
        "flat",
        "deltas",
        "codes",
        "sealed",
        "partials",
        "nodes",
        "node_changes",
        "trash",
        "rows",
    ];

    fn each(mut open: impl FnMut(Option<&'static str>) -> Result<Table>) -> Result<Self> {
        let meta = open(None)?;
        let mut open = |name| open(Some(name));
        let [former_meta, flat, deltas, codes, sealed, partials, nodes, node_changes, trash, rows] =
            Self::NAMES;
        Ok(Self {
            meta,
            former_meta: open(former_meta)?,
            flat: open(flat)?,
            deltas: open(deltas)?,
            codes: open(codes)?,
            sealed: open(sealed)?,
            partials: open(partials)?,
            nodes: open(nodes)?,
            node_changes: open(node_changes)?,
            trash: open(trash)?,
            rows: open(rows)?,
        })
    }

    pub(super) fn all(&self) -> [Table; 10] {
        let Self {
            meta,
            flat,
            deltas,
            codes,
            sealed,
            partials,
            nodes,
            node_changes,
            trash,
            rows,
            ..
        } = *self;
        [meta, flat, deltas, codes, sealed, partials, nodes, node_changes, trash, rows]
    }

    /// Sets `meta` to the table that holds the heads row.
    fn with_heads_row_of(self, txn: &RoTxn<AnyTls>) -> Result<Self> {
        match self.former_meta.get(txn, HEADS).map_err(lmdb)? {
            Some([HEADS_AT_THE_ROOT]) => Ok(self),
            _ => Ok(Self { meta: self.former_meta, ..self }),
        }
    }

    fn heads_row<'t>(&self, txn: &'t RoTxn<AnyTls>) -> Result<Option<&'t [u8]>> {
        self.meta.get(txn, HEADS).map_err(lmdb)
    }

    pub fn heads(&self, txn: &RoTxn<AnyTls>) -> Result<Heads> {
        let missing = || Error::StoreDamaged("it has no heads row".into());
        Heads::decode(self.heads_row(txn)?.ok_or_else(missing)?)
    }

    pub fn put_heads(&self, txn: &mut RwTxn, heads: &Heads) -> Result<()> {
        self.meta.put(txn, HEADS, &heads.encode()).map_err(lmdb)
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

fn random_id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    let read = File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut id));
    read.map_err(|error| Error::Store(format!("no random bytes: {error}")))?;
    Ok(id)
}
