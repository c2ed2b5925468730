//! Closing takes effect even if other objects still refer to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::evm::overlay::Overlay;

#[test]
fn whatever_refers_to_a_closed_store_answers_so_and_the_folder_is_free() {
    let mut history = History::new(Retention::default());
    history.append(&[], false);
    history.check_root();
    while history.maintain(100) > 0 {} // otherwise the tries have all nodes in memory
    let store = history.store().clone();
    let view = store.view().unwrap();
    let state = view.state(0).unwrap();
    let overlay = Overlay::new(Box::new(state.clone()));
    let mut head = HeadTrie::open(store.clone()).unwrap();
    let mut branch = BranchTrie::open(&state).unwrap();
    let batch = store.batch().unwrap();
    store.close();
    let again = Store::open(history.folder.path(), &options(Retention::default())).unwrap();
    let closed = Error::StoreClosed;
    assert_eq!(view.row(b"k"), Err(closed.clone()));
    assert_eq!(view.state(0).map(drop), Err(closed.clone()));
    assert_eq!(state.account(&address(0)), Err(closed.clone()));
    assert_eq!(overlay.account(&address(0)), Err(closed.clone()));
    assert_eq!(head.storage_root(&address(0)), Err(closed.clone()));
    assert_eq!(branch.storage_root(&address(2)), Err(closed.clone()));
    assert_eq!(store.commit(batch), Err(closed.clone()));
    assert_eq!(store.maintain(9), Err(closed.clone()));
    assert_eq!(store.view().map(drop), Err(closed.clone()));
    assert_eq!(store.batch().map(drop), Err(closed.clone()));
    assert_eq!(store.used_bytes(), Err(closed.clone()));
    assert_eq!(store.clear_stale_readers(), Err(closed));
    store.drop_stale_snapshot();
    store.close();
    again.view().unwrap().state(0).unwrap().account(&address(0)).unwrap();
    again.commit(again.batch().unwrap()).unwrap();
}

#[test]
fn a_store_is_closed_under_readers_and_writers_without_harm() {
    let history = History::new(Retention::default());
    let folder = history.folder.path();
    let mut store = history.store().clone();
    for _ in 0..20 {
        let begun = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..3)
            .map(|which| {
                let (store, begun) = (store.clone(), begun.clone());
                thread::spawn(move || {
                    let work = || match which {
                        0 => store.commit(store.batch()?).map(drop),
                        _ => store.view()?.state(0)?.account(&address(0)).map(drop),
                    };
                    loop {
                        if let Err(error) = work() {
                            return error;
                        }
                        begun.store(true, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while !begun.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        store.close();
        store = Arc::new(Store::open(folder, &options(Retention::default())).unwrap());
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Error::StoreClosed);
        }
    }
}
