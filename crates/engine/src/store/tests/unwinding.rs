//! Rewinds below the window of trie nodes, compared with tries built from the whole state.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::actions::{Action, touches};
use super::history::History;
use super::model::Touch;
use crate::store::head_trie::build;
use crate::store::{Retention, Store, lmdb};

const BLOCKS: usize = 12;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(super::cases() / 6))]

    #[test]
    fn the_nodes_after_a_deep_rewind_are_those_of_the_whole_state(
        blocks in proptest::collection::vec(touches(), BLOCKS),
        depths in proptest::collection::vec(3..BLOCKS as u8, 1..3),
        entries in prop_oneof![Just(0_usize), 1..200_usize, Just(usize::MAX)],
        after in touches(),
    ) {
        let retention = Retention { states: None, partials: 1, nodes: 1 };
        let mut history = History::new(retention);
        append_all(&mut history, &blocks);
        history.check_root();
        while history.maintain(100) > 0 {}
        for depth in depths {
            if entries > 0 {
                history.maintain(entries);
            }
            history.run(&Action::Rewind { depth });
            history.check_root();
        }
        while history.maintain(50) > 0 {}
        prop_assert_eq!(nodes_of(history.store()), built_nodes(history.store()));
        history.check_store();
        append_all(&mut history, &[after]);
        history.check_root();
        while history.maintain(50) > 0 {}
        history.reopened();
        history.check_root();
        history.check();
        history.check_store();
    }
}

#[test]
fn a_deep_rewind_does_not_build_the_trie() {
    let mut history = History::new(Retention { states: None, partials: 1, nodes: 1 });
    let touch = |value| Touch { who: 0, what: super::What::Slot, slot: 1, value };
    append_all(&mut history, &(0..9).map(|value| vec![touch(value)]).collect::<Vec<_>>());
    history.check_root();
    while history.maintain(100) > 0 {}
    history.run(&Action::Rewind { depth: 5 });
    let heads = history.store().view().unwrap().heads().clone();
    let latest = history.latest();
    assert_eq!((heads.nodes, heads.nodes_earliest), (Some(latest), latest));
}

#[test]
fn a_restart_leaves_nothing_of_a_partly_stored_first_layer() {
    let mut history = History::new(Retention { states: None, partials: 1, nodes: 1 });
    let touch = |who, value| Touch { who, what: super::What::Balance, slot: 0, value };
    let everyone = |value| (0..4).map(|who| touch(who, value)).collect::<Vec<_>>();
    append_all(&mut history, &[everyone(1), everyone(2), everyone(3)]);
    history.run(&Action::Reopen); // so that the first layer is not that of the first block
    append_all(&mut history, &[everyone(4), everyone(5)]);
    history.maintain(24); // a sixth of it writes nodes
    assert_eq!(history.store().view().unwrap().heads().nodes, None);
    assert!(!nodes_of(history.store()).is_empty());
    history.run(&Action::Reopen);
    append_all(&mut history, &(6..9).map(|value| vec![touch(0, value)]).collect::<Vec<_>>());
    history.check_root();
    while history.maintain(7) > 0 {}
    history.run(&Action::Rewind { depth: 6 });
    history.check_root();
    assert_eq!(nodes_of(history.store()), built_nodes(history.store()));
}

fn append_all(history: &mut History, blocks: &[Vec<Touch>]) {
    blocks.iter().for_each(|touches| history.append(touches, false));
}

type Nodes = BTreeMap<Vec<u8>, Vec<u8>>;

/// The newest version of each stored node.
fn nodes_of(store: &Store) -> Nodes {
    let view = store.view().unwrap();
    let rows = view.lease.read(|txn| {
        let rows = store.tables.nodes.iter(txn).map_err(lmdb)?;
        rows.map(|row| row.map(|(key, node)| (key.to_vec(), node.to_vec())).map_err(lmdb)).collect()
    });
    let rows: Vec<(Vec<u8>, Vec<u8>)> = rows.unwrap();
    let mut nodes = Nodes::new();
    for (key, node) in rows {
        nodes.entry(key[..key.len() - 8].to_vec()).or_insert(node);
    }
    nodes.retain(|_, node| !node.is_empty());
    nodes
}

fn built_nodes(store: &Store) -> Nodes {
    let view = store.view().unwrap();
    let latest = view.heads().latest.unwrap().number;
    let built = build(&view.state(latest).unwrap()).unwrap();
    built.nodes.into_iter().filter_map(|(key, node)| Some((key, node?))).collect()
}
