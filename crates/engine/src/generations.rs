//! A bounded cache of values that are immutable under their hashes.
//!
//! When the young generation is full it replaces the old one, which is dropped. A hit in the old
//! generation moves the entry to the young one.

use alloy_primitives::{B256, map::B256Map};

#[derive(Debug)]
pub struct Generations<V> {
    young: B256Map<V>,
    old: B256Map<V>,
    young_bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

impl<V: Clone> Generations<V> {
    /// The bounds are those of each generation.
    pub fn new(max_entries: usize, max_bytes: usize) -> Self {
        let (young, old) = (B256Map::default(), B256Map::default());
        Self { young, old, young_bytes: 0, max_entries, max_bytes }
    }

    /// Returns an entry of the young generation.
    pub fn young(&self, hash: &B256) -> Option<V> {
        self.young.get(hash).cloned()
    }

    /// Returns an entry, whose value has this size.
    pub fn get(&mut self, hash: &B256, bytes: impl FnOnce(&V) -> usize) -> Option<V> {
        if let Some(value) = self.young(hash) {
            return Some(value);
        }
        let value = self.old.get(hash)?.clone();
        self.insert(*hash, value.clone(), bytes(&value));
        Some(value)
    }

    pub fn insert(&mut self, hash: B256, value: V, bytes: usize) {
        let full =
            self.young.len() >= self.max_entries || self.young_bytes + bytes > self.max_bytes;
        if full && !self.young.is_empty() {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(hash, value).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> B256 {
        B256::left_padding_from(&number.to_be_bytes())
    }

    #[test]
    fn entries_are_bounded_and_the_last_ones_are_kept() {
        let mut cache = Generations::new(100, usize::MAX);
        for number in 0..305 {
            cache.insert(hash(number), number, 1);
            assert!(cache.young.len() + cache.old.len() <= 200);
        }
        for number in 205..305 {
            assert_eq!(cache.get(&hash(number), |_| 1), Some(number));
        }
        assert_eq!(cache.get(&hash(100), |_| 1), None);
    }

    #[test]
    fn an_entry_in_use_outlives_its_generation() {
        let mut cache = Generations::new(10, usize::MAX);
        for number in 0..100 {
            cache.insert(hash(number), number, 1);
            assert_eq!(cache.get(&hash(0), |_| 1), Some(0));
        }
    }

    #[test]
    fn bytes_are_bounded() {
        let mut cache = Generations::new(usize::MAX, 50);
        for number in 0..200 {
            cache.insert(hash(number), number, 7);
            assert!(cache.young_bytes <= 50);
            assert!((cache.young.len() + cache.old.len()) * 7 <= 100);
        }
    }

    #[test]
    fn a_hash_inserted_again_does_not_count_twice() {
        let mut cache = Generations::new(10, 50);
        cache.insert(hash(1), 1, 7);
        cache.insert(hash(1), 1, 7);
        assert_eq!(cache.young_bytes, 7);
    }
}
