//! What is to be committed together, as a value.
//!
//! A batch is made from a store's heads and knows the numbers it will draw, because
//! there is only one writer. Nothing is written before `Store::commit` takes it; one
//! that was made before another commit is refused there.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::B256;

use super::check_row_key;
use crate::error::Result;
use crate::state::Changes;
use crate::trie::NodeWrites;

#[derive(Debug)]
pub struct Batch {
    pub(super) made_at: u64,
    pub(super) last: u64,
    pub(super) settle: bool,
    pub(super) steps: Vec<Step>,
}

/// What a partial block stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The first partial of a block above this sealed one.
    Sealed(u64),
    /// The next index of that partial's block.
    Partial(u64),
    /// The first partial of the block after that partial's, which is not sealed yet;
    /// with the hash the new block names as its parent's.
    Stacked(u64, B256),
}

/// Rows of Python's that belong to a block and are found through a state.
pub type IndexRows = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug)]
pub(super) enum Step {
    Append { number: u64, block: u64, hash: B256, changes: Arc<Changes>, index: IndexRows },
    Extend(NewPartial),
    Seal { partial: u64, hash: B256 },
    Nodes { block: u64, writes: Arc<NodeWrites> },
    Drop { partials: Vec<u64>, reason: String },
    Revive { partials: Vec<u64> },
    Forget { partials: Vec<u64> },
    Rewind { block: u64 },
    Pending(Option<u64>),
    Safe(u64),
    Finalized(u64),
    Note(Vec<u8>),
    Put { key: Vec<u8>, value: Vec<u8> },
    Delete { key: Vec<u8> },
}

#[derive(Debug)]
pub(super) struct NewPartial {
    pub number: u64,
    pub block: u64,
    pub index: u64,
    pub hash: B256,
    pub parent: Parent,
    pub changes: Arc<Changes>,
    pub index_rows: IndexRows,
}

impl Batch {
    pub(super) fn new(made_at: u64) -> Self {
        Self { made_at, last: made_at, settle: false, steps: Vec::new() }
    }

    /// The number that will be drawn next.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Draw a number, for example for the generations of one transaction's changes.
    pub fn draw(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Add a sealed block on top of the latest one, with changes of its own. Gives
    /// the number of its delta.
    pub fn append(
        &mut self,
        block: u64,
        hash: B256,
        changes: impl Into<Arc<Changes>>,
        index: IndexRows,
    ) -> u64 {
        let number = self.draw();
        let changes = changes.into();
        self.steps.push(Step::Append { number, block, hash, changes, index });
        number
    }

    /// Add a partial block. `changes` are relative to `parent`. Gives its number.
    pub fn extend(
        &mut self,
        block: u64,
        index: u64,
        hash: B256,
        parent: Parent,
        changes: impl Into<Arc<Changes>>,
        index_rows: IndexRows,
    ) -> u64 {
        let number = self.draw();
        let changes = changes.into();
        let partial = NewPartial { number, block, index, hash, parent, changes, index_rows };
        self.steps.push(Step::Extend(partial));
        number
    }

    /// Make a partial block the sealed one of its height. No state is written.
    pub fn seal(&mut self, partial: u64, hash: B256) {
        self.steps.push(Step::Seal { partial, hash });
    }

    /// The trie nodes that a block sealed in this batch wrote.
    pub fn nodes(&mut self, block: u64, writes: Arc<NodeWrites>) {
        self.steps.push(Step::Nodes { block, writes });
    }

    /// From this commit on, nobody can reach these partial blocks.
    pub fn drop_partials(&mut self, partials: Vec<u64>, reason: String) {
        self.steps.push(Step::Drop { partials, reason });
    }

    /// Take back a drop: the same partials answer again.
    pub fn revive(&mut self, partials: Vec<u64>) {
        self.steps.push(Step::Revive { partials });
    }

    /// Forget dropped partials for good, before their heights are pruned.
    pub fn forget(&mut self, partials: Vec<u64>) {
        self.steps.push(Step::Forget { partials });
    }

    /// Make `block` the latest again. What was above it is out of reach at once and
    /// cleared away in slices.
    pub fn rewind(&mut self, block: u64) {
        self.steps.push(Step::Rewind { block });
    }

    pub fn pending(&mut self, partial: Option<u64>) {
        self.steps.push(Step::Pending(partial));
    }

    pub fn safe(&mut self, block: u64) {
        self.steps.push(Step::Safe(block));
    }

    pub fn finalized(&mut self, block: u64) {
        self.steps.push(Step::Finalized(block));
    }

    pub fn note(&mut self, note: Vec<u8>) {
        self.steps.push(Step::Note(note));
    }

    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long.
    pub fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        check_row_key(&key)?;
        self.steps.push(Step::Put { key, value });
        Ok(())
    }

    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long.
    pub fn delete(&mut self, key: Vec<u8>) -> Result<()> {
        check_row_key(&key)?;
        self.steps.push(Step::Delete { key });
        Ok(())
    }

    /// Fold everything and write all nodes in the same commit. For import, where
    /// nobody waits for the next flashblock.
    pub fn settle(&mut self) {
        self.settle = true;
    }
}
