//! A stored trie read from its root down to every leaf, each node checked by its hash.
//!
//! Nothing is held but the way to the node being read. What is wrong with a node is told,
//! and what is below it is left out: its parent's hash is all that says what belongs there.

use alloy_primitives::B256;
use alloy_trie::Nibbles;

use super::{
    Rows, Trie,
    node::{Body, Node, child_path},
};
use crate::error::{Error, Result};

/// What a walk tells as it goes.
pub trait Walker {
    /// A node was read, at a path of one trie. An error ends the walk.
    fn node(&mut self) -> Result<()>;

    /// A leaf with its whole key.
    fn leaf(&mut self, key: &Nibbles, value: &[u8]) -> Result<()>;

    /// A node that is missing or not the one that its parent names.
    fn damaged(&mut self, path: &Nibbles, why: Error) -> Result<()>;
}

/// Walks the trie with this root.
///
/// # Errors
///
/// What the walker gives; what reading failed with, but for damage of nodes.
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
