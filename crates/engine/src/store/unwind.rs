//! Trie nodes of a rewind below their window: the nodes of the oldest block in the window, with the
//! changes since the target reverted.
//!
//! All of it is part of the commit that rewinds. The changes are reverted in portions, each read
//! from the view before the commit, so memory does not grow with the number of blocks. Tests compare
//! the result with a trie built from the whole state.

use std::ops::Bound;

use alloy_trie::Nibbles;

use super::branch_trie::{MAX_UNWIND, inverse_changes};
use super::commit::Applying;
use super::head_trie::root_of;
use super::lmdb;
use super::maintain::Slice;
use super::nodes::newest;
use super::record::Garbage;
use super::tables::Table;
use super::view::View;
use crate::deadline::Watch;
use crate::error::Result;
use crate::store::entry;
use crate::trie::state_root::StateRoot;
use crate::trie::{NodeReader, NodeWrites, Owner, node_key, owner_prefix};
use heed::RwTxn;

/// The maximum number of rows held in memory while versions are changed. Few in tests, so that
/// there are several portions.
const PORTION: usize = if cfg!(test) { 3 } else { 10_000 };
/// The maximum number of accounts and slots reverted at once.
const MAX_REVERTED: usize = if cfg!(test) { 5 } else { MAX_UNWIND };

impl Applying<'_, '_> {
    /// Makes the stored nodes those of `block`, which is below their window. Returns false if it is
    /// not, or if the states in between are not available.
    pub(super) fn unwind_nodes(&mut self, block: u64) -> Result<bool> {
        let (from, Some(nodes), Some(view)) =
            (self.heads.nodes_earliest, self.heads.nodes, self.before)
        else {
            return Ok(false);
        };
        if block >= from || self.heads.anchor.is_some() {
            return Ok(false);
        }
        // An earlier step of the transaction may have added the block.
        if view.sealed(from)?.as_ref() != Some(&self.sealed(from)?) {
            return Ok(false);
        }
        let (tables, heads) = (self.tables, self.heads.clone());
        let txn = &mut *self.txn;
        let mut slice = Slice { tables, txn, heads, layers: self.layers, left: usize::MAX };
        slice.keep_only_nodes_of(from, nodes)?;
        slice.set_versions(block)?;
        slice.revert(view, from, block)?;
        self.layers.rewind(block);
        (self.heads.nodes, self.heads.nodes_earliest) = (Some(block), block);
        Ok(true)
    }
}

impl Slice<'_, '_> {
    /// Deletes all versions but those of `block`. Nodes are stored up to `last`, or partly beyond.
    fn keep_only_nodes_of(&mut self, block: u64, last: u64) -> Result<()> {
        self.clear(Garbage::is_of_nodes)?;
        for stale in block + 1..=last + 1 {
            self.clear_nodes(stale)?;
        }
        self.heads.nodes = Some(block);
        self.prune_nodes(0, block)
    }

    /// Lowers the version of every node to `block`. There is one version of each.
    fn set_versions(&mut self, block: u64) -> Result<()> {
        let nodes = self.tables.nodes;
        // Versions are stored inverted.
        let lowest = (!block).to_be_bytes();
        // LMDB accepts no empty key, and the key of a node is longer.
        let mut last = vec![0];
        loop {
            let mut later = Vec::new();
            let range = (Bound::Excluded(&last[..]), Bound::Unbounded);
            for row in nodes.range(self.txn, &range).map_err(lmdb)? {
                let (key, node) = row.map_err(lmdb)?;
                let Some((path, version)) = key.split_last_chunk() else { continue };
                if *version < lowest {
                    later.push((path.to_vec(), *version, node.to_vec()));
                }
                if later.len() == PORTION {
                    break;
                }
            }
            for (path, version, node) in &later {
                nodes.delete(self.txn, &[path, &version[..]].concat()).map_err(lmdb)?;
                nodes.put(self.txn, &entry::versioned(path, block), node).map_err(lmdb)?;
            }
            match later.pop() {
                Some((path, version, _)) if later.len() + 1 == PORTION => {
                    last = [&path[..], &version].concat();
                }
                _ => return Ok(()),
            }
        }
    }

    /// Reverts the changes of the blocks above `to`, as many at once as `MAX_REVERTED` allows.
    fn revert(&mut self, view: &View, from: u64, to: u64) -> Result<()> {
        let (mut at, mut blocks) = (from, from - to);
        while at > to {
            blocks = blocks.min(at - to);
            let most = if blocks > 1 { MAX_REVERTED } else { usize::MAX };
            let below = at - blocks;
            let watch = &mut Watch::default();
            let Some(changes) = inverse_changes(view, at, below, most, watch)? else {
                blocks /= 2;
                continue;
            };
            let nodes = TransactionNodes { txn: self.txn, nodes: self.tables.nodes, block: to };
            let mut trie = StateRoot::open(root_of(&nodes, None)?);
            trie.apply(&changes, &nodes)?;
            let writes = trie.take_writes(&nodes)?;
            self.put_nodes(to, &writes)?;
            at = below;
        }
        Ok(())
    }

    fn put_nodes(&mut self, block: u64, writes: &NodeWrites) -> Result<()> {
        let nodes = self.tables.nodes;
        for owner in &writes.retired {
            self.delete_prefix(nodes, &owner_prefix(owner))?;
        }
        for (key, node) in &writes.nodes {
            let key = entry::versioned(key, block);
            match node {
                Some(node) => nodes.put(self.txn, &key, node).map_err(lmdb)?,
                None => nodes.delete(self.txn, &key).map(drop).map_err(lmdb)?,
            }
        }
        Ok(())
    }
}

/// The nodes that a transaction has written.
struct TransactionNodes<'a, 'e> {
    txn: &'a RwTxn<'e>,
    nodes: Table,
    block: u64,
}

impl NodeReader for TransactionNodes<'_, '_> {
    fn node(&self, owner: &Owner, path: &Nibbles) -> Result<Option<Vec<u8>>> {
        newest(self.nodes, self.txn, &node_key(owner, path), self.block)
    }
}
