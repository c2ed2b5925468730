//! The part of a state that the execution of one block needs.
//!
//! A `Witness` contains trie nodes, codes and headers of the state before a block, in any order and
//! from any source. Each is found by its hash, and hashes link the header of the parent block to
//! all of them, so the source need not be trusted. The state is read and its root computed by the
//! same code as for the store. Missing data are an error (`MissingNode`, `MissingCode`,
//! `MissingHeader`), never a default value.
//!
//! A `Recording` produces a witness: it is a state of the store that records what an execution
//! reads, and the nodes that the root after it needs.

mod preimages;
mod recording;
mod sparse_state;
#[cfg(test)]
mod tests;

pub use preimages::Witness;
pub use recording::{NeededState, Recording};

use std::sync::Arc;

use crate::error::Result;
use crate::trie::{NodeReader, NodeSource, StateTrie};

/// Nodes of any source.
pub type SparseNodes = Arc<dyn NodeReader + Send + Sync>;
pub type SparseTrie = StateTrie<SparseNodes>;

impl NodeSource for SparseNodes {
    fn with_nodes<T>(&self, read: impl FnOnce(&dyn NodeReader) -> Result<T>) -> Result<T> {
        read(&**self)
    }
}
