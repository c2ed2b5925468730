//! Roots of ordered lists: transactions, receipts, withdrawals.
//!
//! The key of item `i` is `rlp(i)`. `Leaves` lets a caller hash the leaves in one batch with other
//! data (`keccak`). `GrowingRoot` computes the same root for a list that is still being extended.
//! Tests compare both with alloy's `HashBuilder`, which hashes nodes one by one.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::Encodable;
use alloy_trie::{
    EMPTY_ROOT_HASH, Nibbles, TrieMask,
    nodes::{BranchNodeRef, ExtensionNodeRef, LeafNodeRef, RlpNode},
    root::adjust_index_for_rlp,
};

use crate::{
    error::Result,
    trie::{HASHED_FROM_BYTES, Rows, Trie, keccak::hash_all},
};

/// The root of a complete list of encoded items.
pub fn ordered_root<T: AsRef<[u8]>>(items: &[T]) -> B256 {
    let leaves = Leaves::new(items);
    let nodes: Vec<_> = leaves.nodes().collect();
    leaves.root(&hash_all(&nodes))
}

/// The encoded leaves of a list's trie, in key order.
pub struct Leaves {
    keys: Vec<Nibbles>,
    encoded: Vec<u8>,
    /// The end offset of each leaf in `encoded`.
    ends: Vec<usize>,
}

impl Leaves {
    pub fn new<T: AsRef<[u8]>>(items: &[T]) -> Self {
        let order = || (0..items.len()).map(|place| adjust_index_for_rlp(place, items.len()));
        let key = |index| Nibbles::unpack(alloy_rlp::encode_fixed_size(&index));
        let keys: Vec<Nibbles> = order().map(key).collect();
        let size = items.iter().map(|item| item.as_ref().len() + LEAF_OVERHEAD).sum();
        let mut encoded = Vec::with_capacity(size);
        let end = |(place, index): (usize, usize)| {
            let path = keys[place].slice(leaf_depth(&keys, place)..);
            LeafNodeRef::new(&path, items[index].as_ref()).encode(&mut encoded);
            encoded.len()
        };
        let ends = order().enumerate().map(end).collect();
        Self { keys, encoded, ends }
    }

    pub fn nodes(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.encoded[*start..*end])
    }

    /// The root, given the hash of each leaf.
    pub fn root(&self, hashes: &[B256]) -> B256 {
        let reference = |(node, hash): (&[u8], &B256)| match node.len() < HASHED_FROM_BYTES {
            true => RlpNode::from_rlp(node),
            false => RlpNode::word_rlp(hash),
        };
        let references: Vec<RlpNode> = self.nodes().zip(hashes).map(reference).collect();
        if references.is_empty() {
            return EMPTY_ROOT_HASH;
        }
        let root = node(&self.keys, &references, 0, &mut Vec::with_capacity(BRANCH_SIZE));
        root.as_hash().unwrap_or_else(|| keccak256(&root))
    }
}

/// The maximum overhead of a leaf: two RLP headers of up to five bytes, and a path.
const LEAF_OVERHEAD: usize = 14;
/// The encoded size of a branch with all children and no value.
const BRANCH_SIZE: usize = 532;

/// The depth of a key's leaf in nibbles, including the first nibble that differs from both
/// neighbours.
fn leaf_depth(keys: &[Nibbles], place: usize) -> usize {
    let shared = |other: Option<&Nibbles>| other.map(|it| it.common_prefix_length(&keys[place]));
    let before = place.checked_sub(1).and_then(|before| keys.get(before));
    let deepest = shared(before).max(shared(keys.get(place + 1)));
    deepest.map_or(0, |shared| shared + 1)
}

/// The node above these leaves, at `depth` nibbles.
fn node(keys: &[Nibbles], leaves: &[RlpNode], depth: usize, out: &mut Vec<u8>) -> RlpNode {
    let ([first, .., last], [_, _, ..]) = (keys, leaves) else { return leaves[0].clone() };
    let shared = first.common_prefix_length(last);
    let branch = branch(keys, leaves, shared, out);
    if shared == depth {
        return branch;
    }
    out.clear();
    ExtensionNodeRef::new(&first.slice(depth..shared), &branch).rlp(out)
}

fn branch(keys: &[Nibbles], leaves: &[RlpNode], depth: usize, out: &mut Vec<u8>) -> RlpNode {
    let (mut children, mut mask, mut start) = (Vec::with_capacity(16), TrieMask::default(), 0);
    while start < keys.len() {
        let nibble = keys[start].get(depth);
        let same = |key: &&Nibbles| key.get(depth) == nibble;
        let end = start + keys[start..].iter().take_while(same).count();
        children.push(node(&keys[start..end], &leaves[start..end], depth + 1, out));
        // No key is a prefix of another, so each has a nibble here.
        mask.set_bit(nibble.unwrap_or_default());
        start = end;
    }
    out.clear();
    BranchNodeRef::new(&children, mask).rlp(out)
}

/// A list whose root can be computed at any time, at the cost of the items added since the last
/// root. It keeps the items, because a later key can move an earlier leaf deeper. A clone can be
/// extended independently.
#[derive(Debug, Clone, Default)]
pub struct GrowingRoot {
    trie: Trie,
    length: usize,
}

impl GrowingRoot {
    /// # Errors
    ///
    /// None in practice: a trie that lives in memory reads no rows that could be missing.
    pub fn push(&mut self, item: Vec<u8>) -> Result<()> {
        let key = Nibbles::unpack(alloy_rlp::encode_fixed_size(&self.length));
        self.trie.set(&key, item, &Rows::NONE)?;
        self.length += 1;
        Ok(())
    }

    /// Replaces the last item.
    ///
    /// # Errors
    ///
    /// As `push`.
    pub fn replace_last(&mut self, item: Vec<u8>) -> Result<()> {
        self.length = self.length.saturating_sub(1);
        self.push(item)
    }

    pub fn root(&mut self) -> B256 {
        self.trie.root()
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests {
    use alloy_trie::root::ordered_trie_root_encoded;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// The reference implementation.
    fn alloy_root(items: &[Vec<u8>]) -> B256 {
        ordered_trie_root_encoded(items)
    }

    /// Items whose nodes are embedded, at the limit, and much longer.
    fn item(index: usize) -> Vec<u8> {
        let length = [1, 2, 27, 28, 29, 30, 31, 32, 33, 150, 700][index * 7 % 11];
        vec![index as u8 | 1; length]
    }

    #[test]
    fn every_length_has_the_plain_root() {
        let tiny = |index: usize| vec![index as u8];
        for make in [item, tiny] {
            let mut growing = GrowingRoot::default();
            let mut items = Vec::new();
            assert_eq!(growing.root(), EMPTY_ROOT_HASH);
            assert_eq!(ordered_root(&items), EMPTY_ROOT_HASH);
            for index in 0..270 {
                items.push(make(index));
                match index % 3 {
                    0 => growing.push(make(index)).unwrap(),
                    _ => {
                        growing.push(item(index + 1)).unwrap();
                        growing.replace_last(make(index)).unwrap();
                    }
                }
                // Keys get longer at 128 and 256.
                if (150..250).contains(&items.len()) {
                    continue;
                }
                let expected = alloy_root(&items);
                assert_eq!(ordered_root(&items), expected, "length {}", items.len());
                assert_eq!(growing.root(), expected, "length {}", items.len());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn uneven_growth_has_the_plain_root(steps in vec(1usize..180, 1..20)) {
            let items: Vec<_> = (0..1_200).map(item).collect();
            let mut growing = GrowingRoot::default();
            for step in steps {
                let end = (growing.len() + step).min(items.len());
                for item in &items[growing.len()..end] {
                    growing.push(item.clone()).unwrap();
                }
                prop_assert_eq!(growing.root(), alloy_root(&items[..end]));
            }
        }
    }

    #[test]
    fn copies_grow_apart() {
        let mut trunk = GrowingRoot::default();
        (0..200).for_each(|index| trunk.push(item(index)).unwrap());
        let mut branch = trunk.clone();
        trunk.push(vec![1]).unwrap();
        branch.push(vec![2]).unwrap();
        let mut items: Vec<_> = (0..200).map(item).collect();
        items.push(vec![2]);
        assert_eq!(branch.root(), alloy_root(&items));
        assert_ne!(trunk.root(), branch.root());
    }

    #[test]
    fn lists_of_three_byte_indexes_have_the_plain_root() {
        let items: Vec<_> = (0..65_600).map(item).collect();
        let mut growing = GrowingRoot::default();
        items.iter().for_each(|item| growing.push(item.clone()).unwrap());
        let expected = alloy_root(&items);
        assert_eq!(growing.root(), expected);
        assert_eq!(ordered_root(&items), expected);
    }
}
