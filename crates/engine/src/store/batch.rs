//! A batch: the steps of one commit.
//!
//! A batch is created from the heads of a store. There is only one writer, so it knows the commit
//! numbers that it will draw. Nothing is written before `Store::commit`, which refuses a batch that
//! was created before another commit.
//!
//! A batch does not depend on the store that created it: it holds state as entries, which are
//! independent of the progress of folding and pruning. An encoded batch (`wire`) therefore has the
//! same effect on every store with the same commits before it. Steps added after decoding apply to
//! this store only and are not part of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, Bytes};

use super::check_row_key;
use super::entry::{self, Entries};
use crate::error::Result;
use crate::fetched_state::{FetchedState, Row};
use crate::state::Changes;
use crate::trie::NodeWrites;

#[derive(Debug)]
pub struct Batch {
    pub(super) made_at: u64,
    pub(super) last: u64,
    pub(super) fold_all: bool,
    pub(super) steps: Vec<Step>,
    /// The number of steps that were read from the log; `None` for a batch created here.
    pub(super) read: Option<usize>,
}

/// The parent of a partial block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Partial of the block above this sealed block, with the whole of it so far.
    Sealed(u64),
    /// A later index of this partial's block.
    Partial(u64),
    /// Partial of the block after this partial's block, which is not sealed yet, with the whole of
    /// its block so far, and the parent hash that this names.
    Stacked(u64, B256),
}

/// Rows defined by Python that belong to a block and are read through a state.
pub type IndexRows = BTreeMap<Vec<u8>, Vec<u8>>;

/// New codes by hash.
pub(super) type Codes = BTreeMap<B256, Bytes>;

/// Kept small: a decoded batch can have one step for every few bytes.
#[derive(Debug)]
pub(super) enum Step {
    Append(Box<NewBlock>),
    Extend(Box<NewPartial>),
    Seal {
        partial: u64,
        hash: B256,
    },
    Nodes {
        block: u64,
        writes: Arc<NodeWrites>,
    },
    Drop {
        partials: Vec<u64>,
        reason: String,
    },
    Revive {
        partials: Vec<u64>,
    },
    Forget {
        partials: Vec<u64>,
    },
    Rewind {
        block: u64,
    },
    Pending(Option<u64>),
    Safe(u64),
    Finalized(u64),
    Note(Vec<u8>),
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        key: Vec<u8>,
    },
    /// A row that is local to this store.
    PutLocal {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Anchor(Box<NewAnchor>),
    /// Not part of the log: other stores fetch state themselves.
    Learn(NewlyLearned),
}

#[derive(Debug)]
pub(super) struct NewBlock {
    pub number: u64,
    pub block: u64,
    pub hash: B256,
    pub state: NewState,
}

#[derive(Debug)]
pub(super) struct NewlyLearned {
    pub learned: Arc<FetchedState>,
    pub rows: Vec<Row>,
    /// The number of keys received so far, for `FetchedState::stored`.
    pub inserted: u64,
}

/// A first block whose state is unknown.
#[derive(Debug)]
pub(super) struct NewAnchor {
    /// The generation of all accounts that exist at the anchor.
    pub number: u64,
    pub block: u64,
    pub hash: B256,
    pub root: B256,
    pub epoch: u64,
    /// True to replace the existing chain; false if the store has to be empty.
    pub anew: bool,
    /// Index rows only.
    pub state: NewState,
}

#[derive(Debug)]
pub(super) struct NewPartial {
    pub number: u64,
    pub block: u64,
    pub index: u64,
    pub hash: B256,
    pub parent: Parent,
    pub state: NewState,
}

/// The changes of a block relative to the state below it.
#[derive(Debug)]
pub(super) struct NewState {
    /// An error makes the commit fail.
    entries: Result<Entries>,
    pub codes: Codes,
}

impl NewState {
    pub fn new(entries: Entries, codes: Codes) -> Self {
        Self { entries: Ok(entries), codes }
    }

    fn of(changes: &Changes, index: &IndexRows) -> Self {
        Self { entries: entry::entries_of(changes, index), codes: changes.codes.clone() }
    }

    /// True if there are only index rows.
    pub fn is_of_index(&self) -> bool {
        let is_index = |entries: &Entries| entries.keys().all(|key| key[0] == entry::INDEX);
        self.codes.is_empty() && self.entries.as_ref().is_ok_and(is_index)
    }

    pub fn entries(&self) -> Result<&Entries> {
        self.entries.as_ref().map_err(Clone::clone)
    }
}

impl Batch {
    pub(super) fn new(made_at: u64) -> Self {
        Self { made_at, last: made_at, fold_all: false, steps: Vec::new(), read: None }
    }

    /// The commit number before this batch.
    pub fn before(&self) -> u64 {
        self.made_at
    }

    /// The commit number after this batch. A batch that has drawn no number draws one.
    pub fn after(&self) -> u64 {
        self.last.max(self.made_at + 1)
    }

    /// The lowest block of all rewinds in this batch.
    pub fn rewinds_to(&self) -> Option<u64> {
        let block = |step: &Step| match step {
            Step::Rewind { block } => Some(*block),
            _ => None,
        };
        self.steps.iter().filter_map(block).min()
    }

    /// True if the batch puts or deletes rows whose keys begin with `prefix`.
    pub fn changes_rows(&self, prefix: &[u8]) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Put { key, .. } | Step::PutLocal { key, .. } | Step::Delete { key } => {
                key.starts_with(prefix)
            }
            _ => false,
        })
    }

    /// The last note read from the log. It is the writer's note; committing this batch does not
    /// store it, because its deadline refers to the clock of another machine.
    pub fn writers_note(&self) -> Option<&[u8]> {
        let steps = &self.steps[..self.read?];
        steps.iter().rev().find_map(|step| match step {
            Step::Note(note) => Some(&note[..]),
            _ => None,
        })
    }

    /// Marks the fetched state in this batch as stored.
    pub(super) fn note_learned(&self) {
        for step in &self.steps {
            if let Step::Learn(new) = step {
                new.learned.stored(new.inserted);
            }
        }
    }

    /// The next number to be drawn.
    pub fn next(&self) -> u64 {
        self.last + 1
    }

    /// Draws a number, for example for the generations of one transaction's changes.
    pub fn draw(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Adds a sealed block on top of the latest one, with its own changes. Returns the number of
    /// its delta.
    pub fn append(
        &mut self,
        block: u64,
        hash: B256,
        changes: impl Into<Arc<Changes>>,
        index: IndexRows,
    ) -> u64 {
        let number = self.draw();
        let state = NewState::of(&changes.into(), &index);
        self.steps.push(Step::Append(Box::new(NewBlock { number, block, hash, state })));
        number
    }

    /// Starts an empty store at a block whose state is unknown except for its root. Returns the
    /// number drawn for it.
    pub fn begin_at(
        &mut self,
        block: u64,
        hash: B256,
        root: B256,
        epoch: u64,
        index: IndexRows,
    ) -> u64 {
        self.anchor(block, hash, root, epoch, index, false)
    }

    /// Like `begin_at`, but replaces all blocks and states of a store with a partial base.
    pub fn rebase(
        &mut self,
        block: u64,
        hash: B256,
        root: B256,
        epoch: u64,
        index: IndexRows,
    ) -> u64 {
        self.anchor(block, hash, root, epoch, index, true)
    }

    fn anchor(
        &mut self,
        block: u64,
        hash: B256,
        root: B256,
        epoch: u64,
        index: IndexRows,
        anew: bool,
    ) -> u64 {
        let number = self.draw();
        let state = NewState::of(&Changes::default(), &index);
        let new = NewAnchor { number, block, hash, root, epoch, anew, state };
        self.steps.push(Step::Anchor(Box::new(new)));
        number
    }

    /// Stores the state fetched so far with this commit, before any step added later.
    pub fn learn(&mut self, learned: Arc<FetchedState>) {
        let (rows, inserted) = learned.rows();
        if !rows.is_empty() {
            self.steps.push(Step::Learn(NewlyLearned { learned, rows, inserted }));
        }
    }

    /// Adds a partial block. `changes` are relative to `parent`. Returns its number.
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
        let state = NewState::of(&changes.into(), &index_rows);
        let partial = NewPartial { number, block, index, hash, parent, state };
        self.steps.push(Step::Extend(Box::new(partial)));
        number
    }

    /// Seals a partial block at its height. Writes no state.
    pub fn seal(&mut self, partial: u64, hash: B256) {
        self.steps.push(Step::Seal { partial, hash });
    }

    /// Adds the trie nodes written by a block that this batch seals.
    pub fn nodes(&mut self, block: u64, writes: Arc<NodeWrites>) {
        self.steps.push(Step::Nodes { block, writes });
    }

    /// Makes these partial blocks unreachable from this commit on.
    pub fn drop_partials(&mut self, partials: Vec<u64>, reason: String) {
        self.steps.push(Step::Drop { partials, reason });
    }

    /// Undoes a drop: the partials are reachable again.
    pub fn revive(&mut self, partials: Vec<u64>) {
        self.steps.push(Step::Revive { partials });
    }

    /// Removes dropped partials permanently, before their heights are pruned.
    pub fn forget(&mut self, partials: Vec<u64>) {
        self.steps.push(Step::Forget { partials });
    }

    /// Makes `block` the latest again. Everything above it is unreachable at once and is deleted in
    /// slices.
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

    /// Puts a row that affects no results and is local to each store of a log, such as the progress
    /// of an index.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long.
    pub fn put_local(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        check_row_key(&key)?;
        self.steps.push(Step::PutLocal { key, value });
        Ok(())
    }

    /// Folds everything and writes all nodes in the same commit. For imports, where no flashblock
    /// is waiting.
    pub fn fold_all(&mut self) {
        self.fold_all = true;
    }
}
