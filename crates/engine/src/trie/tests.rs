//! Compares tries with plain maps and rows with bulk-built tries, and tests damaged rows.

use std::{cell::Cell, collections::BTreeMap};

use alloy_primitives::{B256, keccak256};
use alloy_rlp::Encodable;
use alloy_trie::{
    EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieMask,
    nodes::{BranchNodeRef, LeafNodeRef, RlpNode},
};
use proptest::{collection::vec, prelude::*};

use super::{MissingNode, NodeReader, NodeWrites, Owner, Rows, Trie, node_key, owner_prefix};
use crate::{
    error::{Error, Result},
    trie::bulk_root::BulkRoot,
};

/// Rows as a store would hold them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table(pub BTreeMap<Vec<u8>, Vec<u8>>);

impl NodeReader for Table {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        Ok(self.0.get(&node_key(owner, path)).cloned())
    }
}

impl Table {
    pub fn write(&mut self, writes: &NodeWrites) {
        for (key, row) in &writes.nodes {
            match row {
                Some(rlp) => self.0.insert(key.clone(), rlp.clone()),
                None => self.0.remove(key),
            };
        }
        for owner in &writes.retired {
            let prefix = owner_prefix(owner);
            self.0.retain(|key, _| !key.starts_with(&prefix));
        }
    }

    /// Adds all rows of the trie with these leaves and returns its root.
    pub fn build(&mut self, owner: &Owner, leaves: &BTreeMap<Nibbles, Vec<u8>>) -> B256 {
        let mut trie = BulkRoot::new(|path, rlp| {
            assert!(self.0.insert(node_key(owner, path), rlp.to_vec()).is_none());
            Ok(())
        });
        for (key, value) in leaves {
            trie.push(*key, value).unwrap();
        }
        trie.finish().unwrap()
    }

    fn rows(&self) -> Rows<'_> {
        Rows { owner: Owner::Accounts, nodes: self }
    }

    fn take(&mut self, trie: &mut Trie) {
        let mut writes = NodeWrites::default();
        trie.take_writes(&Owner::Accounts, &mut writes.nodes);
        self.write(&writes);
    }
}

pub(crate) fn plain_root(leaves: &BTreeMap<Nibbles, Vec<u8>>) -> B256 {
    let mut builder = HashBuilder::default();
    leaves.iter().for_each(|(key, value)| builder.add_leaf(*key, value));
    builder.root()
}

/// Few keys of equal length, so that they share prefixes, repeat and are deleted.
pub(crate) fn short_key() -> impl Strategy<Value = Nibbles> {
    let nibble = prop_oneof![Just(0u8), Just(1), Just(15)];
    vec(nibble, 5).prop_map(Nibbles::from_nibbles)
}

/// Mostly values so small that their nodes are embedded in their parents.
pub(crate) fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => vec(any::<u8>(), 1..3),
        2 => vec(any::<u8>(), 20..40),
        1 => vec(any::<u8>(), 60..120),
    ]
}

#[derive(Debug, Clone)]
enum After {
    Root,
    Take,
    Reopen,
}

type Edits = Vec<(Nibbles, Option<Vec<u8>>)>;

fn rounds() -> impl Strategy<Value = Vec<(Edits, After)>> {
    let edits = vec((short_key(), proptest::option::weighted(0.55, value())), 1..12);
    let after = prop_oneof![Just(After::Root), Just(After::Take), Just(After::Reopen),];
    vec((edits, after), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn roots_and_rows_are_those_of_the_plain_map_after_every_round(rounds in rounds()) {
        let mut plain = BTreeMap::new();
        let mut table = Table::default();
        let mut trie = Trie::default();
        for (edits, after) in rounds {
            for (key, value) in edits {
                let found = trie.get(&key, &table.rows()).unwrap().map(<[u8]>::to_vec);
                prop_assert_eq!(&found, &plain.get(&key).cloned());
                match value {
                    Some(value) => {
                        trie.set(&key, value.clone(), &table.rows()).unwrap();
                        plain.insert(key, value);
                    }
                    None => {
                        trie.delete(&key, &table.rows()).unwrap();
                        plain.remove(&key);
                    }
                }
            }
            if matches!(after, After::Root) {
                prop_assert_eq!(trie.root(), plain_root(&plain));
                continue;
            }
            table.take(&mut trie);
            let mut built = Table::default();
            prop_assert_eq!(built.build(&Owner::Accounts, &plain), plain_root(&plain));
            prop_assert_eq!(&table, &built);
            if matches!(after, After::Reopen) {
                trie = Trie::open(plain_root(&plain));
            }
            prop_assert_eq!(trie.root(), plain_root(&plain));
        }
        for key in plain.keys() {
            trie.delete(key, &table.rows()).unwrap();
        }
        table.take(&mut trie);
        prop_assert_eq!(trie.root(), EMPTY_ROOT_HASH);
        prop_assert_eq!(table, Table::default());
    }

    #[test]
    fn whatever_a_row_holds_nothing_panics(
        rows in vec(odd_node(), 1..6),
        edits in vec((short_key(), proptest::option::of(value())), 1..6),
    ) {
        let mut table = Table::default();
        for rlp in &rows {
            let mut trie = Trie::open(keccak256(rlp));
            table.0.insert(node_key(&Owner::Accounts, &Nibbles::new()), rlp.clone());
            for (key, value) in &edits {
                let _ = trie.get(key, &table.rows());
                let _ = trie.update(key, &table.rows(), |_| Ok(value.clone()));
            }
            trie.root();
            table.take(&mut trie);
        }
    }
}

/// RLP lists that are valid, nearly valid or invalid nodes, including nested ones.
fn odd_node() -> impl Strategy<Value = Vec<u8>> {
    let path = prop_oneof![
        Just(vec![0x00]),
        Just(vec![0x10]),
        Just(vec![0x11]),
        Just(vec![0x20]),
        Just(vec![0x00, 0x01, 0x0f]),
        Just(vec![0x3f, 0x01, 0x0f]),
        Just([vec![0x00], vec![0x01; 32]].concat()),
        Just([vec![0x20], vec![0x00; 32]].concat()),
    ];
    let item = prop_oneof![
        3 => Just(vec![0x80]),
        2 => path.prop_map(|path| alloy_rlp::encode(path.as_slice())),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| alloy_rlp::encode(bytes.as_slice())),
        1 => Just(alloy_rlp::encode(B256::repeat_byte(7))),
        1 => vec(any::<u8>(), 0..4),
    ];
    item.prop_recursive(3, 40, 17, |inner| {
        prop_oneof![vec(inner.clone(), 2), vec(inner.clone(), 17), vec(inner, 0..18)].prop_map(
            |items| {
                let payload = items.concat();
                let mut list = Vec::new();
                alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut list);
                [list, payload].concat()
            },
        )
    })
}

fn hashed_leaves(count: u64) -> BTreeMap<Nibbles, Vec<u8>> {
    let key = |i: u64| Nibbles::unpack(keccak256(i.to_be_bytes()));
    (0..count).map(|i| (key(i), i.to_be_bytes().repeat(9))).collect()
}

#[test]
fn an_unchanged_value_leaves_nothing_to_write() {
    let leaves = hashed_leaves(100);
    let mut table = Table::default();
    let mut trie = Trie::open(table.build(&Owner::Accounts, &leaves));
    for (key, value) in &leaves {
        trie.set(key, value.clone(), &table.rows()).unwrap();
    }
    trie.delete(&Nibbles::unpack(B256::ZERO), &table.rows()).unwrap();
    let mut writes = BTreeMap::new();
    trie.take_writes(&Owner::Accounts, &mut writes);
    assert!(writes.is_empty());
}

/// Counts the reads.
struct Counting<'a>(&'a Table, Cell<usize>);

impl NodeReader for Counting<'_> {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        self.1.set(self.1.get() + 1);
        self.0.node(owner, path)
    }
}

#[test]
fn a_further_change_reads_and_writes_only_its_own_path() {
    let leaves = hashed_leaves(5_000);
    let mut table = Table::default();
    let root = table.build(&Owner::Accounts, &leaves);
    let counting = Counting(&table, Cell::new(0));
    let rows = Rows { owner: Owner::Accounts, nodes: &counting };
    let mut trie = Trie::open(root);
    let mut writes = BTreeMap::new();

    let (key, value) = leaves.first_key_value().unwrap();
    trie.set(key, vec![1; 40], &rows).unwrap();
    trie.take_writes(&Owner::Accounts, &mut writes);
    let depth = writes.len();
    assert!((4..=6).contains(&depth), "{depth} nodes from root to leaf");
    assert_eq!(counting.1.replace(0), depth);

    writes.clear();
    trie.set(key, value.clone(), &rows).unwrap();
    trie.take_writes(&Owner::Accounts, &mut writes);
    assert_eq!((counting.1.get(), writes.len()), (0, depth));
    assert_eq!(trie.root(), root);
}

#[test]
fn a_missing_row_is_named() {
    let leaves = hashed_leaves(300);
    let mut table = Table::default();
    let root = table.build(&Owner::Accounts, &leaves);
    for missing in table.0.keys() {
        let mut partial = table.clone();
        partial.0.remove(missing);
        let mut trie = Trie::open(root);
        let failed = leaves.keys().find_map(|key| trie.get(key, &partial.rows()).err());
        let Some(Error::MissingNode(MissingNode { owner, path })) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(node_key(&owner, &path), *missing);
    }
}

#[test]
fn a_branch_that_cannot_see_its_last_child_does_not_collapse() {
    let key = |digits: [u8; 4]| Nibbles::from_nibbles(digits);
    let leaves =
        BTreeMap::from([(key([1, 2, 3, 4]), vec![1; 40]), (key([1, 5, 6, 7]), vec![2; 40])]);
    let mut table = Table::default();
    let mut trie = Trie::open(table.build(&Owner::Accounts, &leaves));
    table.0.remove(&node_key(&Owner::Accounts, &Nibbles::from_nibbles([1, 5])));
    let failed = trie.delete(&key([1, 2, 3, 4]), &table.rows());
    let path = Nibbles::from_nibbles([1, 5]);
    let missing = MissingNode { owner: Owner::Accounts, path };
    assert_eq!(failed, Err(Error::MissingNode(missing)));
    assert_eq!(missing.to_string(), "path '15' of the account trie");
}

#[test]
fn a_flipped_bit_is_found() {
    let leaves = hashed_leaves(20);
    let mut table = Table::default();
    let root = table.build(&Owner::Accounts, &leaves);
    for (place, rlp) in &table.0 {
        for byte in 0..rlp.len() {
            let mut damaged = table.clone();
            damaged.0.get_mut(place).unwrap()[byte] ^= 1 << (byte % 8);
            let mut trie = Trie::open(root);
            let failed = leaves.keys().find_map(|key| trie.get(key, &damaged.rows()).err());
            assert!(matches!(failed, Some(Error::StoreDamaged(_))), "{failed:?}");
        }
    }
}

#[test]
fn rows_that_hash_right_but_are_no_nodes_are_damage() {
    let branch_of_one = [vec![0xd3, 0xc2, 0x20, 0x01], vec![0x80; 16]].concat();
    let endless = [vec![0xe4, 0xa1, 0x00], vec![0x11; 32], vec![0xc0]].concat();
    let long_child = [vec![0xf3, 0xe0], vec![0x80; 32], vec![0xc2, 0x20, 0x01], vec![0x80; 15]];
    let long_child = long_child.concat();
    let cases: [&[u8]; 8] = [
        b"",
        &[0xc0],
        &[0xc2, 0x20, 0x01, 0x00],       // A byte after the node.
        &[0xc2, 0x40, 0x01],             // Neither leaf nor extension.
        &[0xc4, 0x00, 0xc2, 0x20, 0x01], // An extension by nothing.
        &branch_of_one,
        &endless,
        &long_child,
    ];
    for rlp in cases {
        let table = Table([(node_key(&Owner::Accounts, &Nibbles::new()), rlp.to_vec())].into());
        let failed = Trie::open(keccak256(rlp)).delete(&Nibbles::unpack([1; 32]), &table.rows());
        assert!(matches!(failed, Err(Error::StoreDamaged(_))), "{rlp:x?} gave {failed:?}");
    }
}

#[test]
fn a_path_beyond_the_key_is_damage() {
    let mut leaf_of_64 = Vec::new();
    LeafNodeRef::new(&Nibbles::unpack([0; 32]), &[1]).encode(&mut leaf_of_64);
    let branch_to = |child: &[u8]| {
        let children = [RlpNode::from_rlp(child), RlpNode::from_rlp(&[0xc2, 0x20, 0x01])];
        let mut rlp = Vec::new();
        BranchNodeRef::new(&children, TrieMask::new(0b11)).encode(&mut rlp);
        rlp
    };
    // Branches at every depth: the last one, at 64 nibbles, is one too many.
    let mut deep = vec![branch_to(&[0xc2, 0x20, 0x01])];
    for _ in 0..64 {
        deep.insert(0, branch_to(&deep[0]));
    }
    for rows in [vec![branch_to(&leaf_of_64), leaf_of_64], deep] {
        let path = |depth| Nibbles::from_nibbles(vec![0; depth]);
        let places = (0..rows.len()).map(|depth| node_key(&Owner::Accounts, &path(depth)));
        let table = Table(places.zip(rows.iter().cloned()).collect());
        let mut trie = Trie::open(keccak256(&rows[0]));
        let failed = trie.delete(&Nibbles::unpack([0; 32]), &table.rows());
        assert!(matches!(failed, Err(Error::StoreDamaged(_))), "{failed:?}");
    }
}

#[test]
fn a_stored_key_that_is_too_short_is_damage() {
    let mut leaf = Vec::new();
    LeafNodeRef::new(&Nibbles::from_nibbles([1; 5]), &[1; 40]).encode(&mut leaf);
    let table = Table([(node_key(&Owner::Accounts, &Nibbles::new()), leaf.clone())].into());
    let mut trie = Trie::open(keccak256(&leaf));
    let failed = trie.set(&Nibbles::from_nibbles([1; 64]), vec![1], &table.rows());
    assert!(matches!(failed, Err(Error::StoreDamaged(_))), "{failed:?}");
}

#[test]
fn keys_that_are_prefixes_of_others_are_refused() {
    let long = Nibbles::from_nibbles([1, 2, 3]);
    let mut trie = Trie::default();
    trie.set(&long, vec![1], &Rows::NONE).unwrap();
    let root = trie.root();
    for bad in [&[][..], &[1, 2], &[1, 2, 3, 4]] {
        let failed = trie.set(&Nibbles::from_nibbles(bad), vec![2], &Rows::NONE);
        assert!(matches!(failed, Err(Error::InvalidArgument(_))), "{failed:?}");
    }
    trie.set(&Nibbles::from_nibbles([1, 3, 3]), vec![2], &Rows::NONE).unwrap();
    let failed = trie.set(&Nibbles::from_nibbles([1]), vec![2], &Rows::NONE);
    assert!(matches!(failed, Err(Error::InvalidArgument(_))), "{failed:?}");
    trie.delete(&Nibbles::from_nibbles([1, 3, 3]), &Rows::NONE).unwrap();
    assert_eq!(trie.root(), root);
}
