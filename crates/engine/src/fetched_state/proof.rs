//! Verifies proofs from other endpoints: nodes from a root to a key, or to where it is absent.
//!
//! Number and length of the nodes are checked before anything is hashed. Every node must match its
//! parent's reference, and none may be left over. A node of under 32 bytes is embedded in its
//! parent; some endpoints list it separately, which is accepted if it is identical. A key is absent
//! if a branch has no child for it, or a leaf or extension diverges from it.

use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_rlp::Decodable;
use alloy_trie::{
    EMPTY_ROOT_HASH, Nibbles, TrieAccount,
    nodes::{RlpNode, TrieNode},
};

use crate::error::{Error, Result};

/// Keys have 64 nibbles, so no path is longer, including listed embedded nodes.
const MOST_NODES: usize = 66;
/// A branch with sixteen hashes has 532 bytes; no leaf of a state trie is longer.
pub(super) const LONGEST_NODE: usize = 1024;

/// The result of a proof: the value of the leaf, and the nodes that are referenced by hash.
pub(super) struct ProvenValue {
    pub value: Option<Vec<u8>>,
    pub nodes: Vec<(B256, Bytes)>,
}

/// Checks that `nodes` prove the value of the key or its absence.
pub(super) fn check(root: B256, key: &Nibbles, nodes: &[Bytes]) -> Result<ProvenValue> {
    if nodes.len() > MOST_NODES || nodes.iter().any(|node| node.len() > LONGEST_NODE) {
        return Err(bad("more or longer nodes than a proof has"));
    }
    let mut way = Way { nodes, next: 0, hashed: Vec::new() };
    let value = way.walk(root, key)?;
    if way.next != nodes.len() {
        return Err(bad("nodes after the end of the way"));
    }
    Ok(ProvenValue { value, nodes: way.hashed })
}

struct Way<'n> {
    nodes: &'n [Bytes],
    next: usize,
    hashed: Vec<(B256, Bytes)>,
}

impl Way<'_> {
    fn walk(&mut self, root: B256, key: &Nibbles) -> Result<Option<Vec<u8>>> {
        if root == EMPTY_ROOT_HASH {
            // Most endpoints omit the single node of an empty trie.
            if self.nodes.first().is_some_and(|node| node[..] == [alloy_rlp::EMPTY_STRING_CODE]) {
                self.next += 1;
            }
            return Ok(None);
        }
        let mut node = self.hashed_node(root)?;
        let mut depth = 0;
        loop {
            match follow(node, &key.slice(depth..))? {
                Followed::Value(value) => return Ok(value),
                Followed::Child(child, step) => {
                    depth += step;
                    node = self.child(&child)?;
                }
            }
        }
    }

    fn child(&mut self, reference: &RlpNode) -> Result<TrieNode> {
        if let Some(hash) = reference.as_hash() {
            return self.hashed_node(hash);
        }
        if self.nodes.get(self.next).is_some_and(|node| node[..] == reference[..]) {
            self.next += 1;
        }
        decode(reference)
    }

    fn hashed_node(&mut self, hash: B256) -> Result<TrieNode> {
        let node = self.nodes.get(self.next).ok_or_else(|| bad("it ends before the key does"))?;
        if keccak256(node) != hash {
            return Err(bad("a node has another hash than its parent says"));
        }
        self.next += 1;
        self.hashed.push((hash, node.clone()));
        decode(node)
    }
}

/// The next step from a node: the key's value or absence, or a child.
enum Followed {
    Value(Option<Vec<u8>>),
    /// With the number of nibbles consumed.
    Child(RlpNode, usize),
}

fn follow(node: TrieNode, rest: &Nibbles) -> Result<Followed> {
    Ok(match node {
        TrieNode::EmptyRoot => return Err(bad("an empty node within a trie")),
        TrieNode::Leaf(leaf) if leaf.key == *rest => Followed::Value(Some(leaf.value)),
        TrieNode::Leaf(_) => Followed::Value(None),
        TrieNode::Extension(extension) if extension.key.is_empty() => {
            return Err(bad("an extension by nothing"));
        }
        TrieNode::Extension(extension) if rest.starts_with(&extension.key) => {
            Followed::Child(extension.child, extension.key.len())
        }
        TrieNode::Extension(_) => Followed::Value(None),
        TrieNode::Branch(branch) => {
            let nibble = rest.first().ok_or_else(|| bad("a branch below the last nibble"))?;
            if !branch.state_mask.is_bit_set(nibble) {
                return Ok(Followed::Value(None));
            }
            let below = (0..nibble).filter(|it| branch.state_mask.is_bit_set(*it)).count();
            let child = branch.stack.get(below).cloned();
            Followed::Child(child.ok_or_else(|| bad("a branch without its child"))?, 1)
        }
    })
}

/// Looks up a key in nodes proven earlier. `None` if a node on the path is unknown.
pub(super) fn recall<'n>(
    root: B256,
    key: &Nibbles,
    known: impl Fn(&B256) -> Option<&'n Bytes>,
) -> Result<Option<Option<Vec<u8>>>> {
    if root == EMPTY_ROOT_HASH {
        return Ok(Some(None));
    }
    let Some(first) = known(&root) else { return Ok(None) };
    let mut node = decode(first)?;
    let mut depth = 0;
    loop {
        match follow(node, &key.slice(depth..))? {
            Followed::Value(value) => return Ok(Some(value)),
            Followed::Child(child, step) => {
                depth += step;
                node = match child.as_hash() {
                    None => decode(&child)?,
                    Some(hash) => match known(&hash) {
                        Some(below) => decode(below)?,
                        None => return Ok(None),
                    },
                };
            }
        }
    }
}

fn decode(rlp: &[u8]) -> Result<TrieNode> {
    let mut rest = rlp;
    let node = TrieNode::decode(&mut rest).map_err(|why| bad(format!("no trie node: {why}")))?;
    if rest.is_empty() { Ok(node) } else { Err(bad("bytes after a node")) }
}

/// Decodes an account leaf.
pub(super) fn account(leaf: &[u8]) -> Result<TrieAccount> {
    let mut rest = leaf;
    match TrieAccount::decode(&mut rest) {
        Ok(account) if rest.is_empty() => Ok(account),
        _ => Err(bad("a leaf that is no account")),
    }
}

/// Decodes a slot leaf, whose value is never zero.
pub(super) fn slot(leaf: &[u8]) -> Result<U256> {
    let mut rest = leaf;
    match U256::decode(&mut rest) {
        Ok(value) if rest.is_empty() && !value.is_zero() => Ok(value),
        _ => Err(bad("a leaf that is no slot")),
    }
}

pub(super) fn bad(why: impl Into<String>) -> Error {
    Error::BadProof(why.into())
}
