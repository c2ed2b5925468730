//! Trie nodes in memory: decoded from rows, hashed, and encoded into rows.
//!
//! A changed node and all its ancestors have no `reference` until they are hashed. A node that is
//! not `saved` differs from its row, and so do all its ancestors. Hashing and saving therefore skip
//! unchanged subtrees.

use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, EMPTY_LIST_CODE, EMPTY_STRING_CODE, Encodable, Header};
use alloy_trie::{
    Nibbles,
    nodes::{ExtensionNodeRef, LeafNodeRef, RlpNode, TrieNode},
};

use super::{HASHED_FROM_BYTES, Rows};
use crate::error::Result;
use crate::node_key::MAX_NIBBLES;

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
        match reference.as_hash() {
            Some(hash) => {
                let rlp = rows.load(path, &hash)?;
                self.decode(&rlp, true, path, rows)
            }
            None => {
                let rlp = reference.clone();
                self.decode(&rlp, false, path, rows)
            }
        }
    }

    /// Replaces a reference by the node at `path`, whose RLP has been checked against it.
    pub fn decode(
        &mut self,
        rlp: &[u8],
        has_row: bool,
        path: &Nibbles,
        rows: &Rows<'_>,
    ) -> Result<()> {
        let body = Body::decode(rlp, path.len()).map_err(|why| rows.damaged(path, why))?;
        let reference = self.reference().cloned();
        *self = Self::Loaded(Box::new(Loaded { body, reference, saved: true, has_row }));
        Ok(())
    }

    /// True if `reference` is up to date in this node and its descendants.
    pub fn is_hashed(&self) -> bool {
        !matches!(self, Self::Loaded(loaded) if loaded.reference.is_none())
    }

    /// Updates `reference` in this node and its descendants, one by one. The oracle of
    /// `levels::hash`.
    #[cfg(test)]
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
        if depth < MAX_NIBBLES
            && let Some(children) = children_by_hash(rlp)
        {
            return Ok(Self::Branch(children));
        }
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

    pub fn children_mut(&mut self) -> &mut [Node] {
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
                let none = &[EMPTY_STRING_CODE][..];
                let children = children.iter().map(Node::reference);
                let children = children.map(|child| child.map_or(none, RlpNode::as_slice));
                // The value, which no branch has, is the seventeenth item.
                let items = || children.clone().chain([none]);
                let payload_length = items().map(<[u8]>::len).sum();
                Header { list: true, payload_length }.encode(out);
                items().for_each(|item| out.extend_from_slice(item));
            }
        }
    }
}

/// Decodes a branch whose children are all referred to by hash, as most are, several times as fast
/// as alloy. `None` for any other node.
fn children_by_hash(rlp: &[u8]) -> Option<Box<[Node; 16]>> {
    let mut rest = rlp;
    let Header { list: true, payload_length } = Header::decode(&mut rest).ok()? else {
        return None;
    };
    // Each hash is 32 bytes longer than a missing child.
    if payload_length != rest.len() || payload_length % B256::len_bytes() != ITEMS_OF_BRANCH {
        return None;
    }
    let mut children = vacant_children();
    let mut count = 0;
    for child in children.iter_mut() {
        if let Some(after) = rest.strip_prefix(&[EMPTY_STRING_CODE]) {
            rest = after;
            continue;
        }
        let (reference, after) = rest.split_at_checked(1 + B256::len_bytes())?;
        if reference[0] != HASH_CODE {
            return None;
        }
        *child = Node::Stored(RlpNode::from_raw(reference)?);
        count += 1;
        rest = after;
    }
    (count >= 2 && rest == [EMPTY_STRING_CODE]).then_some(children)
}

/// The children and the value.
const ITEMS_OF_BRANCH: usize = 17;
/// The RLP header of a hash.
const HASH_CODE: u8 = EMPTY_STRING_CODE + 32;

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
