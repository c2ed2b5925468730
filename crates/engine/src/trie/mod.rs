//! Merkle-Patricia tries whose nodes are stored under their path.
//!
//! A node's place is `owner ‖ path`, not its hash: a changed node replaces its
//! predecessor, nothing has to be counted or collected, and a store that versions
//! its rows by block versions the trie with them. A node whose RLP is under 32
//! bytes lives inside its parent and has no row, except the root, which always has
//! one. Encoding, decoding and hashing of nodes are alloy-trie's.
//!
//! Nothing here knows of LMDB or blocks: rows come through `NodeReader` and leave
//! as `NodeWrites`. What the leaves of the state tries mean is in `leaf` and
//! `state_root`.

pub(crate) mod bulk_root;
mod edit;
pub(crate) mod keccak;
mod key;
mod key_search;
pub(crate) mod leaf;
pub(crate) mod needs;
mod node;
pub mod ordered_root;
pub(crate) mod paths;
pub(crate) mod proof;
pub(crate) mod proof_nodes;
mod rows;
pub(crate) mod state_root;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
pub(crate) mod walk;

pub use key::Owner;
pub use needs::{Keys, Place, ProofsNeeded};
pub use rows::{MissingNode, NodeReader, NodeWrites};

pub(crate) use alloy_trie::EMPTY_ROOT_HASH;
pub(crate) use key::{is_node_key, is_storage_prefix, node_key, owner_prefix, parse_node_key};
pub(crate) use rows::{LayeredNodes, Rows};
pub(crate) use tree::Trie;

/// The shortest RLP that its parent refers to by hash (yellow paper, appendix D).
pub(crate) const HASHED_FROM_BYTES: usize = 32;
