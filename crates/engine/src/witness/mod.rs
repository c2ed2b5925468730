//! As much of a state as the execution of one block needs, and no more.
//!
//! A `Witness` is what somebody else says of the state before a block: trie nodes, codes and
//! headers, in any order. Each is found by its hash, and hashes lead from the header of the
//! block's parent to all of them, so nothing in it has to be believed. The state is read and
//! its root computed after changes by the code that does so for the store; what is not in
//! the witness is an error that says what is missing (`MissingNode`, `MissingCode`,
//! `MissingHeader`), never a value.
//!
//! A `Recording` makes one: it is the state of a store that notes what a run reads of it,
//! and which nodes the root after it needs.

mod preimages;
mod recording;
mod sparse_state;
mod sparse_trie;
#[cfg(test)]
mod tests;

pub use preimages::Witness;
pub use recording::{NeededState, Recording};
pub use sparse_trie::SparseTrie;
