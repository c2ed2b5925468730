//! Roots of ordered lists: transactions, receipts, withdrawals.
//!
//! Item `i` stands under the key `rlp(i)`. `ordered_root` is the plain form;
//! `GrowingRoot` gives the same root for a list that is still being appended to.

use alloy_primitives::B256;
use alloy_trie::Nibbles;

use crate::{
    error::Result,
    trie::{Rows, Trie},
};

/// The root of a whole list of encoded items.
pub fn ordered_root<T: AsRef<[u8]>>(items: &[T]) -> B256 {
    alloy_trie::root::ordered_trie_root_encoded(items)
}

/// A list whose root can be asked for at any moment, at the cost of the items added
/// since the last time. It keeps the items, for a later key may still push an
/// earlier leaf down; a copy can be continued on its own.
#[derive(Debug, Clone, Default)]
pub struct GrowingRoot {
    trie: Trie,
    length: usize,
}

impl GrowingRoot {
    pub fn push(&mut self, item: Vec<u8>) -> Result<()> {
        let key = Nibbles::unpack(alloy_rlp::encode_fixed_size(&self.length));
        self.trie.set(&key, item, &Rows::NONE)?;
        self.length += 1;
        Ok(())
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
    use alloy_trie::EMPTY_ROOT_HASH;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Items whose nodes are inlined, nearly so, and far from it.
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
            for index in 0..599 {
                items.push(make(index));
                growing.push(make(index)).unwrap();
                assert_eq!(growing.root(), ordered_root(&items), "length {}", items.len());
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
                prop_assert_eq!(growing.root(), ordered_root(&items[..end]));
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
        assert_eq!(branch.root(), ordered_root(&items));
        assert_ne!(trunk.root(), branch.root());
    }

    #[test]
    fn lists_of_three_byte_indexes_have_the_plain_root() {
        let items: Vec<_> = (0..65_600).map(item).collect();
        let mut growing = GrowingRoot::default();
        items.iter().for_each(|item| growing.push(item.clone()).unwrap());
        assert_eq!(growing.root(), ordered_root(&items));
    }
}
