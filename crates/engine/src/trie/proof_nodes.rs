//! Nodes from anywhere, told apart by their hashes; above all those that deletions need.
//!
//! When a branch loses all children but one, that one merges with it: a leaf or an extension
//! gets a longer key, and only a branch stays as it is. So its content is needed, and a
//! proof of the deleted key *before* the change does not have it. The proof that the key is
//! absent *after* the change ends in the merged node. Taking the first digits off its key
//! gives the former node back, which then has the hash that the trie holds: nothing has to
//! be believed, and what fits nowhere is never asked for.
//!
//! If the remaining child is a branch, the proof ends in an extension to it, and the branch
//! itself need not be known. Such an extension counts only if it is reached from the state
//! root after the change: anybody can make one that names any hash.

use alloy_primitives::map::{B256Map, B256Set};
use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, Encodable};
use alloy_trie::{
    Nibbles, TrieAccount,
    nodes::{ExtensionNodeRef, LeafNodeRef, RlpNode, TrieNode},
};

use super::{HASHED_FROM_BYTES, NodeReader, Owner};
use crate::error::Result;

/// No node of a state is longer: a branch has 532 bytes, an account's leaf some 150.
const LONGEST: usize = 1024;

#[derive(Debug, Clone, Default)]
pub struct Hints {
    nodes: B256Map<Vec<u8>>,
    /// Children of extensions that a state root leads to; they are branches.
    branches: B256Set,
}

impl Hints {
    /// Takes in nodes of proofs, and what they may have been before deletions. Those that the
    /// root `after` the changes leads to also tell which nodes are branches.
    pub fn add(&mut self, nodes: &[impl AsRef<[u8]>], after: Option<B256>) {
        nodes.iter().for_each(|node| self.add_node(node.as_ref()));
        if let Some(root) = after {
            self.find_branches(root);
        }
    }

    fn add_node(&mut self, rlp: &[u8]) {
        if rlp.len() > LONGEST {
            return;
        }
        match TrieNode::decode(&mut &*rlp) {
            Ok(TrieNode::Leaf(leaf)) => {
                for from in 1..=leaf.key.len() {
                    let key = leaf.key.slice(from..);
                    self.keep(LeafNodeRef::new(&key, &leaf.value));
                }
            }
            Ok(TrieNode::Extension(extension)) => {
                for from in 1..extension.key.len() {
                    let key = extension.key.slice(from..);
                    self.keep(ExtensionNodeRef::new(&key, extension.child.as_slice()));
                }
            }
            Ok(_) => {}
            Err(_) => return,
        }
        self.nodes.insert(keccak256(rlp), rlp.to_vec());
    }

    /// Walks down from a state root, through the tries of accounts and of their storage.
    fn find_branches(&mut self, root: B256) {
        let mut seen = B256Set::default();
        let mut open = vec![(root, true)];
        while let Some((hash, of_accounts)) = open.pop() {
            let Some(rlp) = self.nodes.get(&hash).filter(|_| seen.insert(hash)) else { continue };
            match TrieNode::decode(&mut &rlp[..]) {
                Ok(TrieNode::Leaf(leaf)) if of_accounts => {
                    let account = TrieAccount::decode(&mut &leaf.value[..]);
                    open.extend(account.map(|account| (account.storage_root, false)));
                }
                Ok(TrieNode::Extension(extension)) => {
                    self.branches.extend(extension.child.as_hash());
                    open.extend(extension.child.as_hash().map(|child| (child, of_accounts)));
                }
                Ok(TrieNode::Branch(branch)) => {
                    let children = branch.stack.iter().filter_map(RlpNode::as_hash);
                    open.extend(children.map(|child| (child, of_accounts)));
                }
                _ => {}
            }
        }
    }

    /// Keeps a node that its parent would refer to by hash.
    fn keep(&mut self, node: impl Encodable) {
        let rlp = alloy_rlp::encode(node);
        if rlp.len() >= HASHED_FROM_BYTES {
            self.nodes.insert(keccak256(&rlp), rlp);
        }
    }

    pub fn clear(&mut self) {
        self.nodes.clear();
        self.branches.clear();
    }
}

/// Nodes of a state, and hints where it has none.
pub struct WithProofNodes<'a> {
    pub nodes: &'a dyn NodeReader,
    pub hints: &'a Hints,
}

impl NodeReader for WithProofNodes<'_> {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        self.nodes.node(owner, path)
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        match self.hints.nodes.get(hash) {
            Some(node) => Ok(Some(node.clone())),
            None => self.nodes.by_hash(hash),
        }
    }

    fn used(&self, hash: &B256, node: &[u8]) {
        self.nodes.used(hash, node);
    }

    fn is_partial(&self) -> bool {
        self.nodes.is_partial()
    }

    fn is_branch(&self, hash: &B256) -> bool {
        self.hints.branches.contains(hash) || self.nodes.is_branch(hash)
    }
}
