//! Applies a batch: each step is checked against the heads, then written.
//!
//! A step that is not valid refuses the whole batch with a reason, and nothing of it is stored.
//! Steps do not write flat entries of blocks that can still be reorganized; that is folding, in
//! `maintain`. Rewinding is in `rewind`.
//!
//! The validity of a step depends only on the commits before it, never on the progress of
//! maintenance (`floors`), so every store of a log accepts what its writer accepted.

use alloy_primitives::B256;
use heed::RwTxn;

use super::batch::{Batch, Codes, NewAnchor, NewBlock, NewPartial, NewlyLearned, Parent, Step};
use super::floors::{Floors, Keep};
use super::heads::{Anchor, BlockRef, Heads};
use super::lmdb;
use super::log_row::LogRow;
use super::maintain;
use super::open::Store;
use super::pending_node_layers::PendingNodeLayers;
use super::record::{Garbage, Partial, SealedBlock, Start, Status};
use super::tables::Tables;
use super::view::View;
use crate::error::{Error, Result};
use crate::store::delta;
use crate::store::entry::{self, Entries};

impl Store {
    /// Creates a batch on top of the last commit.
    ///
    /// # Errors
    ///
    /// `StoreClosed`, `StoreDamaged`, `Store`.
    pub fn batch(&self) -> Result<Batch> {
        self.last_commit().map(Batch::new)
    }

    /// Applies `batch` in one durable transaction and returns the new heads.
    ///
    /// # Errors
    ///
    /// `StaleBatch`, `RefusedCommit` with the reason, `StoreFull`, `DiskFull`, `StoreReadOnly`, or
    /// any other store error. Nothing of the batch is stored in that case.
    pub fn commit(&self, mut batch: Batch) -> Result<Heads> {
        self.commit_if(&mut batch, None, || Ok(()))
    }

    /// Like `commit`, with the position of the commit in a log, and only if `ask` succeeds. `ask`
    /// is called at most once, after all steps are applied and before the transaction is durable.
    /// Other writes wait for it; reads do not. A commit without `log` removes the store from its
    /// log.
    ///
    /// # Errors
    ///
    /// Those of `commit`, and the error of `ask`; the batch can then be committed again.
    pub fn commit_if(
        &self,
        batch: &mut Batch,
        log: Option<&LogRow>,
        ask: impl FnOnce() -> Result<()>,
    ) -> Result<Heads> {
        batch.last = batch.after();
        let mut layers = self.layers()?;
        if log.is_none()
            && let Some(base) = self.base_of_note(batch)?
        {
            ask()?;
            return self.write_note(base, batch);
        }
        let mut ask = Some(ask);
        let before = self.view_to_rewind([&*batch])?;
        let keep = self.keep();
        let (heads, next_layers) = self.write(|txn| {
            let mut next_layers = layers.clone();
            let heads = self.apply(txn, batch, &keep, before.as_ref(), &mut next_layers)?;
            self.tables.put_log_row(txn, log)?;
            // Called once: the result also holds for the retry after the map was enlarged.
            ask.take().map_or(Ok(()), |ask| ask())?;
            Ok((heads, next_layers))
        })?;
        *layers = next_layers;
        batch.note_learned();
        Ok(heads)
    }

    /// Applies commits of a log in one durable transaction, with a single disk sync. Readers see
    /// only the last of them. Each must follow the one before it.
    ///
    /// # Errors
    ///
    /// Those of `commit`, and nothing is stored in that case; `InvalidArgument` if `batches` is
    /// empty.
    pub fn commit_all(&self, mut batches: Vec<(Batch, LogRow)>) -> Result<Heads> {
        for (batch, _) in &mut batches {
            batch.last = batch.after();
        }
        let mut layers = self.layers()?;
        let before = self.view_to_rewind(batches.iter().map(|(batch, _)| batch))?;
        let keep = self.keep();
        let (heads, next_layers) = self.write(|txn| {
            let mut next_layers = layers.clone();
            let mut heads = None;
            for (batch, row) in &batches {
                heads = Some(self.apply(txn, batch, &keep, before.as_ref(), &mut next_layers)?);
                self.tables.put_log_row(txn, Some(row))?;
            }
            let heads = heads.ok_or_else(|| Error::InvalidArgument("no commit".to_owned()))?;
            Ok((heads, next_layers))
        })?;
        *layers = next_layers;
        batches.iter().for_each(|(batch, _)| batch.note_learned());
        Ok(heads)
    }

    /// A view of the states that a rewind reads. It is opened before the transaction begins, as
    /// `Environment::using` requires.
    fn view_to_rewind<'b>(
        &self,
        batches: impl IntoIterator<Item = &'b Batch>,
    ) -> Result<Option<View>> {
        let is_rewind = batches.into_iter().any(|batch| batch.rewinds_to().is_some());
        is_rewind.then(|| self.view()).transpose()
    }

    /// Writes the steps of a batch and the resulting heads.
    fn apply(
        &self,
        txn: &mut RwTxn,
        batch: &Batch,
        keep: &Keep,
        before: Option<&View>,
        layers: &mut PendingNodeLayers,
    ) -> Result<Heads> {
        let heads = self.with_note(self.tables.heads(txn)?);
        if heads.commit != batch.made_at {
            return Err(Error::StaleBatch { made_at: batch.made_at, now: heads.commit });
        }
        let known_floors = self.tables.floors(txn, &heads)?;
        let mut floors = known_floors;
        if let Some(latest) = heads.latest {
            // A hold may have been released since the last commit.
            floors.raise(latest.number, keep);
        }
        let tables = self.tables;
        let mut applying = Applying { tables, txn, heads, layers, floors, keep, before };
        for (place, step) in batch.steps.iter().enumerate() {
            applying.apply(step, Some(place) < batch.read)?;
        }
        let (mut heads, floors) = (applying.heads, applying.floors);
        heads.commit = batch.last;
        if batch.fold_all {
            maintain::fold_all(&self.tables, txn, &mut heads, layers)?;
        }
        self.tables.put_heads(txn, &heads)?;
        if floors != known_floors {
            self.tables.put_floors(txn, &floors)?;
        }
        Ok(heads)
    }
}

/// A batch while it is being applied.
pub(super) struct Applying<'a, 'e> {
    pub(super) tables: Tables,
    pub(super) txn: &'a mut RwTxn<'e>,
    pub(super) heads: Heads,
    pub(super) layers: &'a mut PendingNodeLayers,
    pub(super) floors: Floors,
    pub(super) keep: &'a Keep,
    /// The store before the commit, if a step may need older states.
    pub(super) before: Option<&'a View>,
}

impl Applying<'_, '_> {
    fn apply(&mut self, step: &Step, of_the_log: bool) -> Result<()> {
        match step {
            Step::Append(block) => self.append(block),
            Step::Extend(partial) => self.extend(partial),
            Step::Seal { partial, hash } => self.seal(*partial, *hash),
            Step::Nodes { block, writes } => {
                let latest = self.heads.latest.map(|latest| latest.number);
                check(latest == Some(*block), || {
                    format!("nodes of {block}, latest is {latest:?}")
                })?;
                self.layers.push(*block, writes.clone());
                Ok(())
            }
            Step::Drop { partials, reason } => self.drop_partials(partials, reason),
            Step::Revive { partials } => self.revive(partials),
            Step::Forget { partials } => self.forget(partials),
            Step::Rewind { block } => self.rewind(*block),
            Step::Pending(partial) => self.pending(*partial),
            Step::Safe(block) => {
                self.heads.safe = Some(self.known(*block)?);
                Ok(())
            }
            Step::Finalized(block) => {
                self.heads.finalized = Some(self.known(*block)?);
                Ok(())
            }
            Step::Note(_) if of_the_log => Ok(()),
            Step::Note(note) => {
                self.heads.note.clone_from(note);
                Ok(())
            }
            Step::Put { key, value } | Step::PutLocal { key, value } => {
                self.tables.rows.put(self.txn, key, value).map_err(lmdb)
            }
            Step::Delete { key } => {
                self.tables.rows.delete(self.txn, key).map_err(lmdb)?;
                Ok(())
            }
            Step::Anchor(anchor) => self.anchor(anchor),
            Step::Learn(NewlyLearned { learned, rows, .. }) => {
                let epoch = learned.epoch;
                let stored = self.tables.put_learned(self.txn, &self.heads, epoch, rows)?;
                check(stored.is_some(), || format!("the base is not of epoch {epoch}"))
            }
        }
    }

    fn append(&mut self, new: &NewBlock) -> Result<()> {
        let NewBlock { number, block, hash, .. } = *new;
        let entries = new.state.entries()?;
        self.put_codes(&new.state.codes)?;
        let Some(latest) = self.heads.latest else {
            return self.first(block, hash, entries);
        };
        check(Some(block) == latest.number.checked_add(1), || {
            format!("block {block} cannot follow block {}", latest.number)
        })?;
        delta::write(self.tables.deltas, self.txn, number, entries)?;
        self.make_latest(block, SealedBlock { hash, delta: number })
    }

    fn anchor(&mut self, new: &NewAnchor) -> Result<()> {
        let NewAnchor { number, block, hash, root, epoch, anew, .. } = *new;
        let entries = new.state.entries()?;
        match self.heads.anchor {
            Some(before) if anew => {
                check(epoch > before.epoch, || {
                    format!("epoch {epoch} cannot follow epoch {}", before.epoch)
                })?;
                self.forget_chain()?;
            }
            None if anew => return Err(refused("the store has a complete base")),
            _ => check(self.heads.latest.is_none(), || "the store has blocks already".into())?,
        }
        self.heads.anchor = Some(Anchor { number: block, hash, root, epoch, generation: number });
        self.first(block, hash, entries)?;
        (self.heads.nodes, self.heads.nodes_earliest) = (Some(block), block);
        Ok(())
    }

    /// Deletes the whole chain, except for data addressed by hash and rows of Python.
    fn forget_chain(&mut self) -> Result<()> {
        let Tables { flat, deltas, sealed, partials, nodes, node_changes, trash, .. } = self.tables;
        for table in [flat, deltas, sealed, partials, nodes, node_changes, trash] {
            table.clear(self.txn).map_err(lmdb)?;
        }
        for cursor in maintain::CURSORS {
            self.tables.meta.delete(self.txn, cursor).map_err(lmdb)?;
        }
        self.tables.forget_learned_blocks(self.txn)?;
        *self.layers = PendingNodeLayers::default();
        let heads = &mut self.heads;
        (heads.latest, heads.safe, heads.finalized, heads.pending) = (None, None, None, None);
        Ok(())
    }

    /// Adds the first block of a store: its state is written directly into the flat table.
    fn first(&mut self, block: u64, hash: B256, entries: &Entries) -> Result<()> {
        for (key, value) in entries {
            let key = entry::versioned(key, block);
            self.tables.flat.put(self.txn, &key, value).map_err(lmdb)?;
        }
        (self.heads.earliest, self.heads.folded) = (block, block);
        self.floors = Floors { states: block, partials: 0 };
        self.make_latest(block, SealedBlock { hash, delta: 0 })
    }

    fn make_latest(&mut self, block: u64, sealed: SealedBlock) -> Result<()> {
        check(block < u64::MAX, || format!("no block can follow block {block}"))?;
        let key = block.to_be_bytes();
        self.tables.sealed.put(self.txn, &key, &sealed.encode()).map_err(lmdb)?;
        self.heads.latest = Some(BlockRef { number: block, hash: sealed.hash });
        self.floors.raise(block, self.keep);
        Ok(())
    }

    fn extend(&mut self, new: &NewPartial) -> Result<()> {
        let NewPartial { number, block, index, hash, .. } = *new;
        let (start, parent_hash) = self.place(new)?;
        let entries = new.state.entries()?;
        self.put_codes(&new.state.codes)?;
        let deltas = self.tables.deltas;
        match new.parent {
            Parent::Partial(before) => {
                delta::write_merged(deltas, self.txn, number, before, entries)?;
            }
            Parent::Sealed(_) | Parent::Stacked(..) => {
                delta::write(deltas, self.txn, number, entries)?;
            }
        }
        let status = Status::Live;
        self.put_partial(number, &Partial { block, index, hash, start, parent_hash, status })
    }

    /// The start of a new partial, and the parent hash that its block names. A partial on the block
    /// below has its whole block: it is the first, or that block was executed again.
    fn place(&self, new: &NewPartial) -> Result<(Start, B256)> {
        let NewPartial { block, index, .. } = *new;
        let (fits, start, parent_hash) = match new.parent {
            Parent::Sealed(below) => {
                (Some(block) == below.checked_add(1), Start::Sealed(below), self.known(below)?.hash)
            }
            Parent::Partial(number) => {
                let before = self.reachable(number)?;
                // Indices in between may be missing: those without changes are not stored.
                let fits = block == before.block && index > before.index;
                (fits, before.start, before.parent_hash)
            }
            Parent::Stacked(number, parent_hash) => {
                let below = self.reachable(number)?.block;
                (Some(block) == below.checked_add(1), Start::Partial(number), parent_hash)
            }
        };
        check(fits, || format!("partial {block}.{index} cannot stand on {:?}", new.parent))?;
        Ok((start, parent_hash))
    }

    fn seal(&mut self, number: u64, hash: B256) -> Result<()> {
        let mut partial = self.reachable(number)?;
        let latest = self.heads.latest.ok_or_else(|| refused("the store is empty"))?;
        check(partial.block == latest.number + 1, || {
            format!("partial {number} of block {} cannot follow {}", partial.block, latest.number)
        })?;
        let stands_on_latest = partial.parent_hash == latest.hash
            && match partial.start {
                Start::Sealed(_) => true,
                Start::Partial(below) => self.sealed(latest.number)?.delta == below,
            };
        check(stands_on_latest, || format!("partial {number} does not stand on the latest block"))?;
        partial.status = Status::Sealed;
        self.put_partial(number, &partial)?;
        self.make_latest(partial.block, SealedBlock { hash, delta: number })
    }

    /// Skips numbers that were drawn but have no record: those partials may already be removed.
    fn drop_partials(&mut self, numbers: &[u64], reason: &str) -> Result<()> {
        for &number in numbers {
            let found = self.find_partial(number)?;
            if found.is_none() && number <= self.heads.commit {
                continue;
            }
            let mut partial = found.ok_or(Error::UnknownPartial(number))?;
            check(partial.status != Status::Sealed, || format!("partial {number} is sealed"))?;
            if partial.status == Status::Rewound {
                continue;
            }
            partial.status = Status::Dropped { reason: reason.to_owned() };
            self.put_partial(number, &partial)?;
            if self.heads.pending == Some(number) {
                self.heads.pending = None;
            }
        }
        Ok(())
    }

    fn revive(&mut self, numbers: &[u64]) -> Result<()> {
        for &number in numbers {
            let mut partial = self.partial(number)?;
            check(partial.status != Status::Sealed, || format!("partial {number} is sealed"))?;
            check(partial.status != Status::Rewound, || format!("partial {number} was rewound"))?;
            partial.status = Status::Live;
            self.put_partial(number, &partial)?;
        }
        Ok(())
    }

    /// The record is deleted before the delta, so a partial with a record has a complete delta.
    fn forget(&mut self, numbers: &[u64]) -> Result<()> {
        for &number in numbers {
            let Some(partial) = self.find_partial(number)? else { continue };
            let is_dropped = matches!(partial.status, Status::Dropped { .. } | Status::Rewound);
            check(is_dropped, || format!("partial {number} is not dropped"))?;
            self.tables.partials.delete(self.txn, &number.to_be_bytes()).map_err(lmdb)?;
            self.tables.schedule_deletion(self.txn, Garbage::Delta(number))?;
        }
        Ok(())
    }

    fn pending(&mut self, number: Option<u64>) -> Result<()> {
        if let Some(number) = number {
            let partial = self.partial(number)?;
            check(partial.status == Status::Live, || format!("partial {number} is not live"))?;
            let latest = self.heads.latest.map(|latest| latest.number);
            check(Some(partial.block) > latest, || {
                format!("partial {number} of block {} is not above {latest:?}", partial.block)
            })?;
        }
        self.heads.pending = number;
        Ok(())
    }

    fn put_codes(&mut self, codes: &Codes) -> Result<()> {
        for (hash, code) in codes {
            if self.tables.codes.get(self.txn, hash.as_slice()).map_err(lmdb)?.is_none() {
                self.tables.codes.put(self.txn, hash.as_slice(), code).map_err(lmdb)?;
            }
        }
        Ok(())
    }

    pub(super) fn put_partial(&mut self, number: u64, partial: &Partial) -> Result<()> {
        let key = number.to_be_bytes();
        self.tables.partials.put(self.txn, &key, &partial.encode()).map_err(lmdb)
    }

    pub(super) fn partial(&self, number: u64) -> Result<Partial> {
        self.find_partial(number)?.ok_or(Error::UnknownPartial(number))
    }

    /// `None` for a partial below the floor, even if maintenance has not removed it yet.
    fn find_partial(&self, number: u64) -> Result<Option<Partial>> {
        let found = self.tables.partial(self.txn, number)?;
        Ok(found.filter(|partial| partial.block >= self.floors.partials))
    }

    fn reachable(&self, number: u64) -> Result<Partial> {
        let partial = self.partial(number)?;
        match partial.status {
            Status::Dropped { .. } | Status::Rewound => Err(Error::DroppedPartial(number)),
            _ => Ok(partial),
        }
    }

    pub(super) fn sealed(&self, block: u64) -> Result<SealedBlock> {
        self.tables.sealed_block(self.txn, block)?.ok_or(Error::UnknownBlock(block))
    }

    pub(super) fn known(&self, block: u64) -> Result<BlockRef> {
        Ok(BlockRef { number: block, hash: self.sealed(block)?.hash })
    }
}

pub(super) fn check(fits: bool, why: impl FnOnce() -> String) -> Result<()> {
    if fits { Ok(()) } else { Err(Error::RefusedCommit(why())) }
}

pub(super) fn refused(why: &str) -> Error {
    Error::RefusedCommit(why.to_owned())
}
