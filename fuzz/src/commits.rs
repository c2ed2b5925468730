//! Fuzzes log commits: an input is the body of the next commit of a small store.

use std::sync::{Mutex, OnceLock};

use foreblock_engine::store::Store;
use foreblock_engine::store::fuzzing::{commit, make_sample, sample_options};

use crate::store::folder;

static STORE: OnceLock<Mutex<Store>> = OnceLock::new();

pub fn run(data: &[u8]) {
    let store = STORE.get_or_init(|| {
        let folder = folder().keep();
        make_sample(&folder).expect("a store");
        let store = Store::open(&folder, &sample_options()).expect("a store");
        // The files stay open, so their names are not needed.
        std::fs::remove_dir_all(&folder).expect("a folder");
        Mutex::new(store)
    });
    commit(&store.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), data);
}
