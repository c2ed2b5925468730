//! Maintenance behind the heads, in bounded slices.
//!
//! There are six kinds of work, in the order of `Slice::round`: clearing stale flat entries,
//! folding sealed deltas into the flat table, clearing stale trie nodes, writing new trie nodes,
//! clearing other garbage, and pruning. Each kind has a share of a slice, so that none waits for
//! the backlog of another. As many slices as fit into a given time share one durable transaction:
//! LMDB copies each page that a transaction touches, and slices mostly touch the same pages. Such a
//! transaction allocates no commit number and changes nothing that a reader could observe. Cursor
//! rows record where a slice stopped, so a restarted writer resumes there.

use std::ops::Bound;
use std::time::{Duration, Instant};

use heed::RwTxn;

use super::floors::Keep;
use super::heads::{Fields, Heads};
use super::lmdb;
use super::open::Store;
use super::pending_node_layers::PendingNodeLayers;
use super::record::{Garbage, Partial};
use super::tables::Tables;
use crate::error::{Error, Result};
use crate::store::delta;
use crate::store::entry::{self, RETIRED};

/// The entry key at which folding block `folded + 1` resumes.
pub(super) const FOLD_CURSOR: &[u8] = b"fold";
/// The entry key at which clearing the first garbage row of flat entries resumes.
const CLEAR_CURSOR: &[u8] = b"clear";
/// The entry key at which pruning below block `earliest` resumes.
const PRUNE_CURSOR: &[u8] = b"prune";
pub(super) const CURSORS: [&[u8]; 3] = [FOLD_CURSOR, CLEAR_CURSOR, PRUNE_CURSOR];
/// The number of kinds of work. Each has 1/`KINDS` of a slice for itself.
const KINDS: usize = 6;

impl Store {
    /// Processes up to `entries` entries. Returns the number processed; 0 means that no work is
    /// due.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, `StoreFull`, `DiskFull`, or another store error.
    pub fn maintain(&self, entries: usize) -> Result<usize> {
        self.maintain_within(entries, Duration::ZERO)
    }

    /// Processes slices of up to `entries` entries, in one durable transaction, until no work is
    /// due or the time is up; at least one slice.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, `StoreFull`, `DiskFull`, or another store error.
    pub fn maintain_within(&self, entries: usize, time: Duration) -> Result<usize> {
        let begun = Instant::now();
        let mut layers = self.layers()?;
        let (worked, next_layers) = self.write(|txn| {
            let mut next_layers = layers.clone();
            let before = self.tables.heads(txn)?;
            let heads = before.clone();
            let layers = &mut next_layers;
            let mut slice = Slice { tables: self.tables, txn, heads, layers, left: 0 };
            let mut worked = 0;
            let keep = self.keep();
            loop {
                let round = slice.round(entries, &keep)?;
                worked += round;
                if round == 0 || begun.elapsed() >= time {
                    break;
                }
            }
            let heads = slice.heads;
            if heads != before {
                self.tables.put_heads(txn, &heads)?;
            }
            Ok((worked, next_layers))
        })?;
        *layers = next_layers;
        Ok(worked)
    }
}

/// Clears, folds and writes nodes without a limit, inside a commit.
pub(super) fn fold_all(
    tables: &Tables,
    txn: &mut RwTxn,
    heads: &mut Heads,
    layers: &mut PendingNodeLayers,
) -> Result<()> {
    let left = usize::MAX;
    let mut slice = Slice { tables: *tables, txn, heads: heads.clone(), layers, left };
    slice.clear(|_| true)?;
    slice.fold()?;
    slice.write_nodes()?;
    *heads = slice.heads;
    Ok(())
}

pub(super) struct Slice<'a, 'e> {
    pub tables: Tables,
    pub txn: &'a mut RwTxn<'e>,
    pub heads: Heads,
    pub layers: &'a mut PendingNodeLayers,
    pub left: usize,
}

impl Slice<'_, '_> {
    /// Processes one slice: each kind of work gets its share, then the rest goes to the kinds with
    /// work left. Returns the number of entries processed.
    fn round(&mut self, entries: usize, keep: &Keep) -> Result<usize> {
        self.left = entries;
        for share in [entries.div_ceil(KINDS), entries] {
            // Folding waits until stale flat entries are cleared, and writing nodes until stale
            // nodes are.
            self.within(share, |slice| slice.clear(Garbage::is_flat))?;
            self.within(share, Self::fold)?;
            self.within(share, |slice| slice.clear(Garbage::is_of_nodes))?;
            self.within(share, Self::write_nodes)?;
            self.within(share, |slice| slice.clear(|_| true))?;
            self.within(share, |slice| slice.prune(keep))?;
        }
        Ok(entries - self.left)
    }

    /// Runs `work` on at most `share` entries.
    fn within(&mut self, share: usize, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let withheld = self.left.saturating_sub(share);
        self.left -= withheld;
        work(self)?;
        self.left += withheld;
        Ok(())
    }

    /// Clears garbage of a kind, oldest first.
    pub fn clear(&mut self, of_kind: impl Fn(&Garbage) -> bool) -> Result<()> {
        // Everything before this key is of another kind.
        let mut from = vec![0];
        while self.left > 0 {
            let Some((key, trash)) = self.next_garbage(&from, &of_kind)? else { return Ok(()) };
            let done = match trash {
                Garbage::Delta(number) => self.delete_delta(number)?,
                Garbage::Nodes { block } => self.clear_nodes(block)?,
                Garbage::AllNodes => self.clear_all_nodes()?,
                Garbage::Flat { delta, block } => {
                    let cleared = self.clear_flat(delta, block)?;
                    let is_needed = self.is_needed(delta, block)?;
                    if cleared && !is_needed {
                        let rest = Garbage::Delta(delta).encode();
                        self.tables.trash.put(self.txn, &key, &rest).map_err(lmdb)?;
                    }
                    cleared && is_needed
                }
            };
            if done {
                self.tables.trash.delete(self.txn, &key).map_err(lmdb)?;
            }
            from = key;
        }
        Ok(())
    }

    /// True if a partial owns this delta, or the block is sealed with it again.
    fn is_needed(&self, delta: u64, block: u64) -> Result<bool> {
        let sealed = self.tables.sealed_block(self.txn, block)?;
        let is_sealed = sealed.is_some_and(|sealed| sealed.delta == delta);
        Ok(is_sealed || self.tables.partial(self.txn, delta)?.is_some())
    }

    /// The first garbage of a kind whose key is at or after `from`.
    fn next_garbage(
        &self,
        from: &[u8],
        of_kind: impl Fn(&Garbage) -> bool,
    ) -> Result<Option<(Vec<u8>, Garbage)>> {
        let rest = (Bound::Included(from), Bound::Unbounded);
        for row in self.tables.trash.range(self.txn, &rest).map_err(lmdb)? {
            let (key, row) = row.map_err(lmdb)?;
            let trash = Garbage::decode(row)?;
            if of_kind(&trash) {
                return Ok(Some((key.to_vec(), trash)));
            }
        }
        Ok(None)
    }

    pub fn has_garbage(&self, of_kind: impl Fn(&Garbage) -> bool) -> Result<bool> {
        Ok(self.next_garbage(&[0], of_kind)?.is_some())
    }

    /// Deletes the flat entries that `delta` lists for `block`; true when all are deleted.
    fn clear_flat(&mut self, delta: u64, block: u64) -> Result<bool> {
        self.walk(CLEAR_CURSOR, delta, |slice, key| {
            let key = entry::versioned(key, block);
            slice.tables.flat.delete(slice.txn, &key).map_err(lmdb)?;
            Ok(true)
        })
    }

    fn delete_delta(&mut self, number: u64) -> Result<bool> {
        let limit = self.left;
        let done = delta::delete(self.tables.deltas, self.txn, number, limit)?;
        // A small delta also counts, so that a slice ends.
        self.left -= if done { 1 } else { limit };
        Ok(done)
    }

    /// Copies sealed deltas into the flat table, oldest first. Waits until stale entries of rewound
    /// blocks are cleared, because they may be at the same heights.
    fn fold(&mut self) -> Result<()> {
        let Some(latest) = self.heads.latest else { return Ok(()) };
        if self.heads.folded >= latest.number || self.has_garbage(Garbage::is_flat)? {
            return Ok(());
        }
        while self.heads.folded < latest.number && self.left > 0 {
            if self.fold_block(self.heads.folded + 1)? {
                self.heads.folded += 1;
            }
        }
        Ok(())
    }

    fn fold_block(&mut self, block: u64) -> Result<bool> {
        let delta = self.delta_of(block)?;
        let tables = self.tables;
        self.walk_entries(FOLD_CURSOR, delta, |slice, key, value| {
            if key[0] != RETIRED {
                let key = entry::versioned(key, block);
                tables.flat.put(slice.txn, &key, value).map_err(lmdb)?;
            }
            Ok(true)
        })
    }

    /// Prunes up to the floors, below which no commit may refer to anything.
    fn prune(&mut self, keep: &Keep) -> Result<()> {
        let Some(latest) = self.heads.latest else { return Ok(()) };
        let mut floors = self.tables.floors(self.txn, &self.heads)?;
        floors.raise(latest.number, keep);
        self.prune_partials(floors.partials.min(keep.held.saturating_add(1)))?;
        if keep.retention.states.is_some() {
            // Nodes that are not stored yet may have to be computed from older states.
            // On a partial base nodes may never be computed, so pruning does not wait for them.
            let nodes = match self.heads.anchor {
                Some(_) => u64::MAX,
                None => self.heads.nodes.or(self.layers.first()).unwrap_or(u64::MAX),
            };
            let needed = self.heads.folded.min(nodes);
            self.prune_states(floors.states.min(needed).min(keep.held))?;
        }
        self.prune_nodes(keep.retention.nodes, keep.held)?;
        self.forget_learned_nodes()
    }

    /// Deletes partials of blocks below `oldest`, and schedules the deletion of their deltas unless
    /// a sealed block uses them. The record is deleted first: a partial that can be found has its
    /// whole delta.
    fn prune_partials(&mut self, oldest: u64) -> Result<()> {
        while self.left > 0 {
            let first = self.tables.partials.first(self.txn).map_err(lmdb)?;
            let Some((key, row)) = first else { return Ok(()) };
            let (key, partial) = (key.to_vec(), Partial::decode(row)?);
            if partial.block >= oldest {
                return Ok(());
            }
            self.tables.forget_partial(self.txn, &key, partial.block)?;
            self.left -= 1;
        }
        Ok(())
    }

    /// Raises `earliest` to `target`, block by block. `earliest` is raised before anything is
    /// deleted, so that no reader can open a state that is being pruned.
    fn prune_states(&mut self, target: u64) -> Result<()> {
        while self.left > 0 {
            let working = self.tables.meta.get(self.txn, PRUNE_CURSOR).map_err(lmdb)?.is_some();
            if !working {
                if self.heads.earliest >= target {
                    return Ok(());
                }
                self.heads.earliest += 1;
                self.tables.meta.put(self.txn, PRUNE_CURSOR, &[]).map_err(lmdb)?;
            }
            self.prune_below(self.heads.earliest)?;
        }
        Ok(())
    }

    /// Deletes the versions that the entries of `block` have replaced, then schedules the deletion
    /// of its delta: there is no state below it to rewind to.
    fn prune_below(&mut self, block: u64) -> Result<()> {
        let delta = self.delta_of(block)?;
        let done = self.walk(PRUNE_CURSOR, delta, |slice, key| {
            if key[0] == RETIRED {
                slice.delete_prefix(slice.tables.flat, &entry::retired_slots_prefix(key))
            } else {
                slice.delete_older(key, block)?;
                Ok(true)
            }
        })?;
        if done {
            self.tables.partials.delete(self.txn, &delta.to_be_bytes()).map_err(lmdb)?;
            self.tables.schedule_deletion(self.txn, Garbage::Delta(delta))?;
        }
        Ok(())
    }

    /// Deletes all versions of `key` below `block`, and the version at `block` if it only says that
    /// nothing exists, unless the key would be unknown without it.
    fn delete_older(&mut self, key: &[u8], block: u64) -> Result<()> {
        let anchor = self.heads.anchor;
        let says = anchor.is_some_and(|anchor| entry::may_be_unknown(key, anchor.generation));
        delete_superseded(self.tables.flat, self.txn, key, block, says)
    }

    /// Deletes the rows with `prefix`, within the slice; true when all are deleted.
    pub fn delete_prefix(&mut self, table: delta::Table, prefix: &[u8]) -> Result<bool> {
        let mut keys = Vec::new();
        for row in table.prefix_iter(self.txn, prefix).map_err(lmdb)?.take(self.left) {
            keys.push(row.map_err(lmdb)?.0.to_vec());
        }
        for key in &keys {
            table.delete(self.txn, key).map_err(lmdb)?;
        }
        self.left -= keys.len();
        Ok(self.left > 0)
    }

    fn delta_of(&self, block: u64) -> Result<u64> {
        let sealed = self.tables.sealed_block(self.txn, block)?;
        Ok(sealed.ok_or(Error::UnknownBlock(block))?.delta)
    }

    fn walk(
        &mut self,
        cursor: &[u8],
        delta: u64,
        mut act: impl FnMut(&mut Self, &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        self.walk_entries(cursor, delta, |slice, key, _| act(slice, key))
    }

    /// Walks the entries of a delta from `cursor` on, as far as the slice allows. `act` returns
    /// false if it has not finished an entry. Returns true and deletes the cursor at the end of the
    /// delta.
    fn walk_entries(
        &mut self,
        cursor: &[u8],
        delta: u64,
        mut act: impl FnMut(&mut Self, &[u8], &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let meta = self.tables.meta;
        let from = meta.get(self.txn, cursor).map_err(lmdb)?.unwrap_or_default().to_vec();
        let limit = self.left;
        let entries = delta::scan(self.tables.deltas, self.txn, delta, &[], &from, limit)?;
        let all = entries.len() < limit;
        for (mut key, value) in entries {
            if self.left == 0 || !act(self, &key, &value)? {
                meta.put(self.txn, cursor, &key).map_err(lmdb)?;
                return Ok(false);
            }
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                key.push(0);
                meta.put(self.txn, cursor, &key).map_err(lmdb)?;
            }
        }
        if all {
            meta.delete(self.txn, cursor).map_err(lmdb)?;
            self.left = self.left.saturating_sub(1);
        }
        Ok(all)
    }
}

impl Tables {
    /// Deletes an expired partial, and schedules the deletion of its delta unless a sealed block
    /// uses it.
    fn forget_partial(&self, txn: &mut RwTxn, key: &[u8], block: u64) -> Result<()> {
        let number = Fields(key).number()?;
        let sealed = self.sealed_block(txn, block)?;
        if sealed.is_none_or(|sealed| sealed.delta != number) {
            self.schedule_deletion(txn, Garbage::Delta(number))?;
        }
        self.partials.delete(txn, key).map_err(lmdb)?;
        Ok(())
    }

    /// Deletes all partials of blocks below `oldest` at once.
    pub(super) fn forget_partials(&self, txn: &mut RwTxn, oldest: u64) -> Result<()> {
        let mut old = Vec::new();
        for row in self.partials.iter(txn).map_err(lmdb)? {
            let (key, row) = row.map_err(lmdb)?;
            let block = Partial::decode(row)?.block;
            if block < oldest {
                old.push((key.to_vec(), block));
            }
        }
        old.iter().try_for_each(|(key, block)| self.forget_partial(txn, key, *block))
    }

    /// Schedules garbage for later slices to clear.
    pub(super) fn schedule_deletion(&self, txn: &mut RwTxn, trash: Garbage) -> Result<()> {
        let next = match self.trash.last(txn).map_err(lmdb)? {
            Some((key, _)) => Fields(key).following()?,
            None => 0,
        };
        self.trash.put(txn, &next.to_be_bytes(), &trash.encode()).map_err(lmdb)
    }
}

/// Deletes all versions of `key` below `block`, and the version at `block` if its value is empty,
/// which reads like no entry, unless `empty_says`: then an empty value has a meaning.
pub(super) fn delete_superseded(
    table: delta::Table,
    txn: &mut RwTxn,
    key: &[u8],
    block: u64,
    empty_says: bool,
) -> Result<()> {
    let exact = entry::versioned(key, block);
    let mut gone = Vec::new();
    let from_exact = (Bound::Included(&exact[..]), Bound::Unbounded);
    for row in table.range(txn, &from_exact).map_err(lmdb)? {
        let (found, value) = row.map_err(lmdb)?;
        if found.len() != exact.len() || !found.starts_with(key) {
            break;
        }
        if found != &exact[..] || value.is_empty() && !empty_says {
            gone.push(found.to_vec());
        }
    }
    for key in gone {
        table.delete(txn, &key).map_err(lmdb)?;
    }
    Ok(())
}
