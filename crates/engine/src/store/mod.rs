//! The store: one LMDB environment with every retained state.
//!
//! Folded state is flat and keyed by block (`entry`). Changes of recent blocks are deltas
//! (`delta`), which are folded into the flat table once their block is sealed. One row, the heads,
//! records how far folding has come. A commit is one durable transaction and becomes visible as a
//! whole.
//!
//! One process may write, any number may read. `view` reads, `commit` changes heads and blocks, and
//! `maintain` does the background work (folding, pruning, clearing) in bounded slices.

mod ancestor_hashes;
mod batch;
mod branch_trie;
pub mod check;
mod commit;
mod copy;
mod delta;
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
mod load;
mod log_row;
mod maintain;
mod map;
mod nodes;
mod open;
mod pages;
mod partial_trie;
mod pending_node_layers;
mod proof;
mod record;
mod rewind;
mod row_access;
mod snapshot;
mod state;
mod unwind;
mod view;
mod wire;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::folder as test_folder;

pub use batch::{Batch, Parent};
pub use branch_trie::{BranchTrie, StateNodes};
pub use head_trie::{HeadNodes, HeadTrie};
pub use heads::{Anchor, BlockRef, FORMAT, Heads};
pub use log_row::LogRow;
pub(crate) use open::Table;
pub use open::{Mode, Options, Retention, Store};
pub use pages::{FileSize, TableSize};
pub use proof::Proof;
pub use record::{Partial, SealedBlock, Start, Status};
pub use state::State;
pub use view::View;
pub use wire::FORMAT as COMMIT_FORMAT;

use crate::error::{Error, Result};

/// LMDB's longest key. Empty keys are invalid.
const MAX_ROW_KEY: usize = 511;

pub(crate) fn check_row_key(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=MAX_ROW_KEY => Ok(()),
        length => {
            Err(Error::invalid(format!("a row key has 1 to {MAX_ROW_KEY} bytes, not {length}")))
        }
    }
}

/// Converts an LMDB failure to an `Error`.
pub(crate) fn lmdb(error: heed::Error) -> Error {
    use heed::MdbError;
    match error {
        heed::Error::Mdb(MdbError::MapFull) => Error::StoreFull(0),
        heed::Error::Mdb(MdbError::MapResized) => Error::MapOutgrown,
        heed::Error::Mdb(MdbError::ReadersFull) => {
            Error::Store("too many readers; raise max_readers".into())
        }
        heed::Error::Mdb(
            damage @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid),
        ) => Error::StoreDamaged(damage.to_string()),
        heed::Error::Io(error) if disk::is_full(&error) => Error::DiskFull(error.to_string()),
        other => Error::Store(other.to_string()),
    }
}
