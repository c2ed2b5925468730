//! Builds a trie from all its leaves in one pass, for genesis and rebuilds.
//!
//! Leaves must be added in ascending key order. Every node is encoded once, emitted with its path,
//! and dropped. Memory use is one branch per level of the last key, independent of the number of
//! leaves. The rows are exactly those of `trie::Trie`, so that it can continue from them.

use alloy_primitives::{B256, U256, keccak256};
use alloy_rlp::Encodable;
use alloy_trie::{
    EMPTY_ROOT_HASH, Nibbles, TrieMask,
    nodes::{BranchNodeRef, ExtensionNodeRef, LeafNodeRef, RlpNode},
};

use crate::{
    error::{Error, Result},
    trie::{
        HASHED_FROM_BYTES,
        leaf::{encode_slot, slot_key},
    },
};

/// Builds one trie and passes the path and RLP of each row to `emit`.
pub struct BulkRoot<E> {
    emit: E,
    /// Branches above the last leaf that may get more children, outermost first.
    open: Vec<OpenBranch>,
    /// The last leaf, not placed yet: its depth depends on the next key.
    last: Option<Nibbles>,
    last_value: Vec<u8>,
    buffer: Vec<u8>,
}

/// A branch at the first `depth` nibbles of the last key.
struct OpenBranch {
    depth: usize,
    children: Vec<RlpNode>,
    mask: TrieMask,
}

impl<E> BulkRoot<E>
where
    E: FnMut(&Nibbles, &[u8]) -> Result<()>,
{
    pub fn new(emit: E) -> Self {
        Self { emit, open: Vec::new(), last: None, last_value: Vec::new(), buffer: Vec::new() }
    }

    /// Adds a leaf. Its key must be greater than the previous key and must not start with it.
    pub fn push(&mut self, key: Nibbles, value: &[u8]) -> Result<()> {
        if let Some(last) = self.last {
            let fork = last.common_prefix_length(&key);
            if last >= key || fork == last.len() {
                return Err(Error::invalid("trie keys are not in ascending order"));
            }
            self.close(&last, Some(fork))?;
        }
        self.last = Some(key);
        self.last_value.clear();
        self.last_value.extend_from_slice(value);
        Ok(())
    }

    pub fn finish(mut self) -> Result<B256> {
        let root = match self.last {
            Some(last) => self.close(&last, None)?,
            None => None,
        };
        let hash = |root: RlpNode| root.as_hash().unwrap_or_else(|| keccak256(&root));
        Ok(root.map_or(EMPTY_ROOT_HASH, hash))
    }

    /// Places the last leaf and all branches that get no more children: those deeper than `fork`,
    /// where the next key diverges from the last one. A branch at `fork` is open afterwards.
    /// Without a next key, all branches are closed and the root is returned.
    fn close(&mut self, last: &Nibbles, fork: Option<usize>) -> Result<Option<RlpNode>> {
        let mut closed: Option<OpenBranch> = None;
        loop {
            if let Some(fork) = fork
                && self.open.last().is_none_or(|branch| branch.depth < fork)
            {
                self.open.push(OpenBranch::at(fork));
            }
            let start = self.open.last().map_or(0, |parent| parent.depth + 1);
            let node = match closed {
                None => self.leaf(last, start)?,
                Some(branch) => self.branch(branch, last, start)?,
            };
            let Some(parent) = self.open.last_mut() else { return Ok(Some(node)) };
            parent.mask.set_bit(last.get_unchecked(parent.depth));
            parent.children.push(node);
            if fork == Some(parent.depth) {
                return Ok(None);
            }
            closed = self.open.pop();
        }
    }

    fn leaf(&mut self, last: &Nibbles, start: usize) -> Result<RlpNode> {
        self.buffer.clear();
        LeafNodeRef::new(&last.slice(start..), &self.last_value).encode(&mut self.buffer);
        self.place(last.slice(..start))
    }

    /// Encodes the branch, with an extension above it if it is deeper than `start`.
    fn branch(&mut self, branch: OpenBranch, last: &Nibbles, start: usize) -> Result<RlpNode> {
        self.buffer.clear();
        BranchNodeRef::new(&branch.children, branch.mask).encode(&mut self.buffer);
        let node = self.place(last.slice(..branch.depth))?;
        if branch.depth == start {
            return Ok(node);
        }
        self.buffer.clear();
        let key = last.slice(start..branch.depth);
        ExtensionNodeRef::new(&key, &node).encode(&mut self.buffer);
        self.place(last.slice(..start))
    }

    /// Emits the encoded node if it has a row, and returns the parent's reference to it.
    fn place(&mut self, path: Nibbles) -> Result<RlpNode> {
        if path.is_empty() || self.buffer.len() >= HASHED_FROM_BYTES {
            (self.emit)(&path, &self.buffer)?;
        }
        Ok(RlpNode::from_rlp(&self.buffer))
    }
}

impl OpenBranch {
    fn at(depth: usize) -> Self {
        Self { depth, children: Vec::with_capacity(16), mask: TrieMask::default() }
    }
}

/// The storage root of these slots, in any order. Zero values are skipped.
pub fn bulk_storage_root(
    slots: impl IntoIterator<Item = (U256, U256)>,
    emit: impl FnMut(&Nibbles, &[u8]) -> Result<()>,
) -> Result<B256> {
    let leaf = |(slot, value)| Some((slot_key(&slot), encode_slot(&value)?));
    let mut leaves: Vec<_> = slots.into_iter().filter_map(leaf).collect();
    leaves.sort_unstable_by_key(|(key, _)| *key);
    let mut trie = BulkRoot::new(emit);
    for (key, value) in leaves {
        trie.push(key, &value)?;
    }
    trie.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use alloy_primitives::B256;
    use proptest::{collection::btree_map, prelude::*};

    use super::*;
    use crate::trie::{
        NodeWrites, Owner, Rows, Trie,
        tests::{Table, plain_root, short_key, value},
    };

    fn check(leaves: &BTreeMap<Nibbles, Vec<u8>>) {
        let mut built = Table::default();
        assert_eq!(built.build(&Owner::Accounts, leaves), plain_root(leaves));

        let mut trie = Trie::default();
        for (key, value) in leaves {
            trie.set(key, value.clone(), &Rows::NONE).unwrap();
        }
        let mut inserted = (Table::default(), NodeWrites::default());
        trie.take_writes(&Owner::Accounts, &mut inserted.1.nodes);
        inserted.0.write(&inserted.1);
        assert_eq!(built, inserted.0);
    }

    proptest! {
        #[test]
        fn root_and_rows_are_those_of_inserting_one_by_one(
            short in btree_map(short_key(), value(), 0..60),
            hashed in btree_map(any::<[u8; 32]>().prop_map(Nibbles::unpack), value(), 0..600),
        ) {
            check(&short);
            check(&hashed);
        }

        #[test]
        fn storage_roots_are_alloys(slots in btree_map(0u64..99, 0u64..5, 0..40)) {
            let slots = slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value)));
            let expected = alloy_trie::root::storage_root_unhashed(
                slots.clone().filter(|(_, value)| !value.is_zero())
                    .map(|(slot, value)| (B256::from(slot), value)),
            );
            prop_assert_eq!(bulk_storage_root(slots, |_, _| Ok(())), Ok(expected));
        }
    }

    #[test]
    fn keys_out_of_order_are_refused() {
        let key = |digits: &[u8]| Nibbles::from_nibbles(digits);
        for (first, second) in [([2, 1], &[1, 1][..]), ([1, 1], &[1, 1]), ([1, 1], &[1, 1, 1])] {
            let mut trie = BulkRoot::new(|_, _| Ok(()));
            trie.push(key(&first), &[1]).unwrap();
            let failed = trie.push(key(second), &[1]);
            assert!(matches!(failed, Err(Error::InvalidArgument(_))), "{failed:?}");
        }
    }

    #[test]
    fn a_failing_emitter_stops_the_build() {
        let mut trie = BulkRoot::new(|_, _| Err(Error::StoreFull(1)));
        trie.push(Nibbles::unpack([1; 32]), &[1; 40]).unwrap();
        assert_eq!(trie.finish(), Err(Error::StoreFull(1)));
    }
}
