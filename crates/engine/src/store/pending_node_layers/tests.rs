//! Groups of layers compared with the layers themselves.

use proptest::prelude::*;

use super::*;

/// The writes of a block: each key gets the block as its node, or is removed.
fn writes(block: u64, keys: &[u8]) -> Arc<NodeWrites> {
    let node = |key: &u8| (!key.is_multiple_of(5)).then(|| block.to_be_bytes().to_vec());
    let nodes = keys.iter().map(|key| (vec![*key], node(key))).collect();
    Arc::new(NodeWrites { nodes, retired: Vec::new() })
}

#[derive(Debug, Clone)]
enum Step {
    Push(Vec<u8>),
    Rewind(u64),
    StoreFirst(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => prop::collection::vec(0..40_u8, 0..4).prop_map(Step::Push),
        1 => (0..60_u64).prop_map(Step::Rewind),
        2 => (0..30_usize).prop_map(Step::StoreFirst),
    ]
}

/// The result of a lookup in the maps, newest first; `None` if no map has the key.
fn found(maps: &[Arc<NodeWrites>], key: u8) -> Option<Option<Vec<u8>>> {
    maps.iter().rev().find_map(|writes| writes.nodes.get(&[key][..]).cloned())
}

#[test]
fn a_rewind_into_a_large_group_leaves_few_maps() {
    let mut unstored = PendingNodeLayers::default();
    let blocks = (LAYERS_OF_GROUP * GROUPS_OF_GROUP) as u64;
    for block in 0..blocks {
        unstored.push(block, writes(block, &[1]));
    }
    assert_eq!(unstored.up_to(u64::MAX).len(), 1);
    unstored.rewind(blocks - 2);
    assert_eq!(unstored.up_to(u64::MAX).len(), 1);
    assert_eq!(
        found(&unstored.up_to(u64::MAX), 1),
        Some(Some((blocks - 2).to_be_bytes().to_vec()))
    );
}

proptest! {
    #[test]
    fn groups_show_what_the_layers_show(steps in prop::collection::vec(step(), 1..700)) {
        let mut unstored = PendingNodeLayers::default();
        let (mut all, mut stored) = (Vec::<Arc<NodeWrites>>::new(), 0);
        for step in steps {
            match step {
                Step::Push(keys) => {
                    let block = all.len() as u64;
                    all.push(writes(block, &keys));
                    unstored.push(block, all[all.len() - 1].clone());
                }
                Step::Rewind(back) => {
                    // Not below the stored layers, which the store would discard as well.
                    let kept = all.len().saturating_sub(back as usize).max(stored).max(1);
                    all.truncate(kept);
                    unstored.rewind(kept as u64 - 1);
                }
                Step::StoreFirst(count) => {
                    for _ in 0..count.min(all.len() - stored) {
                        unstored.stored_first();
                        stored += 1;
                    }
                }
            }
            if all.is_empty() {
                continue;
            }
            for block in [all.len() - 1, (stored + all.len()) / 2].into_iter().filter(|it| *it < all.len() && *it >= stored) {
                let maps = unstored.up_to(block as u64);
                for key in 0..40 {
                    let expected = found(&all[stored..=block], key);
                    // A group may also contain writes that are already stored.
                    let or_stored = found(&all[..=block], key);
                    let shown = found(&maps, key);
                    prop_assert!(shown == or_stored || (expected.is_none() && shown.is_none()));
                }
            }
        }
        let most = LAYERS_OF_GROUP + 3 * GROUPS_OF_GROUP;
        prop_assert!(unstored.up_to(u64::MAX).len() <= most);
    }
}
