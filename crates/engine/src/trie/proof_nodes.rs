//! Trie nodes from proofs, indexed by hash, including the sibling nodes that deletions need.
//!
//! If a deletion leaves a branch with one child, the child merges with the branch: a leaf or
//! extension gets a longer key, only a branch stays unchanged. The child's content is therefore
//! required, but a proof of the deleted key *before* the change does not contain it. The proof of
//! the key's absence *after* the change ends in the merged node. Removing leading nibbles from its
//! key yields the former node, whose hash is in the trie. The result needs no trust, because nodes
//! are found by hash only.
//!
//! If the remaining child is a branch, the proof ends in an extension to it, and the branch itself
//! is not required. Such an extension is accepted only if it is reachable from the state root after
//! the change, since anyone can construct one with an arbitrary child hash.

use alloy_primitives::map::{B256Map, B256Set};
use alloy_primitives::{B256, keccak256};
use alloy_rlp::{Decodable, Encodable};
use alloy_trie::{
    Nibbles, TrieAccount,
    nodes::{ExtensionNodeRef, LeafNodeRef, RlpNode, TrieNode},
};

use super::{HASHED_FROM_BYTES, NodeReader, Owner};
use crate::error::Result;

/// The maximum length of a state trie node; a branch has 532 bytes, an account leaf about 150.
const LONGEST: usize = 1024;

#[derive(Debug, Clone, Default)]
pub struct Hints {
    nodes: B256Map<Vec<u8>>,
    /// Children of extensions reachable from a state root; they are branches.
    branches: B256Set,
}

impl Hints {
    /// Adds proof nodes and the nodes that they may have been before deletions. If `after` is the
    /// state root after the changes, also marks the branches below extensions reachable from it.
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

    /// Traverses the account trie and the storage tries from a state root.
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

    /// Stores a node if it is long enough to be referenced by hash.
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

/// The nodes of a state, supplemented by hints.
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
