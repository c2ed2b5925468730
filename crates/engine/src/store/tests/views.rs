//! Views of one commit: what they share, when the snapshot ends, and that it is one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use crate::store::snapshot::Snapshot;

fn store(folder: &TempDir) -> Store {
    Store::open(folder.path(), &options(Retention::default())).unwrap()
}

/// Commits a stamp twice: in the heads and in a row.
fn stamp(store: &Store, stamp: u64) {
    let mut batch = store.batch().unwrap();
    batch.put(b"stamp".to_vec(), stamp.to_be_bytes().to_vec()).unwrap();
    batch.note(stamp.to_be_bytes().to_vec());
    store.commit(batch).unwrap();
}

fn readers(store: &Store) -> usize {
    // Slots are assigned in order, and free ones are reused.
    store.env.using().unwrap().info().number_of_readers as usize
}

#[test]
fn views_of_one_commit_are_one_transaction() {
    let folder = folder();
    let store = store(&folder);
    stamp(&store, 1);
    let views: Vec<_> = (0..1000).map(|_| store.view().unwrap()).collect();
    // One slot was used by the second transaction of `begin` and is free again.
    assert_eq!(readers(&store), 2);
    assert!(views.iter().all(|view| Arc::ptr_eq(view.heads(), views[0].heads())));
    stamp(&store, 2);
    let newer = store.view().unwrap();
    assert_eq!(newer.row(b"stamp").unwrap(), Some(2_u64.to_be_bytes().to_vec()));
    assert_eq!(views[0].row(b"stamp").unwrap(), Some(1_u64.to_be_bytes().to_vec()));
}

#[test]
fn a_snapshot_ends_with_its_last_view() {
    let folder = folder();
    let store = store(&folder);
    stamp(&store, 1);
    let first = store.view().unwrap();
    let second = store.view().unwrap();
    stamp(&store, 2);
    first.close();
    assert_eq!(first.row(b"stamp"), Err(Error::StoreClosed));
    assert!(first.lease.share().is_err());
    assert!(second.row(b"stamp").unwrap().is_some());
    first.close();
    assert!(second.lease.is_open(), "it is closed once, however often that is said");
    second.close();
    assert!(!second.lease.is_open());
}

#[test]
fn what_is_kept_for_the_next_view_is_let_go_of_when_it_is_old() {
    let folder = folder();
    let writer = store(&folder);
    stamp(&writer, 1);
    let view = writer.view().unwrap();
    view.close();
    writer.drop_stale_snapshot();
    assert!(view.lease.is_open(), "it is not old");
    stamp(&writer, 2);
    assert!(!view.lease.is_open(), "a writer keeps nothing of before its commit");
}

static COMMITS: AtomicU64 = AtomicU64::new(0);
/// The last commit that the reader has seen.
static SEEN: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// Blocks its thread at any point until two commits have passed, like a scheduler.
extern "C" fn hold_for_two_commits(_: libc::c_int) {
    let until = COMMITS.load(Ordering::Relaxed) + 2;
    for _ in 0..200 {
        if COMMITS.load(Ordering::Relaxed) >= until {
            break;
        }
        // SAFETY: usleep takes a number, and a signal handler may call it.
        unsafe { libc::usleep(50) };
    }
    INTERRUPTED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_reader_that_is_preempted_anywhere_sees_one_commit() {
    let folder = folder();
    let store = Arc::new(store(&folder));
    let over = Arc::new(AtomicBool::new(false));
    // SAFETY: the handler uses atomics and usleep only.
    unsafe { libc::signal(libc::SIGUSR1, hold_for_two_commits as *const () as usize) };

    let writer = thread::spawn({
        let (store, over) = (store.clone(), over.clone());
        move || {
            while !over.load(Ordering::Relaxed) {
                // Pages pinned by a reader that makes no progress would fill the store.
                if COMMITS.load(Ordering::Relaxed) > SEEN.load(Ordering::Relaxed) + 1000 {
                    thread::yield_now();
                    continue;
                }
                stamp(&store, COMMITS.load(Ordering::Relaxed) + 1);
                COMMITS.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mixed = Arc::new(AtomicU64::new(0));
    let reader = thread::spawn({
        let (store, over, mixed) = (store.clone(), over.clone(), mixed.clone());
        move || {
            while !over.load(Ordering::Relaxed) {
                let env = store.env.using().unwrap();
                let lease = Snapshot::begin(&env, store.tables, Arc::default()).unwrap();
                let row = lease.read(|txn| {
                    Ok(lease.tables.rows.get(txn, b"stamp").unwrap().map(<[u8]>::to_vec))
                });
                let row = row.unwrap().unwrap_or_default();
                let number = lease.read(|txn| Ok(txn.id())).unwrap();
                // The first transaction of the store created its tables; each stamp is one more.
                let told = number as u64 - 1;
                SEEN.store(told, Ordering::Relaxed);
                if row != lease.heads.note || (told > 0 && row != told.to_be_bytes()) {
                    mixed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    });
    use std::os::unix::thread::JoinHandleExt;
    while INTERRUPTED.load(Ordering::Relaxed) < 2000 {
        let before = INTERRUPTED.load(Ordering::Relaxed);
        // SAFETY: the thread runs until `over` is set, below.
        unsafe { libc::pthread_kill(reader.as_pthread_t(), libc::SIGUSR1) };
        while INTERRUPTED.load(Ordering::Relaxed) == before {
            thread::sleep(Duration::from_micros(20));
        }
    }
    over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    writer.join().unwrap();
    assert_eq!(mixed.load(Ordering::Relaxed), 0);
}
