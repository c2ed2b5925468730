//! Merkle proofs: the nodes on the path to one key, from the root down.
//!
//! Given the root hash, these nodes prove the key's value or its absence (EIP-1186). Nodes embedded
//! in their parent are not listed. The proof of an empty trie is empty.
//!
//! `Trie::prove` reads a stored trie. `PathNodes` collects the nodes on the paths of some keys
//! while a trie is built from all its leaves.

use std::collections::{BTreeMap, BTreeSet};

use alloy_trie::Nibbles;

use super::{
    HASHED_FROM_BYTES, Rows, Trie,
    node::{Body, Node},
};
use crate::error::Result;

/// The RLP of the nodes, root first.
pub type ProofNodes = Vec<Vec<u8>>;

impl Trie {
    pub fn prove(&mut self, key: &Nibbles, rows: &Rows<'_>) -> Result<ProofNodes> {
        self.root();
        let mut nodes = Vec::new();
        let mut node = &mut self.root;
        let mut depth = 0;
        loop {
            node.load(&key.slice(..depth), rows)?;
            let Node::Loaded(loaded) = node else { return Ok(nodes) };
            let mut rlp = Vec::new();
            loaded.body.encode(&mut rlp);
            if depth == 0 || rlp.len() >= HASHED_FROM_BYTES {
                nodes.push(rlp);
            }
            let rest = key.slice(depth..);
            node = match &mut loaded.body {
                Body::Extension { key, child } if rest.starts_with(key) => {
                    depth += key.len();
                    child
                }
                Body::Leaf { .. } | Body::Extension { .. } => return Ok(nodes),
                Body::Branch(children) => {
                    let Some(nibble) = rest.first() else { return Ok(nodes) };
                    depth += 1;
                    &mut children[usize::from(nibble)]
                }
            };
        }
    }
}

/// The nodes on the paths to a set of keys, collected while a trie is built.
#[derive(Default)]
pub struct PathNodes {
    keys: BTreeSet<Nibbles>,
    nodes: BTreeMap<Nibbles, Vec<u8>>,
}

impl PathNodes {
    pub fn to(keys: impl IntoIterator<Item = Nibbles>) -> Self {
        Self { keys: keys.into_iter().collect(), nodes: BTreeMap::new() }
    }

    /// Keeps a node if it is on the path of one of the keys. Embedded nodes must not be offered.
    pub fn offer(&mut self, path: &Nibbles, rlp: &[u8]) {
        let next = self.keys.range(*path..).next();
        if next.is_some_and(|key| key.starts_with(path)) {
            self.nodes.insert(*path, rlp.to_vec());
        }
    }

    pub fn nodes(&self, key: &Nibbles) -> ProofNodes {
        let paths = (0..=key.len()).map(|depth| key.slice(..depth));
        paths.filter_map(|path| self.nodes.get(&path).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Bytes;
    use alloy_trie::proof::verify_proof;
    use proptest::{collection::btree_map, prelude::*};

    use super::*;
    use crate::trie::{
        Owner,
        bulk_root::BulkRoot,
        tests::{Table, value},
    };

    fn hashed_key() -> impl Strategy<Value = Nibbles> {
        // Few distinct prefixes, so that there are extensions and shared paths.
        (0u8..4, any::<[u8; 2]>()).prop_map(|(first, end)| {
            let mut key = [first; 32];
            key[30..].copy_from_slice(&end);
            Nibbles::unpack(key)
        })
    }

    proptest! {
        #[test]
        fn alloy_verifies_what_is_there_and_what_is_not(
            leaves in btree_map(hashed_key(), value(), 0..60),
            absent in hashed_key(),
        ) {
            let mut table = Table::default();
            let root = table.build(&Owner::Accounts, &leaves);
            let rows = Rows { owner: Owner::Accounts, nodes: &table };
            let mut way = PathNodes::to(leaves.keys().copied().chain([absent]));
            let mut built = BulkRoot::new(|path, rlp| { way.offer(path, rlp); Ok(()) });
            for (key, value) in &leaves {
                built.push(*key, value).unwrap();
            }
            prop_assert_eq!(built.finish().unwrap(), root);
            for key in leaves.keys().chain([&absent]) {
                let nodes = Trie::open(root).prove(key, &rows).unwrap();
                prop_assert_eq!(&nodes, &way.nodes(key));
                let proof: Vec<Bytes> = nodes.into_iter().map(Bytes::from).collect();
                let held = leaves.get(key).cloned();
                prop_assert!(verify_proof(root, *key, held, &proof).is_ok());
            }
        }
    }
}
