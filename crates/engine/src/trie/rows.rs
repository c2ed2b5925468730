//! Where nodes are read from and what a trie wants written.
//!
//! `NodeWrites` are not applied here: they are handed to the store, or kept as a
//! layer above it until they are. A layer answers for every key it has, removals
//! included; storage of a former life needs no such answer, because a new
//! generation never asks for the rows of an old one.

use std::{collections::BTreeMap, sync::Arc};

use alloy_trie::Nibbles;

use super::{Owner, node_key};
use crate::error::{Error, Result};

/// The stored nodes of all tries, as of one state.
pub trait NodeReader {
    /// The node's RLP, `None` when there is no node.
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>>;
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

    pub(super) fn load(&self, path: &Nibbles) -> Result<Vec<u8>> {
        let row = self.nodes.node(&self.owner, path)?;
        row.ok_or_else(|| Error::MissingNode(self.place(path)))
    }

    pub(super) fn damaged(&self, path: &Nibbles, why: impl std::fmt::Display) -> Error {
        Error::StoreDamaged(format!("trie node at {}: {why}", self.place(path)))
    }

    fn place(&self, path: &Nibbles) -> String {
        let digits: String =
            path.iter().filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect();
        format!("path '{digits}' of {}", self.owner)
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
}
