//! Traverses a stored trie from its root to every leaf and checks each node's hash.
//!
//! Only the path to the current node is held in memory. A damaged node is reported and its subtree
//! skipped, because only the parent's hash tells which nodes belong there.

use alloy_primitives::B256;
use alloy_trie::Nibbles;

use super::{
    Rows, Trie,
    node::{Body, Node, child_path},
};
use crate::error::{Error, Result};

/// Receives the results of a walk. An error from any method ends the walk.
pub trait Walker {
    /// Called after each node is read.
    fn node(&mut self) -> Result<()>;

    /// Called for each leaf, with its full key.
    fn leaf(&mut self, key: &Nibbles, value: &[u8]) -> Result<()>;

    /// Called for a node that is missing or does not match its parent's reference.
    fn damaged(&mut self, path: &Nibbles, why: Error) -> Result<()>;
}

/// Walks the trie with this root.
///
/// # Errors
///
/// The walker's errors, and read errors other than damaged or missing nodes.
pub fn walk(root: B256, rows: &Rows<'_>, walker: &mut dyn Walker) -> Result<()> {
    descend(Trie::open(root).root, Nibbles::new(), rows, walker)
}

fn descend(mut node: Node, path: Nibbles, rows: &Rows<'_>, walker: &mut dyn Walker) -> Result<()> {
    match node.load(&path, rows) {
        Err(why @ (Error::StoreDamaged(_) | Error::MissingNode(_))) => {
            return walker.damaged(&path, why);
        }
        loaded => loaded?,
    }
    let Node::Loaded(loaded) = node else { return Ok(()) };
    walker.node()?;
    match loaded.body {
        Body::Leaf { key, value } => walker.leaf(&path.join(&key), &value),
        Body::Extension { key, child } => descend(child, path.join(&key), rows, walker),
        Body::Branch(children) => {
            for (nibble, child) in (0..).zip(*children) {
                descend(child, child_path(path, nibble), rows, walker)?;
            }
            Ok(())
        }
    }
}
