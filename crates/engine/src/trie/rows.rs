//! Where nodes are read from and what a trie wants written.
//!
//! `NodeWrites` are not applied here: they are handed to the store, or kept as a
//! layer above it until they are. A layer answers for every key it has, removals
//! included; storage of a former life needs no such answer, because a new
//! generation never asks for the rows of an old one.
//!
//! A node is asked for by its place, and where that has none by the hash that its parent
//! has for it (`by_hash`). One that is in neither place is a `MissingNode`, which is a
//! value: the caller can find it elsewhere.

use std::{collections::BTreeMap, fmt, sync::Arc};

use alloy_primitives::{B256, keccak256};
use alloy_trie::Nibbles;

use super::{Owner, node_key};
use crate::error::{Error, Result};

/// The stored nodes of all tries, as of one state.
pub trait NodeReader {
    /// The node's RLP, `None` when there is no node.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>>;

    /// The node with this hash, wherever it belongs, if it lies under its hash.
    ///
    /// # Errors
    ///
    /// What the reader failed with.
    fn by_hash(&self, _hash: &B256) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Hears of each node that a trie was read from.
    fn used(&self, _hash: &B256, _node: &[u8]) {}

    /// Whether nodes by their places may be missing or out of date without being damaged.
    fn is_partial(&self) -> bool {
        false
    }

    /// Whether the node of this hash, which is not here, is known to be a branch.
    fn is_branch(&self, _hash: &B256) -> bool {
        false
    }
}

/// A node that a trie refers to and that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MissingNode {
    pub owner: Owner,
    pub path: Nibbles,
}

impl MissingNode {
    /// The path, a hexadecimal digit for each nibble.
    pub fn digits(&self) -> String {
        self.path.iter().filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
    }
}

impl fmt::Display for MissingNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path '{}' of {}", self.digits(), self.owner)
    }
}

/// The stored nodes of one trie.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub owner: Owner,
    pub nodes: &'a dyn NodeReader,
}

impl Rows<'_> {
    /// For a trie that lives in memory only and so never asks for a row.
    pub const NONE: Rows<'static> = Rows { owner: Owner::Accounts, nodes: &NoNodes };

    /// The node at this path, which must have this hash.
    pub(super) fn load(&self, path: &Nibbles, hash: &B256) -> Result<Vec<u8>> {
        let row = self.nodes.node(&self.owner, path)?;
        // A stale or damaged row must not become a wrong root. Measured for 1,000
        // changes in 500,000 accounts, rows in memory, development build: 12.3 ms
        // with this check, 9.0 ms without.
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

/// What has to be written so that a `NodeReader` shows the tries as they are now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeWrites {
    /// By `node_key`: the node's RLP, `None` when there is no node any more.
    pub nodes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Owners that nothing refers to any more. Their rows are not in `nodes`: they
    /// can be deleted by `owner_prefix` whenever it suits.
    pub retired: Vec<Owner>,
}

/// Writes that are not stored yet, above the nodes that are.
pub struct LayeredNodes<'a> {
    /// Oldest first.
    pub layers: Vec<Arc<NodeWrites>>,
    pub base: &'a dyn NodeReader,
}

impl NodeReader for LayeredNodes<'_> {
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
