//! Each kind of damage is found in the table where it was made. `store::tests` checks that
//! undamaged stores have none, at every step of random histories.

use heed::RwTxn;
use proptest::prelude::*;

use super::Damage;
use crate::store::tables::{HEADS, Table};
use crate::store::tests::folder;
use crate::store::tests::history::History;
use crate::store::tests::model::{Touch, What};
use crate::store::{Retention, Store, fuzzing, lmdb};

/// Folded blocks, with nodes of three of them, and two blocks with neither.
fn history() -> History {
    let mut history = History::new(Retention { states: Some(8), partials: 2, nodes: 3 });
    for value in 0..20 {
        let what = [What::Balance, What::Slot, What::Recreate, What::Slot][value as usize % 4];
        let touch = |who, slot| Touch { who, what, slot, value: value + 1 };
        history.append(&[touch(value % 5, 1), touch(value / 2 % 5, 2)], value < 18);
        while value < 18 && history.maintain(50) > 0 {}
    }
    history.check_store();
    history
}

fn damaged(spoil: impl Fn(&Store, &mut RwTxn)) -> Vec<Damage> {
    let mut history = history();
    let store = history.reopened();
    store
        .write(|txn| {
            spoil(store, txn);
            Ok(())
        })
        .unwrap();
    history.damages()
}

fn tables(damages: &[Damage]) -> Vec<&'static str> {
    let mut tables: Vec<_> = damages.iter().map(|damage| damage.table).collect();
    tables.sort_unstable();
    tables.dedup();
    tables
}

type Row = (Vec<u8>, Vec<u8>);

fn rows(table: Table, txn: &RwTxn) -> Vec<Row> {
    let rows = table.iter(txn).unwrap();
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn flip_last(table: Table, txn: &mut RwTxn, (key, mut value): Row) {
    *value.last_mut().unwrap() ^= 1;
    table.put(txn, &key, &value).map_err(lmdb).unwrap();
}

fn block_of(key: &[u8]) -> u64 {
    !u64::from_be_bytes(key[key.len() - 8..].try_into().unwrap())
}

#[test]
fn every_kept_version_of_a_node_is_looked_at() {
    let all = {
        let mut history = history();
        let store = history.reopened();
        let nodes = store.tables.nodes;
        let mut all = Vec::new();
        store
            .write(|txn| {
                all = rows(nodes, txn);
                Ok(())
            })
            .unwrap();
        all.retain(|(_, node)| !node.is_empty());
        all
    };
    assert!(all.iter().map(|(key, _)| block_of(key)).min() < Some(17), "older versions");
    for row in all {
        let found = damaged(|store, txn| flip_last(store.tables.nodes, txn, row.clone()));
        assert!(tables(&found).contains(&"nodes"), "{row:?}: {found:?}");
    }
}

#[test]
fn entries_of_state_are_what_blocks_made_of_them() {
    for kind in *b"as" {
        let found = damaged(|store, txn| {
            let flat = store.tables.flat;
            let of_kind = |(key, value): &Row| key[0] == kind && !value.is_empty();
            let row = rows(flat, txn).into_iter().rfind(of_kind).unwrap();
            flip_last(flat, txn, row);
        });
        assert!(tables(&found).contains(&"flat"), "{found:?}");
        let removed = damaged(|store, txn| {
            let flat = store.tables.flat;
            let of_kind = |(key, _): &Row| key[0] == kind && block_of(key) >= 15;
            let (key, _) = rows(flat, txn).into_iter().rfind(of_kind).unwrap();
            flat.delete(txn, &key).unwrap();
        });
        assert!(tables(&removed).contains(&"flat"), "{removed:?}");
    }
}

#[test]
fn kept_changes_are_what_the_state_has() {
    let count = damaged(|_, _| {}).len();
    assert_eq!(count, 0);
    let deltas = |txn: &RwTxn, store: &Store| {
        let sealed = rows(store.tables.sealed, txn);
        let kept = sealed.iter().rev().take(8).map(|(_, row)| row[32..].to_vec());
        let kept: Vec<_> = kept.collect();
        let rows = rows(store.tables.deltas, txn).into_iter();
        rows.filter(|(key, _)| kept.contains(&key[..8].to_vec())).collect::<Vec<_>>()
    };
    for place in 0..8 {
        let found = damaged(|store, txn| {
            let row = deltas(txn, store)[place].clone();
            flip_last(store.tables.deltas, txn, row);
        });
        assert_ne!(found, [], "changed delta {place}");
        let found = damaged(|store, txn| {
            let (key, _) = deltas(txn, store)[place].clone();
            store.tables.deltas.delete(txn, &key).unwrap();
        });
        assert_ne!(found, [], "removed delta {place}");
    }
}

#[test]
fn heads_name_the_last_sealed_block() {
    let wrong_hash = damaged(|store, txn| {
        let mut heads = store.tables.heads(txn).unwrap();
        let latest = heads.latest.as_mut().unwrap();
        latest.hash.0[0] ^= 1;
        store.tables.put_heads(txn, &heads).unwrap();
    });
    assert_eq!(tables(&wrong_hash), ["meta"]);
    assert_eq!(wrong_hash[0].key, HEADS);
    let behind = damaged(|store, txn| {
        let mut heads = store.tables.heads(txn).unwrap();
        let latest = heads.latest.as_mut().unwrap();
        latest.number -= 1;
        let sealed = store.tables.sealed_block(txn, latest.number).unwrap().unwrap();
        latest.hash = sealed.hash;
        store.tables.put_heads(txn, &heads).unwrap();
    });
    assert_eq!(tables(&behind), ["meta"]);
    let pending = damaged(|store, txn| {
        let mut heads = store.tables.heads(txn).unwrap();
        heads.pending = Some(1);
        store.tables.put_heads(txn, &heads).unwrap();
    });
    assert_eq!(tables(&pending), ["meta"]);
    let gap = damaged(|store, txn| {
        store.tables.sealed.delete(txn, &5_u64.to_be_bytes()).unwrap();
    });
    assert!(tables(&gap).contains(&"sealed"), "{gap:?}");
}

#[test]
fn lists_of_nodes_are_whole() {
    let found = damaged(|store, txn| {
        let (key, _) = rows(store.tables.node_changes, txn).pop().unwrap();
        store.tables.node_changes.delete(txn, &key).unwrap();
    });
    assert!(tables(&found).contains(&"node_changes"), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Checking, reading, writing and maintaining a damaged store ends without a panic.
    #[test]
    fn no_damage_ends_a_check(steps in proptest::collection::vec(any::<u8>(), 1..60)) {
        let folder = folder();
        fuzzing::make_sample(folder.path()).unwrap();
        fuzzing::damaged(folder.path(), &steps);
    }
}

#[test]
fn a_check_can_be_stopped() {
    let history = history();
    let check = super::Check::new(history.store().view().unwrap(), 0, Vec::new());
    check.progress.stop();
    assert_eq!(check.run("entries"), Err(crate::error::Error::DeadlineExceeded));
    assert!(matches!(check.run("x"), Err(crate::error::Error::InvalidArgument(_))));
}
