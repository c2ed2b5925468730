//! Trie nodes in memory: decoded from rows, hashed, and encoded into rows.
//!
//! A changed node and all its ancestors have no `reference` until they are hashed. A node that is
//! not `saved` differs from its row, and so do all its ancestors. Hashing and saving therefore skip
//! unchanged subtrees.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, EMPTY_LIST_CODE, EMPTY_STRING_CODE, Encodable};
use alloy_trie::{
    Nibbles, TrieMask,
    nodes::{BranchNodeRef, ExtensionNodeRef, LeafNodeRef, RlpNode, TrieNode},
};

use super::{HASHED_FROM_BYTES, Rows};
use crate::error::Result;

/// Keys are 32-byte hashes, so no path is longer.
pub(super) const MAX_NIBBLES: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) enum Node {
    #[default]
    Vacant,
    /// Not loaded: the hash of a node with a row, or an embedded node (under 32 bytes).
    Stored(RlpNode),
    Loaded(Box<Loaded>),
}

#[derive(Debug, Clone)]
pub(super) struct Loaded {
    pub body: Body,
    /// The parent's reference to this node; `None` if the node changed since it was last hashed.
    pub reference: Option<RlpNode>,
    /// The row at this path, or its absence, is up to date.
    pub saved: bool,
    /// A row exists at this path.
    pub has_row: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Leaf { key: Nibbles, value: Vec<u8> },
    Extension { key: Nibbles, child: Node },
    Branch(Box<[Node; 16]>),
}

impl Node {
    pub fn new(body: Body) -> Self {
        let loaded = Loaded { body, reference: None, saved: false, has_row: false };
        Self::Loaded(Box::new(loaded))
    }

    pub fn is_vacant(&self) -> bool {
        matches!(self, Self::Vacant)
    }

    /// Loads the node at `path` unless it is loaded.
    pub fn load(&mut self, path: &Nibbles, rows: &Rows<'_>) -> Result<()> {
        let Self::Stored(reference) = self else { return Ok(()) };
        let (body, has_row) = match reference.as_hash() {
            Some(hash) => {
                let rlp = rows.load(path, &hash)?;
                (Body::decode(&rlp, path.len()), true)
            }
            None => (Body::decode(reference, path.len()), false),
        };
        let body = body.map_err(|why| rows.damaged(path, why))?;
        let reference = Some(reference.clone());
        *self = Self::Loaded(Box::new(Loaded { body, reference, saved: true, has_row }));
        Ok(())
    }

    /// Updates `reference` in this node and its descendants.
    pub fn hash(&mut self, buffer: &mut Vec<u8>) {
        let Self::Loaded(loaded) = self else { return };
        if loaded.reference.is_some() {
            return;
        }
        for child in loaded.body.children_mut() {
            child.hash(buffer);
        }
        buffer.clear();
        loaded.body.encode(buffer);
        loaded.reference = Some(RlpNode::from_rlp(buffer));
    }

    /// The parent's reference to this node, `None` if the node is vacant or not hashed.
    pub fn reference(&self) -> Option<&RlpNode> {
        match self {
            Self::Vacant => None,
            Self::Stored(reference) => Some(reference),
            Self::Loaded(loaded) => loaded.reference.as_ref(),
        }
    }

    /// Passes every row that differs at this path and below to `write`, `None` for a row to delete.
    /// The node must be hashed.
    pub fn save(
        &mut self,
        path: Nibbles,
        buffer: &mut Vec<u8>,
        write: &mut dyn FnMut(&Nibbles, Option<&[u8]>),
    ) {
        let Self::Loaded(loaded) = self else { return };
        if loaded.saved {
            return;
        }
        match &mut loaded.body {
            Body::Leaf { .. } => {}
            Body::Extension { key, child } => child.save(path.join(key), buffer, write),
            Body::Branch(children) => {
                for (nibble, child) in (0..).zip(children.iter_mut()) {
                    child.save(child_path(path, nibble), buffer, write);
                }
            }
        }
        buffer.clear();
        loaded.body.encode(buffer);
        let has_row = path.is_empty() || buffer.len() >= HASHED_FROM_BYTES;
        if has_row {
            write(&path, Some(buffer));
        } else if loaded.has_row {
            write(&path, None);
        }
        loaded.has_row = has_row;
        loaded.saved = true;
    }
}

impl Body {
    /// Decodes the node at a path of `depth` nibbles.
    fn decode(rlp: &[u8], depth: usize) -> alloy_rlp::Result<Self> {
        let mut rest = rlp;
        let node = TrieNode::decode(&mut rest)?;
        ensure(rest.is_empty(), "bytes after the node")?;
        match node {
            TrieNode::EmptyRoot => Err(alloy_rlp::Error::Custom("an empty node")),
            TrieNode::Leaf(leaf) => {
                ensure(depth + leaf.key.len() <= MAX_NIBBLES, "a path that is too long")?;
                Ok(Self::Leaf { key: leaf.key, value: leaf.value })
            }
            TrieNode::Extension(extension) => {
                let key = extension.key;
                ensure(!key.is_empty(), "an extension by nothing")?;
                ensure(depth + key.len() < MAX_NIBBLES, "a path that is too long")?;
                Ok(Self::Extension { key, child: stored(extension.child)? })
            }
            TrieNode::Branch(branch) => {
                ensure(depth < MAX_NIBBLES, "a path that is too long")?;
                ensure(branch.stack.len() >= 2, "a branch with fewer than two children")?;
                let mut children = vacant_children();
                let present = (0..).zip(children.iter_mut());
                let present = present.filter(|(nibble, _)| branch.state_mask.is_bit_set(*nibble));
                for ((_, child), reference) in present.zip(branch.stack) {
                    *child = stored(reference)?;
                }
                Ok(Self::Branch(children))
            }
        }
    }

    fn children_mut(&mut self) -> &mut [Node] {
        match self {
            Self::Leaf { .. } => &mut [],
            Self::Extension { child, .. } => std::slice::from_mut(child),
            Self::Branch(children) => &mut children[..],
        }
    }

    /// Appends the RLP. The children must be hashed.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf { key, value } => LeafNodeRef::new(key, value).encode(out),
            Self::Extension { key, child } => {
                let child = child.reference().map_or(&[][..], RlpNode::as_slice);
                ExtensionNodeRef::new(key, child).encode(out);
            }
            Self::Branch(children) => {
                let mut stack: [RlpNode; 16] = Default::default();
                let mut mask = TrieMask::default();
                let mut count = 0;
                for (nibble, child) in (0..).zip(children.iter()) {
                    if let Some(reference) = child.reference() {
                        stack[count] = reference.clone();
                        mask.set_bit(nibble);
                        count += 1;
                    }
                }
                BranchNodeRef::new(&stack[..count], mask).encode(out);
            }
        }
    }
}

pub(super) fn vacant_children() -> Box<[Node; 16]> {
    Box::default()
}

pub(super) fn child_path(mut path: Nibbles, nibble: u8) -> Nibbles {
    path.push(nibble);
    path
}

/// The root hash of a trie with this root node. The root is hashed regardless of its length.
pub(super) fn root_hash(reference: &RlpNode) -> B256 {
    reference.as_hash().unwrap_or_else(|| keccak256(reference))
}

/// An unloaded child, from the reference in its parent's RLP.
fn stored(reference: RlpNode) -> alloy_rlp::Result<Node> {
    const HASH_CODE: u8 = EMPTY_STRING_CODE + 32;
    let sound = match reference.as_slice() {
        [HASH_CODE, hash @ ..] => hash.len() == B256::len_bytes(),
        inline @ [EMPTY_LIST_CODE..=u8::MAX, ..] => inline.len() < HASHED_FROM_BYTES,
        _ => false,
    };
    ensure(sound, "a child that is neither a hash nor a node")?;
    Ok(Node::Stored(reference))
}

fn ensure(condition: bool, otherwise: &'static str) -> alloy_rlp::Result<()> {
    if condition { Ok(()) } else { Err(alloy_rlp::Error::Custom(otherwise)) }
}
