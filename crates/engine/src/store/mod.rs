//! The store: one LMDB environment with every retained state.
//!
//! Sealed state is flat and keyed by block (`entry`), the changes of blocks that are
//! still moving are deltas (`delta`), and one row, the heads, says which is which.
//! A commit is one durable transaction; nothing outside it can be seen half done.
//!
//! One process may write, any number may read. Reading is `view`, changing heads and
//! blocks is `commit`, and the work that follows behind (folding, pruning, clearing)
//! is `maintain`, always in bounded slices.

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
mod log_sections;
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
mod view;
mod wire;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::folder as test_folder;

pub use batch::{Batch, Parent};
pub use branch_trie::{BranchTrie, StateNodes};
pub use head_trie::HeadTrie;
pub use heads::{Anchor, BlockRef, FORMAT, Heads};
pub use log_row::LogRow;
pub use open::{Mode, Options, Retention, Store};
pub use pages::{FileSize, TableSize};
pub use proof::Proof;
pub use record::{Partial, SealedBlock, Start, Status};
pub use state::State;
pub use view::View;
pub use wire::FORMAT as COMMIT_FORMAT;

use crate::error::{Error, Result};

/// LMDB's limit; an empty key is no key.
const MAX_ROW_KEY: usize = 511;

fn check_row_key(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=MAX_ROW_KEY => Ok(()),
        length => {
            Err(Error::invalid(format!("a row key has 1 to {MAX_ROW_KEY} bytes, not {length}")))
        }
    }
}

/// Any failure of LMDB as one of ours.
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
