//! Trie nodes that sealed blocks wrote and that are not stored yet, in layers.
//!
//! A lookup checks every layer, newest first, and many blocks may be sealed at once. So layers are
//! also merged into groups, and groups into larger ones: a lookup checks a few dozen maps at most.
//! `nodes` stores the layers.

use std::sync::Arc;

use crate::trie::NodeWrites;

/// The number of layers merged into one group.
const LAYERS_OF_GROUP: usize = 16;
/// The number of groups of one size merged into one of the next size.
const GROUPS_OF_GROUP: usize = 8;

/// Writes of sealed blocks that are not stored yet.
#[derive(Clone, Default)]
pub struct PendingNodeLayers {
    /// Oldest first.
    layers: Vec<Layer>,
    /// Groups of the oldest layers, oldest first. Some of these layers may already be stored.
    groups: Vec<Group>,
}

/// The merged writes of successive layers; the last write of each key wins.
#[derive(Clone)]
struct Group {
    /// The block of its last layer.
    last: u64,
    size: u32,
    writes: Arc<NodeWrites>,
}

#[derive(Clone)]
pub(super) struct Layer {
    pub(super) block: u64,
    pub(super) writes: Arc<NodeWrites>,
    /// The number of writes that are stored.
    pub(super) stored: usize,
}

impl PendingNodeLayers {
    pub fn push(&mut self, block: u64, writes: Arc<NodeWrites>) {
        self.rewind(block.saturating_sub(1));
        self.layers.push(Layer { block, writes, stored: 0 });
        self.group();
    }

    /// Drops the layers above `block`. The remaining layers of a truncated group are grouped again.
    pub fn rewind(&mut self, block: u64) {
        let kept = self.layers.partition_point(|layer| layer.block <= block);
        self.layers.truncate(kept);
        let kept = self.groups.partition_point(|group| group.last <= block);
        self.groups.truncate(kept);
        self.group();
    }

    /// Marks all layers as not stored, because the stored nodes will be deleted.
    pub fn reset_progress(&mut self) {
        for layer in &mut self.layers {
            layer.stored = 0;
        }
    }

    /// The oldest block with a pending layer.
    pub fn first(&self) -> Option<u64> {
        self.layers.first().map(|layer| layer.block)
    }

    pub(super) fn first_layer(&self) -> Option<Layer> {
        self.layers.first().cloned()
    }

    /// Records how many writes of the oldest layer are stored.
    pub(super) fn set_progress(&mut self, stored: usize) {
        if let Some(first) = self.layers.first_mut() {
            first.stored = stored;
        }
    }

    /// The last block up to `block` whose nodes are known, with those of all blocks before it.
    /// `stored` is the last block whose nodes are stored.
    pub fn last_known(&self, stored: Option<u64>, block: u64) -> Option<u64> {
        let layers = self.layers.iter().filter(|layer| layer.block <= block);
        layers.fold(stored, |known, layer| match known {
            Some(known) if layer.block != known + 1 => Some(known),
            _ => Some(layer.block),
        })
    }

    /// The writes up to `block`, oldest first, merged into few maps.
    pub(super) fn up_to(&self, block: u64) -> Vec<Arc<NodeWrites>> {
        let groups = &self.groups[..self.groups.partition_point(|group| group.last <= block)];
        let grouped = groups.last().map(|group| group.last);
        let loose = |layer: &&Layer| layer.block <= block && grouped < Some(layer.block);
        let layers = self.layers.iter().filter(loose).map(|layer| layer.writes.clone());
        groups.iter().map(|group| group.writes.clone()).chain(layers).collect()
    }

    /// Merges layers into a group, and groups of one size into a larger one, once there are enough.
    fn group(&mut self) {
        let grouped = self.groups.last().map(|group| group.last);
        let loose = self.layers.iter().rev().take_while(|layer| grouped < Some(layer.block));
        let from = self.layers.len() - loose.count();
        let (loose, Some(newest)) = (&self.layers[from..], self.layers.last()) else { return };
        if loose.len() < LAYERS_OF_GROUP {
            return;
        }
        let writes = merged(loose.iter().map(|layer| &*layer.writes));
        self.groups.push(Group { last: newest.block, size: 0, writes });
        while let Some(&Group { last, size, .. }) = self.groups.last() {
            let equal = self.groups.iter().rev().take_while(|group| group.size == size).count();
            if equal < GROUPS_OF_GROUP {
                return;
            }
            let equal = self.groups.split_off(self.groups.len() - equal);
            let writes = merged(equal.iter().map(|group| &*group.writes));
            self.groups.push(Group { last, size: size + 1, writes });
        }
    }

    /// Removes the oldest layer after it was stored.
    pub(super) fn stored_first(&mut self) {
        self.layers.remove(0);
        match self.first() {
            Some(first) => self.groups.retain(|group| group.last >= first),
            None => self.groups.clear(),
        }
    }
}

/// Merges writes; the last write of each key wins. Retired owners are omitted, since lookups do not
/// use them.
fn merged<'a>(oldest_first: impl Iterator<Item = &'a NodeWrites>) -> Arc<NodeWrites> {
    let mut all = NodeWrites::default();
    for writes in oldest_first {
        all.nodes.extend(writes.nodes.iter().map(|(key, node)| (key.clone(), node.clone())));
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests;
