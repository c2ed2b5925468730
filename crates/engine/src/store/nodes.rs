//! Trie nodes in the store: versioned like state, written behind the head.
//!
//! Nodes are derived data: the root is in the header, so the nodes that a block wrote may wait in
//! memory as a *layer* until a slice stores them. `heads.nodes` is the last block whose nodes are
//! stored; after a crash the layers above it are recomputed from the blocks' deltas. Versions are
//! kept for a window of their own; a rewind below it reverts the changes since (`unwind`).
//!
//! On a partial base, only nodes are stored that blocks wrote since the anchor and whose layers
//! were computed. Other nodes come from proofs and are stored by hash (`learned_nodes`). A block
//! may then have no layer, so a row may be outdated; its hash shows that.

use std::sync::Arc;

use alloy_primitives::B256;
use alloy_trie::Nibbles;
use heed::{AnyTls, RoTxn};

use super::heads::Fields;
use super::lmdb;
use super::maintain::{Slice, delete_superseded};
use super::open::Store;
use super::pending_node_layers::Layer;
use super::record::Garbage;
use super::snapshot::Lease;
use super::tables::Table;
use super::view::View;
use crate::error::{Error, Result};
use crate::store::entry;
use crate::trie::NodeWrites;
use crate::trie::{NodeReader, Owner, is_node_key, is_storage_prefix, node_key, owner_prefix};

/// Rows of node changes have the size of a delta chunk.
const CHANGES_BYTES: usize = 4 * 4096 - 16;

/// Stored nodes as of one block, or of the last stored block if that is lower.
pub struct StoredNodes {
    lease: Arc<Lease>,
    /// `None` if no stored nodes may be read.
    block: Option<u64>,
}

impl StoredNodes {
    pub fn at(view: &View, block: u64) -> Self {
        let block = view.heads().nodes.map(|stored| stored.min(block));
        Self { lease: view.lease.clone(), block }
    }

    /// Reads as if no nodes were stored.
    pub fn none(view: &View) -> Self {
        Self { lease: view.lease.clone(), block: None }
    }
}

impl NodeReader for StoredNodes {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        let Some(block) = self.block else { return Ok(None) };
        self.lease.read(|txn| newest(self.lease.tables.nodes, txn, &node_key(owner, path), block))
    }

    fn by_hash(&self, hash: &B256) -> Result<Option<Vec<u8>>> {
        self.lease.learned_node(hash)
    }

    fn is_partial(&self) -> bool {
        self.lease.heads.anchor.is_some()
    }
}

/// The newest version of a node at or below `block`.
pub(super) fn newest(
    nodes: Table,
    txn: &RoTxn<'_, AnyTls>,
    key: &[u8],
    block: u64,
) -> Result<Option<Vec<u8>>> {
    let wanted = entry::versioned(key, block);
    let found = nodes.get_greater_than_or_equal_to(txn, &wanted).map_err(lmdb)?;
    let version = found.filter(|(found, _)| found.len() == wanted.len() && found.starts_with(key));
    Ok(version.map(|(_, node)| node.to_vec()).filter(|node| !node.is_empty()))
}

impl Store {
    /// The writes above the stored nodes up to `block`, oldest first.
    pub(super) fn node_layers(&self, block: u64) -> Result<Vec<Arc<NodeWrites>>> {
        Ok(self.layers()?.up_to(block))
    }

    /// Keeps the nodes that a sealed block above a partial base wrote and that were computed after
    /// its commit. Returns false if the block is no longer on the chain, or if they are already
    /// stored.
    ///
    /// # Errors
    ///
    /// `StoreReadOnly`, or a store read error.
    pub fn keep_nodes(&self, block: u64, hash: B256, writes: Arc<NodeWrites>) -> Result<bool> {
        let mut layers = self.layers()?; // blocks concurrent commits
        let view = self.view()?;
        let heads = view.heads();
        let is_due = heads.anchor.is_some() && heads.nodes.is_none_or(|stored| stored < block);
        let is_sealed = view.sealed(block)?.is_some_and(|sealed| sealed.hash == hash);
        view.close();
        if is_due && is_sealed {
            layers.push(block, writes);
        }
        Ok(is_due && is_sealed)
    }

    /// Keeps a recomputed layer for later slices to store.
    pub(super) fn restore_layer(&self, block: u64, writes: Arc<NodeWrites>) -> Result<()> {
        self.layers()?.push(block, writes);
        Ok(())
    }
}

impl Slice<'_, '_> {
    /// Stores layers, oldest first. Waits until stale nodes of rewound blocks are cleared.
    pub fn write_nodes(&mut self) -> Result<()> {
        if self.layers.first().is_none() || self.has_garbage(Garbage::is_of_nodes)? {
            return Ok(());
        }
        while self.left > 0 {
            let Some(layer) = self.layers.first_layer() else { return Ok(()) };
            let next = self.heads.nodes.map(|block| block + 1);
            // On a partial base, roots are computed only where enough is known. Nodes are verified
            // by hash when they are read.
            let fits = |next| match self.heads.anchor {
                Some(_) => next <= layer.block,
                None => next == layer.block,
            };
            if !next.is_none_or(fits) {
                // A layer is missing. Opening the trie recomputes it; other work continues.
                return Ok(());
            }
            // A process that ended may have stored a part of another first layer.
            if next.is_none() && layer.stored == 0 && !self.clear_all_nodes()? {
                return Ok(());
            }
            let stored = self.write_layer(&layer, next.is_none())?;
            if stored < layer.writes.nodes.len() {
                self.layers.set_progress(stored);
                return Ok(());
            }
            self.layers.stored_first();
            self.heads.nodes = Some(layer.block);
            if next.is_none() {
                self.heads.nodes_earliest = layer.block;
            }
        }
        Ok(())
    }

    /// Returns how many writes of the layer are now stored. The first layer of a store replaces
    /// nothing, so it needs no list of changes.
    fn write_layer(&mut self, layer: &Layer, first: bool) -> Result<usize> {
        let mut changes = NodeKeyRows::default();
        if layer.stored == 0 {
            for owner in &layer.writes.retired {
                changes.push(RETIRED_OWNER, &owner_prefix(owner));
            }
        }
        let portion = layer.writes.nodes.iter().skip(layer.stored).take(self.left);
        let mut stored = layer.stored;
        for (key, node) in portion {
            let row = entry::versioned(key, layer.block);
            let node = node.as_deref().unwrap_or_default();
            self.tables.nodes.put(self.txn, &row, node).map_err(lmdb)?;
            changes.push(NODE, key);
            stored += 1;
        }
        self.left = self.left.saturating_sub(stored - layer.stored + 1);
        if !first {
            self.write_changes(layer.block, changes)?;
        }
        Ok(stored)
    }

    fn write_changes(&mut self, block: u64, changes: NodeKeyRows) -> Result<()> {
        let table = self.tables.node_changes;
        let prefix = block.to_be_bytes();
        let last = table.rev_prefix_iter(self.txn, &prefix).map_err(lmdb)?.next();
        let next = match last.transpose().map_err(lmdb)? {
            Some((key, _)) => Fields(&key[8..]).following()?,
            None => 0,
        };
        for (position, row) in (next..).zip(changes.rows) {
            let key = [prefix, u64::to_be_bytes(position)].concat();
            table.put(self.txn, &key, &row).map_err(lmdb)?;
        }
        Ok(())
    }

    /// Deletes the nodes of a block that is no longer on the chain; true when done.
    pub fn clear_nodes(&mut self, block: u64) -> Result<bool> {
        let nodes = self.tables.nodes;
        self.walk_changes(block, |slice, kind, key| {
            if kind == NODE {
                nodes.delete(slice.txn, &entry::versioned(key, block)).map_err(lmdb)?;
            }
            Ok(true)
        })
    }

    pub fn clear_all_nodes(&mut self) -> Result<bool> {
        for table in [self.tables.nodes, self.tables.node_changes] {
            while self.left > 0 {
                let first = table.first(self.txn).map_err(lmdb)?.map(|(key, _)| key.to_vec());
                let Some(key) = first else { break };
                table.delete(self.txn, &key).map_err(lmdb)?;
                self.left -= 1;
            }
        }
        Ok(self.left > 0)
    }

    /// Raises `nodes_earliest`, keeping the versions of `window` blocks and those from `held` on.
    pub fn prune_nodes(&mut self, window: u64, held: u64) -> Result<()> {
        let Some(stored) = self.heads.nodes else { return Ok(()) };
        let oldest = stored.saturating_sub(window).min(held);
        while self.left > 0 {
            let block = self.heads.nodes_earliest;
            let done = self.walk_changes(block, |slice, kind, key| {
                if kind == NODE {
                    delete_superseded(slice.tables.nodes, slice.txn, key, block, false)?;
                    return Ok(true);
                }
                slice.delete_prefix(slice.tables.nodes, key)
            })?;
            if !done || block >= oldest {
                return Ok(());
            }
            self.heads.nodes_earliest += 1;
            // A block without writes also counts, so that a slice ends.
            self.left = self.left.saturating_sub(1);
        }
        Ok(())
    }

    /// Walks the list of a block's writes and deletes it row by row; true when no row is left. A
    /// row is processed whole unless `act` returns false.
    fn walk_changes(
        &mut self,
        block: u64,
        mut act: impl FnMut(&mut Self, u8, &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let table = self.tables.node_changes;
        while self.left > 0 {
            let first = table.prefix_iter(self.txn, &block.to_be_bytes()).map_err(lmdb)?.next();
            let Some((key, row)) = first.transpose().map_err(lmdb)? else { return Ok(true) };
            let (key, row) = (key.to_vec(), row.to_vec());
            let mut rest = row.as_slice();
            while !rest.is_empty() {
                let (kind, node, after) = next_change(rest)?;
                if !act(self, kind, node)? {
                    return Ok(false);
                }
                self.left = self.left.saturating_sub(1);
                rest = after;
            }
            table.delete(self.txn, &key).map_err(lmdb)?;
        }
        Ok(false)
    }
}

pub(super) const NODE: u8 = 0;
const RETIRED_OWNER: u8 = 1;

/// A list of node keys in rows. Each key is stored as its kind, its length and its bytes.
#[derive(Default)]
struct NodeKeyRows {
    rows: Vec<Vec<u8>>,
}

impl NodeKeyRows {
    fn push(&mut self, kind: u8, key: &[u8]) {
        if self.rows.last().is_none_or(|row| row.len() + key.len() + 2 > CHANGES_BYTES) {
            self.rows.push(Vec::new());
        }
        if let Some(row) = self.rows.last_mut() {
            row.extend_from_slice(&[kind, key.len() as u8]);
            row.extend_from_slice(key);
        }
    }
}

pub(super) fn next_change(row: &[u8]) -> Result<(u8, &[u8], &[u8])> {
    let damaged = || Error::StoreDamaged("a list of node changes is not one".into());
    let ([kind, length], rest) = row.split_first_chunk::<2>().ok_or_else(damaged)?;
    let (key, rest) = rest.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
    let sound = match *kind {
        NODE => is_node_key(key),
        RETIRED_OWNER => is_storage_prefix(key),
        _ => false,
    };
    if sound { Ok((*kind, key, rest)) } else { Err(damaged()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_of_a_node_or_of_an_owner() {
        let owner = Owner::Storage { address: Default::default(), generation: 3 };
        let (node, prefix) = (node_key(&owner, &Nibbles::unpack([7; 32])), owner_prefix(&owner));
        let row = |kind, key: &[u8]| [&[kind, key.len() as u8], key, &[9]].concat();
        assert_eq!(next_change(&row(NODE, &node)), Ok((NODE, &node[..], &[9][..])));
        assert!(next_change(&row(RETIRED_OWNER, &prefix)).is_ok());
        // An empty prefix would retire every owner, and no key of the table is this long.
        for (kind, key) in
            [(RETIRED_OWNER, &[][..]), (NODE, &[0; 255]), (NODE, &prefix), (2, &node)]
        {
            let read = next_change(&row(kind, key)).map(drop);
            assert!(matches!(read, Err(Error::StoreDamaged(_))), "{kind} {key:?}");
        }
        assert!(next_change(&row(NODE, &node)[..node.len()]).is_err());
    }
}
