//! One trie, loaded lazily and hashed incrementally.
//!
//! Loaded nodes stay in memory, so later changes and roots cost only the nodes that they touch.
//! After an error the trie may be partly changed and must be dropped. No key may be a prefix of
//! another; state keys all have the same length.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles, nodes::RlpNode};

use super::{
    Owner, Rows,
    edit::Edit,
    levels,
    node::{Body, Node, root_hash},
    node_key,
};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Default)]
pub struct Trie {
    pub(super) root: Node,
    /// Paths whose node and row were removed since the last `take_writes`.
    given_up: Vec<Nibbles>,
    /// The encoding buffer, kept to avoid reallocation.
    buffer: Vec<u8>,
    /// In a trial trie: the paths of missing nodes that were assumed to be branches.
    pub(super) assumed: Option<Vec<Nibbles>>,
}

impl Trie {
    /// Opens the stored trie with this root. Nodes are read on first use.
    pub fn open(root: B256) -> Self {
        let root = match root {
            EMPTY_ROOT_HASH => Node::Vacant,
            hash => Node::Stored(RlpNode::word_rlp(&hash)),
        };
        Self { root, ..Self::default() }
    }

    /// The number of nodes that were assumed to be branches.
    pub(super) fn assumptions(&self) -> usize {
        self.assumed.as_ref().map_or(0, Vec::len)
    }

    pub fn get(&mut self, key: &Nibbles, rows: &Rows<'_>) -> Result<Option<&[u8]>> {
        let mut node = &mut self.root;
        let mut depth = 0;
        loop {
            node.load(&key.slice(..depth), rows)?;
            let Node::Loaded(loaded) = node else { return Ok(None) };
            let rest = key.slice(depth..);
            node = match &mut loaded.body {
                Body::Leaf { key, value } => {
                    return Ok((*key == rest).then_some(value.as_slice()));
                }
                Body::Extension { key, child } if rest.starts_with(key) => {
                    depth += key.len();
                    child
                }
                Body::Extension { .. } => return Ok(None),
                Body::Branch(children) => {
                    let Some(nibble) = rest.first() else { return Ok(None) };
                    depth += 1;
                    &mut children[usize::from(nibble)]
                }
            };
        }
    }

    pub fn set(&mut self, key: &Nibbles, value: Vec<u8>, rows: &Rows<'_>) -> Result<()> {
        self.update(key, rows, |_| Ok(Some(value)))
    }

    pub fn delete(&mut self, key: &Nibbles, rows: &Rows<'_>) -> Result<()> {
        self.update(key, rows, |_| Ok(None))
    }

    /// Sets the key's value to the result of `change`, which gets the current value. `None` means
    /// that the key is absent.
    pub fn update<F>(&mut self, key: &Nibbles, rows: &Rows<'_>, change: F) -> Result<()>
    where
        F: FnOnce(Option<&[u8]>) -> Result<Option<Vec<u8>>>,
    {
        if key.is_empty() {
            return Err(Error::invalid("a trie key is empty"));
        }
        let (given_up, assumed) = (&mut self.given_up, &mut self.assumed);
        let mut edit = Edit { key, rows, given_up, assumed };
        edit.update(&mut self.root, 0, change)?;
        Ok(())
    }

    pub fn root(&mut self) -> B256 {
        hash_all([&mut *self]);
        self.root.reference().map_or(EMPTY_ROOT_HASH, root_hash)
    }

    /// Loads the nodes on the paths of these keys, which must be sorted. Later accesses load them
    /// otherwise, one by one.
    pub(super) fn load(&mut self, keys: &[Nibbles], rows: &Rows<'_>) -> Result<()> {
        levels::load(&mut self.root, keys, rows)
    }

    /// Adds all rows that changed since the last call to `writes`.
    pub fn take_writes(&mut self, owner: &Owner, writes: &mut BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        hash_all([&mut *self]);
        for path in self.given_up.drain(..) {
            writes.insert(node_key(owner, &path), None);
        }
        // Must follow the removals, because a new node may be at one of these paths.
        self.root.save(Nibbles::new(), &mut self.buffer, &mut |path, row| {
            writes.insert(node_key(owner, path), row.map(<[u8]>::to_vec));
        });
    }
}

/// Hashes the changed nodes of several tries together.
pub(super) fn hash_all<'a>(tries: impl IntoIterator<Item = &'a mut Trie>) {
    levels::hash(tries.into_iter().map(|trie| &mut trie.root));
}
