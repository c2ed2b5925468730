//! A log of commits produces the same store everywhere, and a commit can be declined before it is
//! made.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;

use alloy_primitives::B256;
use proptest::prelude::*;
use tempfile::TempDir;

use super::actions::action;
use super::history::{Event, History};
use super::model::{Touch, What};
use super::{cases, folder, options};
use crate::error::Error;
use crate::state::Changes;
use crate::store::tables::{Table, Tables};
use crate::store::*;

/// The amount of maintenance that a store does after each event.
#[derive(Clone, Debug)]
enum Pace {
    Never,
    Always,
    Some(Vec<u8>),
}

/// A store that is built from the log alone.
struct Follower {
    store: Arc<Store>,
    _folder: TempDir,
}

impl Follower {
    fn new(retention: Retention) -> Self {
        let folder = folder();
        let store = Arc::new(Store::open(folder.path(), &options(retention)).unwrap());
        Self { store, _folder: folder }
    }

    fn follow(&self, log: &[Event], pace: &Pace) {
        for (count, event) in log.iter().enumerate() {
            match event {
                Event::Hold(block) => self.store.hold(*block).unwrap(),
                Event::Commit { before, after, body, .. } => {
                    self.commit(*before, *after, body, count as u64);
                }
            }
            match pace {
                Pace::Never => {}
                Pace::Always => self.maintain(),
                Pace::Some(entries) => {
                    let entries = usize::from(entries[count % entries.len()]);
                    if entries > 0 {
                        self.store.maintain(entries).unwrap();
                    }
                }
            }
            if let (Pace::Always, Event::Commit { latest, .. }) = (pace, event) {
                let mut trie = HeadTrie::open(self.store.clone()).unwrap();
                assert_eq!(trie.root().unwrap(), latest.root());
            }
        }
    }

    /// Applies `size` commits at a time, with maintenance after each group.
    fn follow_in_groups(&self, log: &[Event], size: usize) {
        let mut group = Vec::new();
        let commit = |group: &mut Vec<_>| {
            if !group.is_empty() {
                self.store.commit_all(std::mem::take(group)).unwrap();
                self.store.maintain(20).unwrap();
            }
        };
        for (count, event) in log.iter().enumerate() {
            match event {
                Event::Hold(block) => {
                    commit(&mut group);
                    self.store.hold(*block).unwrap();
                }
                Event::Commit { before, after, body, .. } => {
                    let batch = Batch::decode(body, *before, *after).unwrap();
                    let row = LogRow { epoch: 1, link: B256::ZERO, sequence: count as u64 };
                    group.push((batch, row));
                    if group.len() == size {
                        commit(&mut group);
                        assert_eq!(self.store.view().unwrap().log_row().unwrap(), Some(row));
                    }
                }
            }
        }
        commit(&mut group);
    }

    fn commit(&self, before: u64, after: u64, body: &[u8], sequence: u64) {
        let mut batch = Batch::decode(body, before, after).unwrap();
        assert_eq!(batch.encode().unwrap(), body);
        batch.note(b"own".to_vec());
        batch.put_local(b"local".to_vec(), b"own".to_vec()).unwrap();
        assert_eq!(batch.encode().unwrap(), body, "what is added is no part of the log");
        let row = LogRow { epoch: 1, link: B256::with_last_byte(body.len() as u8), sequence };
        let heads = self.store.commit_if(&mut batch, Some(&row), || Ok(())).unwrap();
        let view = self.store.view().unwrap();
        assert_eq!((heads.commit, view.log_row().unwrap()), (after, Some(row)));
        assert_eq!(heads.note, b"own");
    }

    fn maintain(&self) {
        while self.store.maintain(50).unwrap() > 0 {}
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The tables that a log determines, and the heads without the fields that are local to a store.
fn contents(store: &Store) -> (Vec<(&'static str, Rows)>, Heads) {
    let Tables { flat, deltas, codes, sealed, partials, rows, trash, .. } = store.tables;
    let view = store.view().unwrap();
    let read = |table: Table| -> Rows {
        let read = view.lease.read(|txn| {
            let rows = table.iter(txn).map_err(lmdb)?;
            rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(lmdb))
                .filter(|row| row.as_ref().is_ok_and(|row| row.0 != b"local"))
                .collect()
        });
        read.unwrap()
    };
    let tables = [
        ("flat", flat),
        ("deltas", deltas),
        ("codes", codes),
        ("sealed", sealed),
        ("partials", partials),
        ("rows", rows),
        ("trash", trash),
    ];
    let mut heads = Heads::clone(view.heads());
    (heads.store_id, heads.nodes, heads.nodes_earliest) = ([0; 16], None, 0);
    heads.note.clear();
    (tables.map(|(name, table)| (name, read(table))).into(), heads)
}

fn pace() -> impl Strategy<Value = Vec<u8>> {
    let entries = prop_oneof![2 => Just(0), 3 => 1..20_u8, 1 => Just(200)];
    proptest::collection::vec(entries, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases() / 4))]

    #[test]
    fn a_log_makes_equal_stores_at_every_pace_of_maintenance(
        states in prop_oneof![Just(None), (4..8u64).prop_map(Some)],
        actions in proptest::collection::vec(action(), 1..80),
        pace in pace(),
        group in 2..12_usize,
    ) {
        let retention = Retention { states, partials: 3, nodes: 2 };
        let mut writer = History::new(retention);
        actions.iter().for_each(|action| writer.run(action));
        writer.check_root();
        while writer.maintain(50) > 0 {}
        writer.check();
        let expected = contents(writer.store());
        prop_assert!(expected.0.iter().all(|(name, rows)| *name != "trash" || rows.is_empty()));
        for pace in [Pace::Never, Pace::Always, Pace::Some(pace)] {
            let follower = Follower::new(retention);
            follower.follow(&writer.log, &pace);
            let mut trie = HeadTrie::open(follower.store.clone()).unwrap();
            let latest = &writer.sealed[writer.sealed.len() - 1].1;
            prop_assert_eq!(trie.root().unwrap(), latest.root());
            follower.maintain();
            prop_assert_eq!(contents(&follower.store), expected.clone(), "{:?}", pace);
        }
        let follower = Follower::new(retention);
        follower.follow_in_groups(&writer.log, group);
        follower.maintain();
        prop_assert_eq!(contents(&follower.store), expected, "in groups of {}", group);
    }
}

fn touched(value: u8) -> [Touch; 1] {
    [Touch { who: 0, what: What::Slot, slot: 1, value }]
}

#[test]
fn a_rewind_is_refused_by_rule_though_the_state_is_there() {
    let mut history = History::new(Retention { states: Some(4), partials: 3, nodes: 2 });
    (0..9).for_each(|value| history.append(&touched(value), false));
    let store = history.store();
    let rewind = |block| {
        let mut batch = store.batch().unwrap();
        batch.rewind(block);
        store.commit(batch)
    };
    assert_eq!(store.view().unwrap().heads().earliest, 0, "nothing is pruned");
    assert!(matches!(rewind(4), Err(Error::RefusedCommit(_))));
    rewind(6).unwrap();
    // A lower block is the latest now, but other stores may have pruned in the meantime.
    assert!(matches!(rewind(4), Err(Error::RefusedCommit(_))));
    rewind(5).unwrap();
    // The floors are persisted.
    drop(history.store.take());
    let retention = Retention { states: Some(4), partials: 3, nodes: 2 };
    let again = Store::open(history.folder.path(), &options(retention)).unwrap();
    let mut batch = again.batch().unwrap();
    batch.rewind(4);
    assert!(matches!(again.commit(batch), Err(Error::RefusedCommit(_))));
}

#[test]
fn commits_that_are_made_together_are_all_there_or_none() {
    let mut history = History::new(Retention::default());
    history.append(&touched(1), false);
    let store = history.store();
    let before = contents(store);
    let row = |sequence| LogRow { epoch: 1, link: B256::ZERO, sequence };
    let at = store.view().unwrap().heads().commit;
    let put = |before, key: &[u8]| {
        let body = [&[11, 0, 0, 0, 1][..], key, &[0, 0, 0, 0]].concat();
        Batch::decode(&body, before, before + 1).unwrap()
    };
    let gap = vec![(put(at, b"a"), row(1)), (put(at + 2, b"b"), row(2))];
    assert!(matches!(store.commit_all(gap), Err(Error::StaleBatch { .. })));
    assert!(matches!(store.commit_all(Vec::new()), Err(Error::InvalidArgument(_))));
    assert_eq!(contents(store), before);
    let heads = store.commit_all(vec![(put(at, b"a"), row(1)), (put(at + 1, b"b"), row(2))]);
    assert_eq!(heads.unwrap().commit, at + 2);
    let view = store.view().unwrap();
    assert_eq!(view.log_row().unwrap(), Some(row(2)));
}

#[test]
fn a_commit_that_is_not_agreed_to_changes_nothing() {
    let mut history = History::new(Retention::default());
    history.append(&touched(1), false);
    let store = history.store();
    let before = contents(store);
    let row = LogRow { epoch: 2, link: B256::repeat_byte(3), sequence: 4 };
    let batch = || {
        let mut batch = store.batch().unwrap();
        batch.append(2, B256::repeat_byte(2), Changes::default(), BTreeMap::new());
        batch.put(b"k".to_vec(), b"v".to_vec()).unwrap();
        batch
    };
    let mut asked = 0;
    let refuse = || {
        asked += 1;
        // The commit in question is not visible yet, and the store can be read.
        assert_eq!(store.view().unwrap().heads().latest.unwrap().number, 1);
        Err(Error::CommitDeclined)
    };
    assert_eq!(store.commit_if(&mut batch(), Some(&row), refuse), Err(Error::CommitDeclined));
    assert_eq!((asked, contents(store)), (1, before));
    assert_eq!(store.view().unwrap().log_row().unwrap(), None);
    store.commit_if(&mut batch(), Some(&row), || Ok(())).unwrap();
    assert_eq!(store.view().unwrap().log_row().unwrap(), Some(row));
    store.commit(store.batch().unwrap()).unwrap();
    assert_eq!(store.view().unwrap().log_row().unwrap(), None, "it has left the log");
}

#[test]
fn a_step_that_does_not_fit_is_refused_before_anybody_is_asked() {
    let history = History::new(Retention::default());
    let mut batch = history.store().batch().unwrap();
    batch.rewind(7);
    let ask = || panic!("asked");
    let refused = history.store().commit_if(&mut batch, None, ask);
    assert!(matches!(refused, Err(Error::RefusedCommit(_))), "{refused:?}");
}

#[test]
fn a_question_is_asked_once_though_the_map_grows() {
    let folder = folder();
    let small = Options { map_size: 1 << 20, ..options(Retention::default()) };
    let store = Store::open(folder.path(), &small).unwrap();
    let mut asked = 0;
    for megabytes in 1..6 {
        let mut batch = store.batch().unwrap();
        batch.put(b"large".to_vec(), vec![1; megabytes << 20]).unwrap();
        let ask = || {
            asked += 1;
            Ok(())
        };
        store.commit_if(&mut batch, None, ask).unwrap();
    }
    assert_eq!(asked, 5);
}

#[test]
fn a_note_is_replaced_without_a_commit() {
    let history = History::new(Retention::default());
    let store = history.store();
    let heads = Heads::clone(store.view().unwrap().heads());
    store.put_note(heads.commit, b"later").unwrap();
    let expected = Heads { note: b"later".to_vec(), ..heads.clone() };
    assert_eq!(**store.view().unwrap().heads(), expected);
    let stale = store.put_note(heads.commit - 1, b"never");
    assert!(matches!(stale, Err(Error::StaleBatch { .. })));
}

#[test]
fn a_copy_that_nobody_takes_holds_up_neither_commits_nor_views_nor_closing() {
    let folder = folder();
    let small = Options { map_size: 1 << 20, ..options(Retention::default()) };
    let store = Arc::new(Store::open(folder.path(), &small).unwrap());
    let fill = |key: u8| store.put_rows(&[(&[key], &vec![key; 300_000])], &[]).unwrap();
    fill(0);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let from = store.clone();
    let copying = std::thread::spawn(move || from.copy_to(writer.as_fd()));
    let mut first = vec![0; 4096];
    reader.read_exact(&mut first).unwrap();
    let mapped = store.map_size().unwrap();
    (1..20).for_each(fill);
    assert!(store.map_size().unwrap() > mapped);
    assert_eq!(store.view().unwrap().row(&[19]).unwrap().unwrap().len(), 300_000);
    store.close();
    reader.read_to_end(&mut first).unwrap();
    assert_eq!(copying.join().unwrap(), Err(Error::StoreClosed), "its pages were not kept");
}

#[test]
fn a_copy_goes_through_a_pipe_and_can_follow() {
    let mut history = History::new(Retention::default());
    (0..5).for_each(|value| history.append(&touched(value), false));
    let store = history.store();
    let row = LogRow { epoch: 2, link: B256::repeat_byte(3), sequence: 4 };
    store.commit_if(&mut store.batch().unwrap(), Some(&row), || Ok(())).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let from = store.clone();
    let copying = std::thread::spawn(move || from.copy_to(writer.as_fd()));
    let mut copied = Vec::new();
    reader.read_to_end(&mut copied).unwrap();
    copying.join().unwrap().unwrap();
    let target = folder();
    std::fs::write(target.path().join("data.mdb"), copied).unwrap();
    let copy = Store::open(target.path(), &options(Retention::default())).unwrap();
    assert_eq!(contents(&copy), contents(store));
    assert_eq!(copy.view().unwrap().log_row().unwrap(), Some(row));
    let (broken, writer) = std::io::pipe().unwrap();
    drop(broken);
    assert!(matches!(store.copy_to(writer.as_fd()), Err(Error::Store(_))));
    let full = File::options().write(true).open("/dev/full").unwrap();
    assert!(matches!(store.copy_to(full.as_fd()), Err(Error::DiskFull(_))));
}
