//! Fuzzes a damaged store. The input describes the damage.
//!
//! The store is created once. Each input gets a copy, in memory if the system has a folder for
//! that.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use foreblock_engine::store::fuzzing::{damaged, make_sample};
use tempfile::TempDir;

struct Folders {
    sound: TempDir,
    /// One input at a time: a process can open an LMDB folder only once.
    spoilt: Mutex<TempDir>,
}

static FOLDERS: OnceLock<Folders> = OnceLock::new();

pub fn run(data: &[u8]) {
    let folders = FOLDERS.get_or_init(|| {
        let folders = Folders { sound: folder(), spoilt: Mutex::new(folder()) };
        make_sample(folders.sound.path()).expect("a store");
        folders
    });
    let spoilt = folders.spoilt.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for file in ["data.mdb", "lock.mdb"] {
        let from = folders.sound.path().join(file);
        fs::copy(from, spoilt.path().join(file)).expect("a copy");
    }
    damaged(spoilt.path(), data);
}

pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a folder")
}
