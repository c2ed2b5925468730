//! The store: one LMDB environment with every retained state.
//!
//! Folded state is flat and keyed by block (`entry`). Changes of recent blocks are deltas
//! (`delta`), which are folded into the flat table once their block is sealed. One row, the heads,
//! records how far folding has come. A commit is one durable transaction and becomes visible as a
//! whole.
//!
//! One process may write, any number may read. `view` reads, `commit` changes heads and blocks, and
//! `maintain` does the background work (folding, pruning, clearing) in bounded slices.

mod batch;
mod beside;
mod branch_trie;
pub mod check;
mod commit;
mod copy;
mod delta;
mod delta_keys;
mod disk;
mod entry;
mod environment;
mod flat_proof;
mod floors;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod head_trie;
mod heads;
pub mod import;
mod learned_nodes;
mod learning;
mod length;
mod log_row;
mod maintain;
mod map;
mod nodes;
mod note_file;
mod notes;
mod open;
mod pages;
mod partial_trie;
mod pending_node_layers;
mod proof;
mod record;
mod rewind;
mod snapshot;
mod state;
mod tables;
mod unwind;
mod view;
mod wire;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::folder as test_folder;

pub use batch::{Batch, Parent};
pub use branch_trie::{BranchTrie, StateNodes};
pub(crate) use disk::lmdb;
pub use floors::Retention;
pub use head_trie::{HeadNodes, HeadTrie};
pub use heads::{Anchor, BlockRef, FORMAT, Heads};
pub use log_row::LogRow;
pub use open::{Mode, Options, Store};
pub use pages::{FileSize, TableSize};
pub use proof::Proof;
pub use record::{Partial, SealedBlock, Start, Status};
pub use state::State;
pub(crate) use tables::{Table, check_row_key};
pub use view::View;
pub use wire::FORMAT as COMMIT_FORMAT;
