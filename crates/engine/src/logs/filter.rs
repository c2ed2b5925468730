//! A log filter: addresses, and topics by position.
//!
//! A log matches if its address is one of the given addresses and its topic at each position is one
//! of those given there. An empty list matches everything, but the position must exist. Each
//! *clause* (the addresses, or the topics of one position) can be tested against a bloom filter
//! and, as terms, looked up in the index.

#[cfg(test)]
mod tests;

use alloy_primitives::{Address, B256, keccak256};

use super::index::{ANY, Term, term};
use crate::stored::receipt::Log;

const BLOOM_BITS: u16 = 2048;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    addresses: Vec<Address>,
    topics: Vec<Vec<B256>>,
    /// The bloom bits of each value of each non-empty clause.
    blooms: Vec<Vec<[u16; 3]>>,
}

impl LogFilter {
    pub fn new(mut addresses: Vec<Address>, mut topics: Vec<Vec<B256>>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        for position in &mut topics {
            position.sort_unstable();
            position.dedup();
        }
        let mut blooms = vec![addresses.iter().map(|it| bloom_bits(it.as_slice())).collect()];
        blooms.extend(topics.iter().map(|it| it.iter().map(|it| bloom_bits(&it[..])).collect()));
        blooms.retain(|clause: &Vec<_>| !clause.is_empty());
        Self { addresses, topics, blooms }
    }

    /// The total number of values of all clauses.
    pub fn size(&self) -> usize {
        self.blooms.iter().map(Vec::len).sum()
    }

    pub fn matches(&self, log: &Log<'_>) -> bool {
        self.matches_parts(log.address, log.topics())
    }

    /// Like `matches`, for a decoded log.
    pub fn matches_parts<'t>(
        &self,
        address: &[u8],
        topics: impl ExactSizeIterator<Item = &'t [u8]>,
    ) -> bool {
        topics.len() >= self.topics.len()
            && (self.addresses.is_empty()
                || self.addresses.binary_search_by(|it| it.as_slice().cmp(address)).is_ok())
            && self.topics.iter().zip(topics).all(|(wanted, topic)| {
                wanted.is_empty() || wanted.binary_search_by(|it| it.as_slice().cmp(topic)).is_ok()
            })
    }

    /// True if a block or receipt with this bloom may contain a matching log.
    pub fn in_bloom(&self, bloom: &[u8; 256]) -> bool {
        let has = |bit: &u16| bloom[255 - usize::from(bit / 8)] & (1 << (bit % 8)) != 0;
        if self.blooms.is_empty() {
            return bloom.iter().any(|byte| *byte != 0);
        }
        self.blooms.iter().all(|clause| clause.iter().any(|bits| bits.iter().all(has)))
    }

    /// The terms of each clause. A matching block has at least one term of each.
    ///
    /// The shortest comes first, and of equal length the one that fewer blocks are likely to match:
    /// arguments of events, then addresses, then kinds of events.
    pub fn clauses(&self) -> Vec<Vec<Term>> {
        let mut clauses: Vec<Vec<Term>> = (1..)
            .zip(&self.topics)
            .map(|(position, topics)| {
                topics.iter().map(|it| term(position, it.as_slice())).collect()
            })
            .collect();
        let address = self.addresses.iter().map(|it| term(0, it.as_slice())).collect();
        clauses.insert(clauses.len().min(1), address);
        clauses.reverse();
        clauses.retain(|clause| !clause.is_empty());
        clauses.sort_by_key(Vec::len);
        if clauses.is_empty() {
            clauses.push(vec![ANY]);
        }
        clauses
    }
}

/// The three bits of a value in a logs bloom.
fn bloom_bits(value: &[u8]) -> [u16; 3] {
    let hash = keccak256(value);
    [0, 2, 4].map(|at| u16::from_be_bytes([hash[at], hash[at + 1]]) % BLOOM_BITS)
}
