//! Going back to an older block: what is above it is no longer sealed, and waits to be removed.
//!
//! Nothing large is deleted here: what goes is named as trash, which `maintain` takes away.

use super::commit::{Applying, check, refused};
use super::heads::BlockRef;
use super::lmdb;
use super::maintain::FOLD_CURSOR;
use super::record::{Garbage, Status};
use crate::error::Result;

/// Why a partial was dropped that had been sealed.
const REWOUND: &str = "rewound";

impl Applying<'_, '_> {
    pub(super) fn rewind(&mut self, block: u64) -> Result<()> {
        let latest = self.heads.latest.ok_or_else(|| refused("the store is empty"))?;
        // Only a store that once kept less has fewer states than the rule says.
        let lowest = self.floors.states.max(self.heads.earliest);
        check((lowest..=latest.number).contains(&block), || {
            format!("cannot rewind to {block}: states {lowest} to {} are kept", latest.number)
        })?;
        if block + 1 < self.floors.partials {
            self.tables.forget_partials(self.txn, self.floors.partials)?;
            self.floors.partials = block + 1;
        }
        let last_flat = self.last_flat(block)?;
        for above in block + 1..=latest.number {
            self.unseal(above, above <= last_flat)?;
        }
        self.heads.latest = Some(self.known(block)?);
        self.heads.folded = self.heads.folded.min(block);
        let keep = |head: Option<BlockRef>| head.filter(|head| head.number <= block);
        (self.heads.safe, self.heads.finalized) =
            (keep(self.heads.safe), keep(self.heads.finalized));
        self.heads.pending = None;
        self.rewind_nodes(block)
    }

    /// The last block that has flat entries, one that is being folded included. Its
    /// cursor goes if the block does.
    fn last_flat(&mut self, target: u64) -> Result<u64> {
        let (meta, folded) = (self.tables.meta, self.heads.folded);
        let folding = meta.get(self.txn, FOLD_CURSOR).map_err(lmdb)?.is_some();
        if folding && folded + 1 > target {
            meta.delete(self.txn, FOLD_CURSOR).map_err(lmdb)?;
        }
        Ok(folded + u64::from(folding))
    }

    fn unseal(&mut self, block: u64, has_flat_entries: bool) -> Result<()> {
        let delta = self.sealed(block)?.delta;
        self.tables.sealed.delete(self.txn, &block.to_be_bytes()).map_err(lmdb)?;
        // The delta of a partial goes with the partial, which may be revived until then.
        let is_partial = match self.partial(delta) {
            Ok(mut partial) => {
                partial.status = Status::Dropped { reason: REWOUND.to_owned() };
                self.put_partial(delta, &partial)?;
                true
            }
            Err(_) => false,
        };
        match (has_flat_entries, is_partial) {
            (true, _) => self.tables.schedule_deletion(self.txn, Garbage::Flat { delta, block }),
            (false, false) => self.tables.schedule_deletion(self.txn, Garbage::Delta(delta)),
            (false, true) => Ok(()),
        }
    }

    /// Nodes above `block` are stale. Those of the block being written may be stored
    /// in part, so they count as stored.
    fn rewind_nodes(&mut self, block: u64) -> Result<()> {
        self.layers.rewind(block);
        let kept = self.heads.nodes.filter(|_| block >= self.heads.nodes_earliest);
        let Some(nodes) = kept else {
            // None, or a first layer in part, or none that reach down far enough.
            self.heads.nodes = None;
            self.layers.reset_progress();
            return self.tables.schedule_deletion(self.txn, Garbage::AllNodes);
        };
        for stale in block + 1..=nodes + 1 {
            self.tables.schedule_deletion(self.txn, Garbage::Nodes { block: stale })?;
        }
        self.heads.nodes = Some(nodes.min(block));
        Ok(())
    }
}
