//! Guarantees of the store, one test each; `history` compares it with a plain model.

mod actions;
mod closing;
pub(super) mod history;
mod log;
pub(super) mod model;
mod partial;
mod proofs;
mod unwinding;
mod views;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alloy_primitives::B256;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::error::Error;
use crate::state::{Changes, StateReader};
use actions::{Action, action};
use history::History;
use model::{Touch, What, address};

/// In memory if the system has such a folder: these tests check ordering. Tests that kill a process
/// use the disk.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

fn options(retention: Retention) -> Options {
    Options { map_size: 1 << 28, retention, ..Options::new(Mode::Write) }
}

/// `FOREBLOCK_CASES` sets a higher number than a normal test run has time for.
fn cases() -> u32 {
    std::env::var("FOREBLOCK_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn every_retained_state_reads_as_a_full_copy_would(
        states in prop_oneof![Just(None), (4..8u64).prop_map(Some)],
        actions in proptest::collection::vec(action(), 1..50),
        hold_at in 0..50usize,
        check_roots in prop::bool::weighted(0.3),
    ) {
        let retention = Retention { states, partials: 3, nodes: 2 };
        let mut history = History::new(retention);
        for (step, action) in actions.iter().enumerate() {
            if step == hold_at {
                history.hold();
            }
            history.run(action);
            history.check();
            if check_roots {
                history.check_root();
            }
            if check_roots && step % 8 == 7 {
                history.check_store();
            }
        }
        history.check_proofs();
        history.check_store();
        while history.maintain(7) > 0 {}
        history.check();
        history.check_root();
        history.check_proofs();
        history.check_store();
    }
}

#[test]
fn pruning_leaves_nothing_behind_that_no_state_needs() {
    let mut history = History::new(Retention { states: Some(2), partials: 1, nodes: 1 });
    for value in 0..40 {
        let what = [What::Recreate, What::Slot, What::Destroy, What::Balance][value as usize % 4];
        history.append(&[Touch { who: 0, what, slot: 1, value }], false);
        history.check_root();
        while history.maintain(3) > 0 {}
    }
    let store = history.store();
    let view = store.view().unwrap();
    assert_eq!(view.heads().earliest, 38);
    let flat = view.lease.read(|txn| store.tables.flat.len(txn).map_err(lmdb)).unwrap();
    // Four accounts and one or two slots, with the versions of three blocks. Forty index rows stay,
    // as documented.
    assert!(flat < 60, "{flat} flat entries");
    let deltas = view.lease.read(|txn| store.tables.deltas.len(txn).map_err(lmdb)).unwrap();
    assert!(deltas <= 3, "{deltas} rows of deltas");
    let nodes = view.lease.read(|txn| store.tables.nodes.len(txn).map_err(lmdb)).unwrap();
    assert!(nodes < 30, "{nodes} versions of nodes");
}

#[test]
fn a_backlog_of_one_kind_of_work_does_not_hold_up_the_others() {
    let mut history = History::new(Retention { states: Some(4), partials: 1, nodes: 1 });
    let store = history.store();
    let discard = |txn: &mut heed::RwTxn| {
        (0..1_000).try_for_each(|number| {
            store.tables.schedule_deletion(txn, record::Garbage::Delta(1_000_000 + number))
        })
    };
    store.write(discard).unwrap();
    for value in 0..3 {
        history.append(&[Touch { who: 0, what: What::Balance, slot: 0, value }], false);
    }
    history.maintain(60);
    let view = history.store().view().unwrap();
    assert_eq!(view.heads().folded, history.latest());
    assert!(view.garbage_len().unwrap() > 900, "all of a slice is more than its share");
}

#[test]
fn no_state_goes_that_nodes_are_still_to_be_computed_from() {
    let mut history = History::new(Retention { states: Some(4), partials: 3, nodes: 2 });
    let touch = |who, what| vec![Touch { who, what, slot: 0, value: 0 }];
    let append = |touches| Action::Append { touches, folds: false };
    let changed = [touch(0, What::Balance), touch(1, What::Slot)].concat();
    let seal = || Action::Seal { pick: 0, and_extend: false };
    for action in [
        append(touch(0, What::Slot)),
        Action::Extend { stack: false, touches: Vec::new() },
        seal(),
        append(touch(0, What::Balance)),
        append(changed),
        Action::Compete { touches: touch(0, What::Destroy) },
        seal(),
        Action::Maintain { entries: 13 },
        Action::Maintain { entries: 15 },
    ] {
        history.run(&action);
        history.check();
    }
}

#[test]
fn slices_within_a_time_are_one_transaction_to_the_end_of_the_work() {
    let mut history = History::new(Retention { states: Some(4), partials: 1, nodes: 1 });
    for value in 0..9 {
        history.append(&[Touch { who: 0, what: What::Slot, slot: 1, value }], false);
        history.check_root();
    }
    let store = history.store();
    let before = store.env.using().unwrap().info().last_txn_id;
    assert!(store.maintain_within(2, std::time::Duration::from_secs(600)).unwrap() > 0);
    assert_eq!(store.env.using().unwrap().info().last_txn_id, before + 1);
    assert_eq!(store.maintain(100).unwrap(), 0);
    let heads = store.view().unwrap().heads().clone();
    assert_eq!((heads.folded, heads.earliest), (history.latest(), history.latest() - 4));
    history.check();
}

/// The layout of versions before the heads moved to LMDB's main database.
#[test]
fn a_store_with_its_heads_in_a_table_of_their_own_goes_on() {
    let folder = folder();
    let mut heads = heads::Heads::new([7; 16]);
    heads.commit = 9;
    let mut open = heed::EnvOpenOptions::new().read_txn_without_tls();
    open.map_size(1 << 20).max_dbs(10);
    // SAFETY: no other code uses the file.
    let env = unsafe { open.open(folder.path()) }.unwrap();
    let mut txn = env.write_txn().unwrap();
    let meta: Table = env.create_database(&mut txn, Some("meta")).unwrap();
    meta.put(&mut txn, b"heads", &heads.encode()).unwrap();
    txn.commit().unwrap();
    env.prepare_for_closing().wait();
    let store = Store::open(folder.path(), &options(Retention::default())).unwrap();
    let mut batch = store.batch().unwrap();
    batch.note(b"note".to_vec());
    store.commit(batch).unwrap();
    drop(store);
    for mode in [Mode::Write, Mode::Read] {
        let opened =
            Store::open(folder.path(), &Options { mode, ..options(Retention::default()) }).unwrap();
        let view = opened.view().unwrap();
        let heads = view.heads();
        assert_eq!((heads.store_id, heads.commit), ([7; 16], 10));
        assert_eq!(heads.note, b"note");
        view.close();
    }
}

#[test]
fn a_second_writer_is_refused_and_the_first_goes_on() {
    let history = History::new(Retention::default());
    let second = Store::open(history.folder.path(), &options(Retention::default()));
    assert!(matches!(second, Err(Error::StoreOpenHere(_))));
    history.check();

    let elsewhere = folder();
    let lock = std::fs::File::create(elsewhere.path().join("writer.lock")).unwrap();
    lock.lock().unwrap();
    let second = Store::open(elsewhere.path(), &options(Retention::default()));
    assert!(matches!(second, Err(Error::StoreLocked(_))));
}

#[test]
fn a_batch_made_before_another_commit_is_refused() {
    let history = History::new(Retention::default());
    let (mut first, mut second) =
        (history.store().batch().unwrap(), history.store().batch().unwrap());
    first.put(b"k".to_vec(), b"first".to_vec()).unwrap();
    second.put(b"k".to_vec(), b"second".to_vec()).unwrap();
    history.store().commit(first).unwrap();
    let refused = history.store().commit(second);
    assert!(matches!(refused, Err(Error::StaleBatch { .. })));
    assert_eq!(history.store().view().unwrap().row(b"k").unwrap(), Some(b"first".to_vec()));
}

#[test]
fn a_refused_step_leaves_nothing_of_its_batch() {
    let history = History::new(Retention::default());
    let mut batch = history.store().batch().unwrap();
    batch.put(b"k".to_vec(), b"v".to_vec()).unwrap();
    batch.append(7, B256::ZERO, Changes::default(), BTreeMap::new());
    assert!(matches!(history.store().commit(batch), Err(Error::RefusedCommit(_))));
    assert_eq!(history.store().view().unwrap().row(b"k").unwrap(), None);
    history.check();
}

#[test]
fn a_full_map_is_raised_and_views_read_on() {
    let folder = folder();
    let small = Options { map_size: 1 << 20, ..options(Retention::default()) };
    let store = Arc::new(Store::open(folder.path(), &small).unwrap());
    let write = |key: &[u8], length: usize| {
        let mut batch = store.batch().unwrap();
        batch.put(key.to_vec(), vec![key[0]; length]).unwrap();
        store.commit(batch).unwrap();
    };
    write(b"small", 100);
    let before = store.view().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (over, before) = (over.clone(), before.clone());
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    assert_eq!(before.row(b"small").unwrap(), Some(vec![b's'; 100]));
                    assert_eq!(before.row(b"large").unwrap(), None);
                }
            })
        })
        .collect();
    for megabytes in 1..20 {
        write(b"large", megabytes << 20);
        let row = store.view().unwrap().row(b"large").unwrap();
        assert_eq!(row.map(|row| row.len()), Some(megabytes << 20));
    }
    over.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_eq!(before.row(b"large").unwrap(), None);
    let size = store.map_size().unwrap();
    assert!(size >= 32 << 20 && size.is_power_of_two(), "{size}");
    drop((before, store));
    // The map is large enough for the file, regardless of the requested size.
    let store = Store::open(folder.path(), &small).unwrap();
    assert!(store.map_size().unwrap() as u64 >= store.file_bytes().unwrap());
}

#[test]
fn a_closed_view_answers_with_an_error() {
    let history = History::new(Retention::default());
    let view = history.store().view().unwrap();
    let state = view.state(0).unwrap();
    view.close();
    assert_eq!(state.account(&address(0)), Err(Error::StoreClosed));
    assert_eq!(view.row(b"k"), Err(Error::StoreClosed));
}

#[test]
fn block_hashes_end_at_the_state_they_are_asked_from() {
    let mut history = History::new(Retention::default());
    history.append(&[], false);
    history.append(&[], false);
    let (latest, hash) = (history.latest(), history.sealed[2].0);
    let announced = B256::repeat_byte(9);
    let tip = history.extend(Parent::Sealed(latest), Start::Sealed(latest), hash, &[]);
    let stacked =
        history.extend(Parent::Stacked(tip, announced), Start::Partial(tip), announced, &[]);
    let view = history.store().view().unwrap();
    let at_one = view.state(1).unwrap();
    assert_eq!(at_one.block_hash(1).unwrap(), history.sealed[1].0);
    assert_eq!(at_one.block_hash(2).unwrap(), B256::ZERO);
    let at_stacked = view.state_of_partial(stacked).unwrap();
    assert_eq!(at_stacked.block_hash(2).unwrap(), hash);
    assert_eq!(at_stacked.block_hash(3).unwrap(), announced);
    assert_eq!(at_stacked.block_hash(4).unwrap(), B256::ZERO);
}

#[test]
fn a_block_that_names_another_parent_than_was_sealed_is_refused() {
    let mut history = History::new(Retention::default());
    let (latest, hash) = (history.latest(), history.sealed[0].0);
    let tip = history.extend(Parent::Sealed(latest), Start::Sealed(latest), hash, &[]);
    let (named, sealed) = (B256::repeat_byte(8), B256::repeat_byte(9));
    let stacked = history.extend(Parent::Stacked(tip, named), Start::Partial(tip), named, &[]);
    let store = history.store();
    let seal = |of_tip: B256| {
        let mut batch = store.batch().unwrap();
        batch.seal(tip, of_tip);
        batch.seal(stacked, B256::repeat_byte(10));
        store.commit(batch)
    };
    let refused = seal(sealed).unwrap_err();
    assert!(matches!(refused, Error::RefusedCommit(_)), "{refused}");
    assert_eq!(store.view().unwrap().heads().latest.unwrap().number, latest);
    assert_eq!(seal(named).unwrap().latest.unwrap().number, latest + 2);
}

#[test]
fn a_missing_layer_of_nodes_stops_nothing_and_is_computed_again() {
    let mut history = History::new(Retention::default());
    history.check_root();
    while history.maintain(100) > 0 {}
    let store = history.store().clone();
    let mut trie = HeadTrie::open(store.clone()).unwrap();
    let mut state = history.sealed[0].1.clone();
    for block in 1..=2_u64 {
        let mut batch = store.batch().unwrap();
        let touch = Touch { who: 0, what: What::Balance, slot: 1, value: 70 + block as u8 };
        let changes = state.change(&[touch], || batch.draw());
        trie.apply(&changes).unwrap();
        let hash = B256::repeat_byte(block as u8);
        let number = batch.append(block, hash, changes, BTreeMap::new());
        if block == 2 {
            batch.nodes(block, std::sync::Arc::new(trie.take().unwrap()));
        }
        store.commit(batch).unwrap();
        history.sealed.push((hash, state.clone(), number));
    }
    while history.maintain(100) > 0 {}
    let heads = store.view().unwrap().heads().clone();
    assert_eq!((heads.folded, heads.nodes), (2, Some(0)), "all but the nodes goes on");
    history.check_root();
    while history.maintain(100) > 0 {}
    assert_eq!(store.view().unwrap().heads().nodes, Some(2));
    history.check_root();
}

#[test]
fn rows_are_listed_by_a_prefix() {
    let history = History::new(Retention::default());
    let mut batch = history.store().batch().unwrap();
    for key in [&b"a1"[..], b"a2", b"b1"] {
        batch.put(key.to_vec(), key.to_vec()).unwrap();
    }
    history.store().commit(batch).unwrap();
    let view = history.store().view().unwrap();
    let keys = |prefix, limit| view.rows(prefix, limit, |key, _| key.to_vec());
    assert_eq!(keys(b"a", 9).unwrap(), [b"a1", b"a2"]);
    assert_eq!(keys(b"a", 1).unwrap(), [b"a1"]);
    assert!(matches!(keys(b"", 9), Err(Error::InvalidArgument(_))));
}

#[test]
fn a_flat_key_that_nobody_writes_is_damage() {
    let history = History::new(Retention::default());
    let store = history.store();
    store.write(|txn| store.tables.flat.put(txn, b"a", b"").map_err(lmdb)).unwrap();
    let accounts = store.view().unwrap().state(0).unwrap().accounts(None, usize::MAX);
    assert!(matches!(accounts, Err(Error::StoreDamaged(_))), "{accounts:?}");
}

#[test]
fn a_partial_block_that_stands_on_itself_is_damage() {
    let history = History::new(Retention::default());
    let store = history.store();
    let (hash, parent_hash) = (B256::ZERO, B256::ZERO);
    for below in [70, 71] {
        let (start, status) = (Start::Partial(below), Status::Live);
        let row = Partial { block: 2, index: 0, hash, start, parent_hash, status }.encode();
        let key = 70_u64.to_be_bytes();
        store.write(|txn| store.tables.partials.put(txn, &key, &row).map_err(lmdb)).unwrap();
        let state = store.view().unwrap().state_of_partial(70).map(drop);
        assert!(matches!(state, Err(Error::StoreDamaged(_))), "{state:?}");
    }
}
