//! Rewinding to an older block: the blocks above it are unsealed and scheduled for deletion.
//!
//! Nothing large is deleted here: it is scheduled as garbage, which `maintain` clears.

use super::commit::{Applying, check, refused};
use super::heads::BlockRef;
use super::lmdb;
use super::maintain::FOLD_CURSOR;
use super::record::{Garbage, Status};
use crate::error::Result;

/// The drop reason of a partial that was sealed and then rewound.
const REWOUND: &str = "rewound";

impl Applying<'_, '_> {
    pub(super) fn rewind(&mut self, block: u64) -> Result<()> {
        let latest = self.heads.latest.ok_or_else(|| refused("the store is empty"))?;
        // `earliest` is above the floor only if the store was once opened with a smaller retention.
        let lowest = self.floors.states.max(self.heads.earliest);
        check((lowest..=latest.number).contains(&block), || {
            format!("cannot rewind to {block}: states {lowest} to {} are kept", latest.number)
        })?;
        if block + 1 < self.floors.partials {
            self.tables.forget_partials(self.txn, self.floors.partials)?;
            self.floors.partials = block + 1;
        }
        let nodes_fit = self.unwind_nodes(block)?;
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
        match nodes_fit {
            true => Ok(()),
            false => self.rewind_nodes(block),
        }
    }

    /// The last block that has flat entries, including one that is being folded. Deletes the fold
    /// cursor if that block is rewound.
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
        // The delta of a partial is deleted with the partial, which may be revived until then.
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

    /// Nodes above `block` are stale. The block that is being written may be partly stored, so it
    /// is cleared as well.
    fn rewind_nodes(&mut self, block: u64) -> Result<()> {
        self.layers.rewind(block);
        let kept = self.heads.nodes.filter(|_| block >= self.heads.nodes_earliest);
        let Some(nodes) = kept else {
            // No nodes, a partly stored first layer, or nodes that do not reach down to `block`.
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
