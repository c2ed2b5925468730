//! The source of trie nodes, and the rows that a trie wants written.
//!
//! `NodeWrites` are passed to the store, or kept as a layer above it until they are stored. A layer
//! decides every key it contains, including deletions. It need not contain the storage rows of
//! earlier generations, because a new generation never reads them.
//!
//! A node is read by path and, if that fails, by the hash in its parent (`by_hash`). If both fail,
//! the error is `MissingNode`, so that the caller can fetch the node.

use std::{collections::BTreeMap, sync::Arc};

use alloy_primitives::{B256, keccak256};
use alloy_trie::Nibbles;

use crate::error::{Error, Result};
use crate::node_key::{MissingNode, Owner, node_key};

/// The stored nodes of all tries of one state.
pub trait NodeReader {
    /// The node's RLP, `None` if there is no node.
    ///
    /// # Errors
    ///
    /// Those of the underlying storage.
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>>;

    /// The node with this hash, if nodes are also stored by hash.
    ///
    /// # Errors
    ///
    /// Those of the underlying storage.
    fn by_hash(&self, _hash: &B256) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Called for each node that a trie was read from.
    fn used(&self, _hash: &B256, _node: &[u8]) {}

    /// True if nodes may be missing at their paths, or outdated, without being damaged.
    fn is_partial(&self) -> bool {
        false
    }

    /// True if the missing node with this hash is known to be a branch.
    fn is_branch(&self, _hash: &B256) -> bool {
        false
    }
}

/// The stored nodes of one trie.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub owner: Owner,
    pub nodes: &'a dyn NodeReader,
}

impl Rows<'_> {
    /// For a trie held entirely in memory, which never reads rows.
    pub const NONE: Rows<'static> = Rows { owner: Owner::Accounts, nodes: &NoNodes };

    /// Reads the node at this path and checks that it has this hash.
    pub(super) fn load(&self, path: &Nibbles, hash: &B256) -> Result<Vec<u8>> {
        let row = self.nodes.node(&self.owner, path)?;
        // An outdated or damaged row must not lead to a wrong root. Measured with 1,000 changes in
        // 500,000 accounts, rows in memory, development build: 12.3 ms with this check, 9.0 ms
        // without.
        let is_wrong = match row {
            Some(row) if keccak256(&row) == *hash => {
                self.nodes.used(hash, &row);
                return Ok(row);
            }
            Some(_) => !self.nodes.is_partial(),
            None => false,
        };
        match self.nodes.by_hash(hash)? {
            Some(node) if keccak256(&node) == *hash => {
                self.nodes.used(hash, &node);
                Ok(node)
            }
            None if !is_wrong => Err(Error::MissingNode(self.place(path))),
            _ => Err(self.damaged(path, format_args!("it does not hash to {hash}"))),
        }
    }

    pub(super) fn damaged(&self, path: &Nibbles, why: impl std::fmt::Display) -> Error {
        Error::StoreDamaged(format!("trie node at {}: {why}", self.place(path)))
    }

    fn place(&self, path: &Nibbles) -> MissingNode {
        MissingNode { owner: self.owner, path: *path }
    }
}

struct NoNodes;

impl NodeReader for NoNodes {
    fn node(&self, _: &Owner, _: &Nibbles) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// The writes after which a `NodeReader` reflects the current tries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeWrites {
    /// By `node_key`: the node's RLP, `None` if the node was deleted.
    pub nodes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Owners that are no longer referenced. Their rows are not in `nodes`; they can be deleted by
    /// `owner_prefix` at any time.
    pub retired: Vec<Owner>,
}

/// Stored nodes with writes on top that are not stored yet.
pub struct LayeredNodes<N> {
    /// Oldest first.
    pub layers: Vec<Arc<NodeWrites>>,
    pub base: N,
}

impl<N: NodeReader> NodeReader for LayeredNodes<N> {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        if !self.layers.is_empty() {
            let key = node_key(owner, path);
            for layer in self.layers.iter().rev() {
                if let Some(row) = layer.nodes.get(&key) {
                    return Ok(row.clone());
                }
            }
        }
        self.base.node(owner, path)
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        self.base.by_hash(hash)
    }

    fn is_partial(&self) -> bool {
        self.base.is_partial()
    }

    fn is_branch(&self, hash: &B256) -> bool {
        self.base.is_branch(hash)
    }
}
