//! Loads and hashes nodes level by level.
//!
//! The nodes of one level do not depend on each other, so they are hashed together (`keccak`), and
//! their rows, which are adjacent, are read in order.

use alloy_primitives::B256;
use alloy_trie::{Nibbles, nodes::RlpNode};

use super::{
    HASHED_FROM_BYTES, Rows,
    keccak::hash_all,
    node::{Body, Loaded, Node},
};
use crate::error::Result;

/// The number of nodes that are hashed together, which bounds the size of the buffer.
const BATCH: usize = 256;

/// Updates `reference` in these nodes and their descendants. Tests compare it with `Node::hash`.
pub(super) fn hash<'a>(roots: impl IntoIterator<Item = &'a mut Node>) {
    let mut roots: Vec<&mut Node> = roots.into_iter().filter(|root| !root.is_hashed()).collect();
    let mut level = Vec::new();
    for (parent, root) in roots.iter_mut().enumerate() {
        level.extend(Taken::from(root, parent, 0));
    }
    let mut levels = Vec::new();
    while !level.is_empty() {
        let mut below = Vec::new();
        for (parent, taken) in level.iter_mut().enumerate() {
            for (slot, child) in taken.node.body.children_mut().iter_mut().enumerate() {
                below.extend(Taken::from(child, parent, slot));
            }
        }
        levels.push(std::mem::replace(&mut level, below));
    }
    let mut encoded = Encoded::default();
    while let Some(mut level) = levels.pop() {
        for batch in level.chunks_mut(BATCH) {
            encoded.clear();
            for taken in &*batch {
                encoded.push(&taken.node.body);
            }
            for (taken, reference) in batch.iter_mut().zip(encoded.references()) {
                taken.node.reference = Some(reference);
            }
        }
        for Taken { node, parent, slot } in level {
            let place = match levels.last_mut() {
                Some(above) => &mut above[parent].node.body.children_mut()[slot],
                None => &mut *roots[parent],
            };
            *place = Node::Loaded(node);
        }
    }
}

/// A changed node, taken out of its parent until it is hashed.
struct Taken {
    node: Box<Loaded>,
    /// The position of the parent in the level above.
    parent: usize,
    slot: usize,
}

impl Taken {
    fn from(place: &mut Node, parent: usize, slot: usize) -> Option<Self> {
        if place.is_hashed() {
            return None;
        }
        match std::mem::take(place) {
            Node::Loaded(node) => Some(Self { node, parent, slot }),
            _ => None,
        }
    }
}

/// Loads the nodes on the paths of these keys, which must be sorted. A node whose row is missing or
/// does not match stays unloaded; reading it later fails.
pub(super) fn load(root: &mut Node, keys: &[Nibbles], rows: &Rows<'_>) -> Result<()> {
    let mut level = Vec::new();
    if !keys.is_empty() {
        level.push(OnPath { node: root, depth: 0, keys });
    }
    while !level.is_empty() {
        for batch in level.chunks_mut(BATCH) {
            load_batch(batch, rows)?;
        }
        let mut below = Vec::new();
        level.into_iter().for_each(|on_path| on_path.descend(&mut below));
        level = below;
    }
    Ok(())
}

/// A node on the paths of at least one key.
struct OnPath<'a> {
    node: &'a mut Node,
    depth: usize,
    keys: &'a [Nibbles],
}

impl<'a> OnPath<'a> {
    /// The path and the hash of the node, if it has a row that is not loaded.
    fn row(&self) -> Option<(Nibbles, B256)> {
        let Node::Stored(reference) = &*self.node else { return None };
        Some((self.keys[0].slice(..self.depth), reference.as_hash()?))
    }

    /// Adds the children on the paths of the keys to `below`.
    fn descend(self, below: &mut Vec<Self>) {
        let Self { node, depth, mut keys } = self;
        let Node::Loaded(loaded) = node else { return };
        match &mut loaded.body {
            Body::Leaf { .. } => {}
            Body::Extension { key, child } => {
                let start = keys.partition_point(|each| each.slice(depth..) < *key);
                let keys = &keys[start..];
                let end = keys.partition_point(|each| each.slice(depth..).starts_with(key));
                if end > 0 {
                    below.push(Self { node: child, depth: depth + key.len(), keys: &keys[..end] });
                }
            }
            Body::Branch(children) => {
                let mut children = (0u8..).zip(children.iter_mut());
                while let Some(nibble) = keys.first().and_then(|key| key.get(depth)) {
                    let end = keys.partition_point(|key| key.get(depth) <= Some(nibble));
                    let (on_path, after) = keys.split_at(end);
                    keys = after;
                    let child = children.find(|(at, _)| *at == nibble);
                    if let Some((_, node)) = child.filter(|(_, node)| !node.is_vacant()) {
                        below.push(Self { node, depth: depth + 1, keys: on_path });
                    }
                }
            }
        }
    }
}

/// Loads the nodes of a batch that have a row which is not loaded.
fn load_batch(batch: &mut [OnPath<'_>], rows: &Rows<'_>) -> Result<()> {
    let mut found = Vec::with_capacity(batch.len());
    let mut encoded = Vec::with_capacity(batch.len());
    for (at, on_path) in batch.iter().enumerate() {
        let Some((path, hash)) = on_path.row() else { continue };
        if let Some(row) = rows.nodes.node(&rows.owner, &path)? {
            found.push((at, path, hash));
            encoded.push(row);
        }
    }
    let hashes = hash_all(&encoded);
    for (((at, path, expected), row), hash) in found.into_iter().zip(encoded).zip(hashes) {
        if hash == expected {
            rows.nodes.used(&hash, &row);
            batch[at].node.decode(&row, true, &path, rows)?;
        }
    }
    Ok(())
}

/// Encoded nodes, one after the other.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Encoded {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, body: &Body) {
        body.encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The reference of a parent to each node.
    fn references(&self) -> impl Iterator<Item = RlpNode> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let nodes = starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end]);
        let nodes: Vec<&[u8]> = nodes.collect();
        let hashes = hash_all(&nodes);
        nodes.into_iter().zip(hashes).map(|(node, hash)| match node.len() < HASHED_FROM_BYTES {
            true => RlpNode::from_rlp(node),
            false => RlpNode::word_rlp(&hash),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use alloy_primitives::keccak256;
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::trie::{
        NodeReader, Owner, Trie,
        node::root_hash,
        tests::{Table, plain_root, short_key, value},
    };

    fn root_one_by_one(mut root: Node) -> Option<B256> {
        root.hash(&mut Vec::new());
        root.reference().map(root_hash)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn tries_hashed_together_have_the_roots_of_tries_hashed_node_by_node(
            leaves in vec(vec((short_key(), value()), 0..30), 1..5),
        ) {
            let mut tries = vec![Trie::default(); leaves.len()];
            for (trie, leaves) in tries.iter_mut().zip(&leaves) {
                for (key, value) in leaves {
                    trie.set(key, value.clone(), &Rows::NONE).unwrap();
                }
            }
            let expected: Vec<_> = tries.iter().map(|it| root_one_by_one(it.root.clone())).collect();
            hash(tries.iter_mut().map(|trie| &mut trie.root));
            let found = |trie: &Trie| trie.root.reference().map(root_hash);
            prop_assert_eq!(tries.iter().map(found).collect::<Vec<_>>(), expected);
            prop_assert!(tries.iter().all(|trie| trie.root.is_hashed()));
        }

        #[test]
        fn loaded_paths_are_those_that_changes_read(
            leaves in vec((short_key(), value()), 1..40),
            changed in vec(short_key(), 0..10),
        ) {
            let mut table = Table::default();
            let leaves: BTreeMap<_, _> = leaves.into_iter().collect();
            let root = table.build(&Owner::Accounts, &leaves);
            let keys: std::collections::BTreeSet<_> = changed.into_iter().collect();
            let reads = |is_loaded: bool| {
                let counted = Counted { table: &table, reads: Cell::new(0) };
                let rows = Rows { owner: Owner::Accounts, nodes: &counted };
                let mut trie = Trie::open(root);
                if is_loaded {
                    trie.load(&keys.iter().copied().collect::<Vec<_>>(), &rows).unwrap();
                }
                keys.iter().for_each(|key| assert!(trie.get(key, &rows).is_ok()));
                counted.reads.get()
            };
            prop_assert_eq!(reads(true), reads(false));
        }
    }

    #[test]
    fn more_nodes_than_a_batch_have_the_root_of_the_plain_map() {
        let key = |i: u64| Nibbles::unpack(keccak256(i.to_be_bytes()));
        let mut leaves: BTreeMap<_, _> = (0..3_000).map(|i| (key(i), vec![1; 40])).collect();
        let mut table = Table::default();
        let mut trie = Trie::open(table.build(&Owner::Accounts, &leaves));
        let rows = Rows { owner: Owner::Accounts, nodes: &table };
        leaves.values_mut().for_each(|value| value.push(2));
        trie.load(&leaves.keys().copied().collect::<Vec<_>>(), &rows).unwrap();
        for (key, value) in &leaves {
            trie.set(key, value.clone(), &Rows::NONE).unwrap();
        }
        assert_eq!(trie.root(), plain_root(&leaves));
    }

    #[test]
    fn rows_that_are_missing_or_wrong_stay_unloaded() {
        let key = |i: u64| Nibbles::unpack(keccak256(i.to_be_bytes()));
        let leaves: BTreeMap<_, _> = (0..100).map(|i| (key(i), vec![1; 40])).collect();
        let mut table = Table::default();
        let root = table.build(&Owner::Accounts, &leaves);
        let keys: Vec<_> = leaves.keys().copied().collect();
        for place in table.0.keys() {
            for change in [None, Some(vec![0xc0])] {
                let mut damaged = table.clone();
                damaged.0.remove(place);
                damaged.0.extend(change.map(|row| (place.clone(), row)));
                let rows = Rows { owner: Owner::Accounts, nodes: &damaged };
                let mut trie = Trie::open(root);
                trie.load(&keys, &rows).unwrap();
                let failed =
                    |trie: &mut Trie| keys.iter().find_map(|key| trie.get(key, &rows).err());
                assert_eq!(failed(&mut trie), failed(&mut Trie::open(root)));
            }
        }
    }

    struct Counted<'a> {
        table: &'a Table,
        reads: Cell<usize>,
    }

    impl NodeReader for Counted<'_> {
        fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
            self.reads.set(self.reads.get() + 1);
            self.table.node(owner, path)
        }
    }
}
