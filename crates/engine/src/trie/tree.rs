//! One trie: loaded where it was touched, hashed where it changed.
//!
//! Loaded nodes stay in memory, so a further round of changes and the next root
//! cost what they touch. After an error the trie may be half changed and must be
//! dropped. No key may be a prefix of another; the state's are all of one length.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use alloy_trie::{EMPTY_ROOT_HASH, Nibbles, nodes::RlpNode};

use super::{
    Owner, Rows,
    edit::Edit,
    node::{Body, Node, root_hash},
    node_key,
};
use crate::error::{Error, Result};

#[derive(Debug, Clone, Default)]
pub struct Trie {
    pub(super) root: Node,
    /// Paths that had a row and lost their node since the last `take_writes`.
    given_up: Vec<Nibbles>,
    /// Where nodes are encoded, kept to be allocated once.
    buffer: Vec<u8>,
    /// Of a trie that is only tried: where nodes were taken for branches, being unknown.
    pub(super) assumed: Option<Vec<Nibbles>>,
}

impl Trie {
    /// The stored trie with this root. Its nodes are read when first needed.
    pub fn open(root: B256) -> Self {
        let root = match root {
            EMPTY_ROOT_HASH => Node::Vacant,
            hash => Node::Stored(RlpNode::word_rlp(&hash)),
        };
        Self { root, ..Self::default() }
    }

    /// How many nodes were taken for branches.
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

    /// Sets the key's value to what `change` makes of the old one, `None` being none.
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
        self.root.hash(&mut self.buffer);
        self.root.reference().map_or(EMPTY_ROOT_HASH, root_hash)
    }

    /// Adds to `writes` what changed since the last call: all rows that differ.
    pub fn take_writes(&mut self, owner: &Owner, writes: &mut BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        self.root.hash(&mut self.buffer);
        for path in self.given_up.drain(..) {
            writes.insert(node_key(owner, &path), None);
        }
        // After the paths given up, because a new node may stand on one of them.
        self.root.save(Nibbles::new(), &mut self.buffer, &mut |path, row| {
            writes.insert(node_key(owner, path), row.map(<[u8]>::to_vec));
        });
    }
}
