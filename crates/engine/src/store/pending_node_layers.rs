//! Trie nodes that sealed blocks wrote and that are not stored yet, in layers.
//!
//! A node is looked for in every layer, the newest first, and many blocks may be sealed at
//! once: so layers are also put together in groups, and those in larger ones. A reader looks
//! into some dozen maps at most. Storing them is the business of `nodes`.

use std::sync::Arc;

use crate::trie::NodeWrites;

/// How many layers become one group.
const LAYERS_OF_GROUP: usize = 16;
/// Groups of one size that become one of the next.
const GROUPS_OF_GROUP: usize = 8;

/// What sealed blocks wrote that is not stored yet.
#[derive(Clone, Default)]
pub struct PendingNodeLayers {
    /// Oldest first.
    layers: Vec<Layer>,
    /// Of the oldest layers, oldest first; some of them may be stored meanwhile.
    groups: Vec<Group>,
}

/// The writes of successive layers, the last of each key.
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
    /// How many of the writes are stored.
    pub(super) stored: usize,
}

impl PendingNodeLayers {
    pub fn push(&mut self, block: u64, writes: Arc<NodeWrites>) {
        self.rewind(block.saturating_sub(1));
        self.layers.push(Layer { block, writes, stored: 0 });
        self.group();
    }

    /// Forget what was above `block`. Layers of a group that is cut are put together anew.
    pub fn rewind(&mut self, block: u64) {
        let kept = self.layers.partition_point(|layer| layer.block <= block);
        self.layers.truncate(kept);
        let kept = self.groups.partition_point(|group| group.last <= block);
        self.groups.truncate(kept);
        self.group();
    }

    /// What was stored of the layers is to be discarded.
    pub fn reset_progress(&mut self) {
        for layer in &mut self.layers {
            layer.stored = 0;
        }
    }

    /// The oldest block whose layer waits.
    pub fn first(&self) -> Option<u64> {
        self.layers.first().map(|layer| layer.block)
    }

    pub(super) fn first_layer(&self) -> Option<Layer> {
        self.layers.first().cloned()
    }

    /// Note how many writes of the oldest layer are stored.
    pub(super) fn set_progress(&mut self, stored: usize) {
        if let Some(first) = self.layers.first_mut() {
            first.stored = stored;
        }
    }

    /// The last block whose nodes are known, with those of every block before it, where
    /// those up to `stored` are stored and none above `block` counts.
    pub fn last_known(&self, stored: Option<u64>, block: u64) -> Option<u64> {
        let layers = self.layers.iter().filter(|layer| layer.block <= block);
        layers.fold(stored, |known, layer| match known {
            Some(known) if layer.block != known + 1 => Some(known),
            _ => Some(layer.block),
        })
    }

    /// The writes up to `block`, oldest first, in few maps.
    pub(super) fn up_to(&self, block: u64) -> Vec<Arc<NodeWrites>> {
        let groups = &self.groups[..self.groups.partition_point(|group| group.last <= block)];
        let grouped = groups.last().map(|group| group.last);
        let loose = |layer: &&Layer| layer.block <= block && grouped < Some(layer.block);
        let layers = self.layers.iter().filter(loose).map(|layer| layer.writes.clone());
        groups.iter().map(|group| group.writes.clone()).chain(layers).collect()
    }

    /// Puts layers together once there are enough, and groups of one size.
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

    /// The oldest layer is stored.
    pub(super) fn stored_first(&mut self) {
        self.layers.remove(0);
        match self.first() {
            Some(first) => self.groups.retain(|group| group.last >= first),
            None => self.groups.clear(),
        }
    }
}

/// The last write of each key. Nobody reads from it who is retired.
fn merged<'a>(oldest_first: impl Iterator<Item = &'a NodeWrites>) -> Arc<NodeWrites> {
    let mut all = NodeWrites::default();
    for writes in oldest_first {
        all.nodes.extend(writes.nodes.iter().map(|(key, node)| (key.clone(), node.clone())));
    }
    Arc::new(all)
}

#[cfg(test)]
mod tests;
