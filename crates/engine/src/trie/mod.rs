//! Merkle-Patricia tries whose nodes are stored by path.
//!
//! A node's key is `owner ‖ path`, not its hash. A changed node overwrites its predecessor, so no
//! reference counting or garbage collection is needed, and a store that versions its rows by block
//! also versions the trie. A node whose RLP is shorter than 32 bytes is embedded in its parent and
//! has no row, except the root, which always has one. alloy-trie encodes, decodes and hashes the
//! nodes.
//!
//! This module does not depend on LMDB or blocks: rows are read through `NodeReader` and returned
//! as `NodeWrites`. `leaf` and `state_root` define the contents of the state tries.

pub(crate) mod bulk_root;
mod edit;
pub(crate) mod keccak;
mod key_search;
pub(crate) mod leaf;
mod levels;
pub(crate) mod needs;
mod node;
pub mod ordered_root;
pub(crate) mod paths;
pub(crate) mod proof;
pub(crate) mod proof_nodes;
mod rows;
pub(crate) mod state_root;
mod state_trie;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
pub(crate) mod walk;

pub use crate::node_key::{MissingNode, Owner};
pub use needs::ProofsNeeded;
pub use rows::{NodeReader, NodeWrites};
pub use state_root::{Keys, Place};
pub use state_trie::{NodeSource, StateTrie};

pub(crate) use crate::node_key::{
    is_node_key, is_storage_prefix, node_key, owner_prefix, parse_node_key,
};
pub(crate) use alloy_trie::EMPTY_ROOT_HASH;
pub(crate) use rows::{LayeredNodes, Rows};
pub(crate) use tree::Trie;

/// The minimum RLP length at which a parent refers to a node by hash (yellow paper, appendix D).
pub(crate) const HASHED_FROM_BYTES: usize = 32;
