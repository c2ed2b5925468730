//! What is to be committed together, as a value.
//!
//! A batch is made from a store's heads and knows the numbers it will draw, because
//! there is only one writer. Nothing is written before `Store::commit` takes it; one
//! that was made before another commit is refused there.
//!
//! It needs nothing of the store that it was made from: state is in it as entries, which do
//! not depend on how far folding or pruning are. So a batch that was written as bytes and read
//! again (`wire`) changes every store with the same commits before it in the same way. What is
//! added to a batch after it was read is of this store alone, and no part of the log.

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
    pub(super) settle: bool,
    pub(super) steps: Vec<Step>,
    /// How many of the steps were read from the log; of a batch that was made here, none.
    pub(super) read: Option<usize>,
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

/// New code by its hash.
pub(super) type Codes = BTreeMap<B256, Bytes>;

/// Small: a batch that is read from bytes has one for every few of them.
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
    /// A row that each store has for itself.
    PutLocal {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Anchor(Box<NewAnchor>),
    /// Of this store alone: another one of the log learns by itself.
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
    /// How far the rows go.
    pub came: u64,
}

/// A block to begin at, of whose state nothing is known yet.
#[derive(Debug)]
pub(super) struct NewAnchor {
    /// The generation of all accounts that it has.
    pub number: u64,
    pub block: u64,
    pub hash: B256,
    pub root: B256,
    pub epoch: u64,
    /// In place of all that there is; else in an empty store.
    pub anew: bool,
    /// Rows of the index.
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

/// What a block adds to the state below it.
#[derive(Debug)]
pub(super) struct NewState {
    /// Or why there are none; the commit is refused for it.
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

    /// Whether there is nothing but rows of the index.
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
        Self { made_at, last: made_at, settle: false, steps: Vec::new(), read: None }
    }

    /// The commit that it follows.
    pub fn before(&self) -> u64 {
        self.made_at
    }

    /// The commit that it makes. One is drawn for a batch that has drawn none.
    pub fn after(&self) -> u64 {
        self.last.max(self.made_at + 1)
    }

    /// The lowest block that it rewinds to.
    pub fn rewinds_to(&self) -> Option<u64> {
        let block = |step: &Step| match step {
            Step::Rewind { block } => Some(*block),
            _ => None,
        };
        self.steps.iter().filter_map(block).min()
    }

    /// Whether it puts or deletes rows whose keys begin so.
    pub fn changes_rows(&self, prefix: &[u8]) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Put { key, .. } | Step::PutLocal { key, .. } | Step::Delete { key } => {
                key.starts_with(prefix)
            }
            _ => false,
        })
    }

    /// The last note in what was read from the log. It is the writer's, and no commit of this
    /// batch writes it: its clock is another machine's.
    pub fn writers_note(&self) -> Option<&[u8]> {
        let steps = &self.steps[..self.read?];
        steps.iter().rev().find_map(|step| match step {
            Step::Note(note) => Some(&note[..]),
            _ => None,
        })
    }

    /// What it learned is stored.
    pub(super) fn note_learned(&self) {
        for step in &self.steps {
            if let Step::Learn(new) = step {
                new.learned.stored(new.came);
            }
        }
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
        let state = NewState::of(&changes.into(), &index);
        self.steps.push(Step::Append(Box::new(NewBlock { number, block, hash, state })));
        number
    }

    /// Begin an empty store at a block of whose state nothing is known but its root. Gives the
    /// number that is drawn for it.
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

    /// The same in place of all blocks and states of a store with a partial base.
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

    /// Store what was learned by then with this commit, before anything that is added later.
    pub fn learn(&mut self, learned: Arc<FetchedState>) {
        let (rows, came) = learned.rows();
        if !rows.is_empty() {
            self.steps.push(Step::Learn(NewlyLearned { learned, rows, came }));
        }
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
        let state = NewState::of(&changes.into(), &index_rows);
        let partial = NewPartial { number, block, index, hash, parent, state };
        self.steps.push(Step::Extend(Box::new(partial)));
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

    /// A row that no answer depends on and that each store of a log has for itself, such as
    /// how far an index has come.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a key that is empty or too long.
    pub fn put_local(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<()> {
        check_row_key(&key)?;
        self.steps.push(Step::PutLocal { key, value });
        Ok(())
    }

    /// Fold everything and write all nodes in the same commit. For import, where
    /// nobody waits for the next flashblock.
    pub fn settle(&mut self) {
        self.settle = true;
    }
}
